"""Typed decorators that compile inner loops; the only module that imports Numba."""

import inspect
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numba.core.cgutils
import numba.core.codegen
import numba.core.event
import numba.extending
from llvmlite import ir

F = TypeVar("F", bound=Callable[..., object])
_njit: Any = numba.njit  # its stubs lack some of its options
_settings: Any = numba.config
_codegen: Any = numba.core.codegen
_events: Any = numba.core.event
_cgutils: Any = numba.core.cgutils
_RELAXED = {"contract", "reassoc", "nsz", "arcp"}  # sums may be reordered; NaN and infinity keep their meaning
_KNOWS_GATHERS = (17, 0, 0)  # the first LLVM that has the preference


def avoid_gathers() -> None:
    """Load numbers that lie apart one by one, in a program of ours: it changes Numba's settings for the process.

    Gather instructions take four times as long on processors whose microcode closes Downfall.
    """
    knows = llvmlite.binding.llvm_version_info >= _KNOWS_GATHERS
    if _settings.CPU_FEATURES is None and knows and platform.machine() in {"x86_64", "AMD64"}:
        _settings.CPU_FEATURES = f"{_codegen.get_host_cpu_features()},+prefer-no-gather"


def announce_compiling(announce: Callable[[], None]) -> None:
    """Call a function once, as soon as a loop has to be compiled because no cache has it."""

    class _Listener(numba.core.event.Listener):
        told = False

        def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's signature
            if not self.told:
                self.told = True
                announce()

        def on_end(self, event: Any) -> None: ...

    _events.register("numba:compile", _Listener())


def compiled(function: F) -> F:
    """Compile a loop on first use and cache it on disk; it runs without the global interpreter lock."""
    return _compiled(function)


def compiled_in_order(function: F) -> F:
    """Like `compiled`, but sums keep their order: sums over the few edges of a node are several times faster so."""
    return _compiled(function, relaxed=_RELAXED - {"reassoc"})


def compiled_part(function: F) -> F:
    """Like `compiled`, but quicker to compile: for functions that only compiled functions call."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _prefetch(_: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask for the line of the cache that holds an entry of a matrix, which compiled code will read soon.

    Rows at random places of a large array are read a third faster so: the processor waits for several of them at once.
    """

    def generated(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, number = signature.args[0], ir.IntType(32)
        parts = context.make_array(kind)(context, builder, values[0])
        places = [builder.zext(place, ir.IntType(64)) for place in values[1:]]
        address = _cgutils.get_item_pointer(context, builder, kind, parts, places, wraparound=False)
        pointer = ir.IntType(8).as_pointer()
        call = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = _cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0i8")
        builder.call(function, [builder.bitcast(address, pointer), number(0), number(3), number(1)])  # to read, as data
        return context.get_dummy_value()

    return numba.types.void(array, row, column), generated


# without compiling, as a debugger may want it, there is nothing to ask for
prefetch: Any = (lambda *_: None) if _settings.DISABLE_JIT else numba.extending.intrinsic(_prefetch)


def _compiled(function: F, relaxed: set[str] = _RELAXED, **options: bool) -> F:
    _forget_stale_loops(Path(inspect.getfile(function)).parent)
    try:
        dispatcher: Any = _njit(cache=True, nogil=True, error_model="numpy", fastmath=relaxed, **options)(function)
    except RuntimeError:
        # there is nowhere to write a cache (a read-only install without a home): compile in each process
        dispatcher = _njit(nogil=True, error_model="numpy", fastmath=relaxed, **options)(function)
    result: F = dispatcher
    return result


@cache
def _forget_stale_loops(folder: Path) -> None:
    """Delete the compiled loops of a folder that are older than one of its files, or than this one.

    Numba compares a loop only with the file that it is in, and would keep old versions of functions in other files.
    """
    newest = max(path.stat().st_mtime_ns for path in (*folder.glob("*.py"), Path(__file__)))
    for index in (folder / "__pycache__").glob("*.nbi"):
        with suppress(OSError):  # another process was faster, or nobody may write here
            if index.stat().st_mtime_ns < newest:
                index.unlink()
