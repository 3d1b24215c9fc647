"""The one place that knows Numba: a typed decorator for the inner loops."""

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
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
        made: Any = _njit(cache=True, nogil=True, error_model="numpy", fastmath=_RELAXED, **options)(function)
        _watch_folder(made, Path(inspect.getfile(function)).parent)
    except RuntimeError:
        # nowhere to write a cache (a read-only install without a home): compile anew in each process
        made = _njit(nogil=True, error_model="numpy", fastmath=_RELAXED, **options)(function)
    result: F = made
    return result


def _watch_folder(made: Any, folder: Path) -> None:
    """Compile again when any file of the folder has changed.

    Numba looks at the file of the function alone, and would go on with old versions of what it calls in other files.
    """
    index = getattr(getattr(made, "_cache", None), "_cache_file", None)
    stamp = getattr(index, "_source_stamp", None)
    if stamp is not None:  # not where compiling is switched off
        setattr(index, "_source_stamp", (stamp, folder_stamp(folder)))  # noqa: B010 - Numba has no public way


@cache
def folder_stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of each source file in a folder."""
    stats = ((path.name, path.stat()) for path in sorted(folder.glob("*.py")))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
