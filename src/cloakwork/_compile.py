"""The one place that knows Numba: a typed decorator for the inner loops."""

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])


_RELAXED = {
    "contract",
    "reassoc",
    "nsz",
    "arcp",
}  # sums may be reordered; NaN and infinity keep their meaning


def compiled(function: F) -> F:
    """Compile a loop on first use, cache it on disk, and let other threads run meanwhile."""
    made: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_RELAXED)(function)
    return made


def compiled_part(function: F) -> F:
    """Like `compiled`, for a function that only compiled ones call: it costs less to compile."""
    made: F = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath=_RELAXED,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return made
