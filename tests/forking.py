"""Work in a forked process, which has a copy of everything that its parent has."""

import gc
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloakwork.errors import CloakworkError
from tests.waiting import PATIENCE

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
COMMAND = "from cloakwork.cli import main; main()"


def error_in_fork(act: Callable[[], object]) -> str:
    """Do something in a forked process; return the name of the error that it raises, empty if none."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def child() -> None:
        try:
            act()
        except CloakworkError as problem:
            queue.put(type(problem).__name__)
        else:
            queue.put("")

    process = context.Process(target=child)
    process.start()
    name: str = queue.get(timeout=PATIENCE)
    process.join()
    return name


def python(
    code: str, *arguments: object, env: Mapping[str, str] | None = None, **options: Any
) -> "subprocess.Popen[Any]":
    """Start `python -c code arguments`, forked off this process: to load all modules again takes seconds.

    `options` are those of `subprocess.Popen`. The new process ends before `Popen` would replace its program.
    """
    words = [sys.executable, "-c", code, *map(str, arguments)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of ours do not run in the copy
        return subprocess.Popen(words, preexec_fn=lambda: _become(words[1:], env), **options)  # noqa: PLW1509


def cloakwork(*words: object, **options: Any) -> "subprocess.Popen[Any]":
    """Start a command as the installed script would, forked off this process."""
    return python(COMMAND, *words, **options)


def _become(words: list[str], environment: Mapping[str, str] | None) -> None:
    """Be a fresh interpreter that has loaded its modules; never returns."""
    gc.freeze()  # objects of the parent may hold the numbers of files that are closed here
    os.closerange(3, 1 << 16)  # one of these tells `Popen` that the program has started
    status = 1
    try:
        sys.argv = [words[0], *words[2:]]
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        _forget_tests(environment)
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own programs
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stderr.write(f"{end.code}\n" if isinstance(end.code, str) else "")
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(status)


def _forget_tests(environment: Mapping[str, str] | None) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    for name in ("", "cloakwork"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).setLevel(logging.NOTSET if name else logging.WARNING)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
    for module in [name for name in sys.modules if name.startswith("cloakwork.cli")]:
        del sys.modules[module]  # its consoles know the terminal that they were made for
