"""The one place that knows Numba: a typed decorator for the inner loops."""

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile an inner loop on first use, cache it on disk, and let other threads run meanwhile.

    Sums may be reordered (for vector units) but NaN and infinity keep their meaning.
    """
    relaxed = {"contract", "reassoc", "nsz", "arcp"}
    wrapped: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=relaxed)(function)
    return wrapped
