"""A program that prints reports, one on each line, run on two inputs."""

import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.errors import InputError
from cloakwork.readings import ReportReader, printable

_AHEAD = 10_000  # lines that a program may be ahead of the audit
_LONGEST = 1 << 16  # characters of a line


class ProgramSource:
    """Reports of a program, which runs once for each input and is read while it runs.

    The input, 0 or 1, replaces each `{}` in the `command`, or becomes the last argument; no shell is involved. Lines
    are read as the first ones suggest. `timeout` is how many seconds to wait for a line.

    Notes
    -----
    A program may print forever: the pipe holds it back. One that exits with code 0 is started again. Use the source as
    a context, which ends the programs.
    """

    def __init__(self, command: str, *, timeout: float = 30.0) -> None:
        words = _words(command)
        self.reader = ReportReader()
        self._programs = tuple(_Program(_with_input(words, k), k, positive("timeout", timeout)) for k in (0, 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.close()

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002 - it has its own
        """Return the next reports on an input."""
        if self.reader.width is None:
            self.reader.decide([line for program in self._programs for line in program.lines(size, keep=True)])
        program = self._programs[database]
        first = program.taken
        lines = program.lines(size)
        return self.reader.read(lines, where=lambda index: f"line {first + index + 1:,} on input {database}")


class _Program:
    """The lines of consecutive runs of a program on one input."""

    def __init__(self, words: Sequence[str], database: int, timeout: float) -> None:
        self._words, self._database, self._timeout = list(words), database, timeout
        self._process: subprocess.Popen[str] | None = None
        self._ready: list[str] = []
        self.taken = self._printed = 0

    def lines(self, size: int, *, keep: bool = False) -> list[str]:
        """Return the next lines; those that are kept come again."""
        while len(self._ready) < size:
            self._ready += self._next()
        found = self._ready[:size]
        if not keep:
            del self._ready[:size]
            self.taken += size
        return found

    def close(self) -> None:
        """End the program, if it still runs, and everything that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:  # before the exit code is taken, no other process can have this number
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        self._open = False
        process.wait()
        self._reading.join(5.0)  # a child in a session of its own may hold the pipe open
        self._errors.close()

    def _start(self) -> subprocess.Popen[str]:
        self._errors = tempfile.TemporaryFile(mode="w+", errors="backslashreplace")  # noqa: SIM115 - closed with the run
        try:
            process = subprocess.Popen(  # noqa: S603 - the user names the program
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                text=True,
                errors="surrogateescape",
            )
        except (OSError, ValueError) as problem:
            self._errors.close()
            raise self._problem(f"{getattr(problem, 'strerror', None) or problem}.") from None
        self._open, self._printed = True, 0
        self._queue: queue.Queue[str] = queue.Queue(_AHEAD)
        self._reading = threading.Thread(target=self._read, args=(process, self._queue), daemon=True)
        self._reading.start()
        return process

    def _read(self, process: subprocess.Popen[str], lines: "queue.Queue[str]") -> None:
        """Pass lines on, in a thread; the empty one stands for the end."""
        with process.stdout as pipe:  # type: ignore[union-attr]
            while (line := pipe.readline(_LONGEST)) and self._open:
                while self._open:
                    with suppress(queue.Full):
                        lines.put(line, timeout=0.2)
                        break
        with suppress(queue.Full):
            lines.put("", timeout=0.2 if not self._open else None)

    def _next(self) -> list[str]:
        """Wait for a line, or for the end of a run: the program is then started again by the next call."""
        if self._process is None:
            self._process = self._start()
        try:
            line = self._queue.get(timeout=self._timeout)
            code = 0 if line else self._process.wait(self._timeout)
        except (queue.Empty, subprocess.TimeoutExpired):
            raise self._problem(
                f"no line within {self._timeout:g} s. If it buffers its output, let it flush each line; otherwise "
                "allow more time.",
                parameter="timeout",
            ) from None
        if len(line) >= _LONGEST:
            raise self._problem(f"a line of more than {_LONGEST:,} characters. Let it print one report a line.")
        if line:
            self._printed += 1
            return [line.rstrip("\n")]
        self._errors.seek(0)
        errors = [line for line in self._errors.read()[-2_000:].splitlines() if line.strip()]
        self.close()
        if code:
            why = f": {printable(errors[-1])}" if errors else ""
            raise self._problem(
                f"on input {self._database}, after {self.taken + len(self._ready):,} reports, it ended with code "
                f"{code}{why}. A failure can be an outcome too: print a word for it instead of exiting.",
                code=code,
            )
        if not self._printed:
            raise self._problem("it exited without printing a report. Let it print at least one line.")
        return []

    def _problem(self, text: str, **values: Any) -> InputError:
        return InputError(f"{shlex.join(self._words)}: {text}", database=self._database, **values)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise InputError(f"{command!r}: cannot be read as a command ({problem}).") from None
    if not words or not words[0]:
        raise InputError("the command is empty: give a program, such as ./device or 'python3 device.py'.")
    return words


def _with_input(words: Sequence[str], database: int) -> list[str]:
    if any("{}" in word for word in words):
        return [word.replace("{}", str(database)) for word in words]
    return [*words, str(database)]
