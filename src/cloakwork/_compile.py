"""The one place that knows Numba: a typed decorator for the inner loops."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])
_njit: Any = numba.njit  # its stubs do not know all of its options


_RELAXED = {
    "contract",
    "reassoc",
    "nsz",
    "arcp",
}  # sums may be reordered; NaN and infinity keep their meaning


def compiled(function: F) -> F:
    """Compile a loop on first use, cache it on disk, and let other threads run meanwhile."""
    return _made(function)


def compiled_part(function: F) -> F:
    """Like `compiled`, for a function that only compiled ones call: it costs less to compile."""
    return _made(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _made(function: F, **options: bool) -> F:
    try:
        made: F = _njit(cache=True, nogil=True, error_model="numpy", fastmath=_RELAXED, **options)(function)
    except RuntimeError:
        # nowhere to write a cache (a read-only install without a home): compile anew in each process
        made = _njit(nogil=True, error_model="numpy", fastmath=_RELAXED, **options)(function)
    return made
