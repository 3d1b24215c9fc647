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
    made: F = _njit(cache=True, nogil=True, error_model="numpy", fastmath=_RELAXED)(function)
    return made


def compiled_part(function: F) -> F:
    """Like `compiled`, for a function that only compiled ones call: it costs less to compile."""
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: F = _njit(cache=True, nogil=True, error_model="numpy", fastmath=_RELAXED, **bare)(function)
    return made
