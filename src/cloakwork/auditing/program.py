"""A program that prints reports, one on each line, run on two inputs."""

import os
import selectors
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.auditing.report_values import ReportReader, printable
from cloakwork.errors import InputError

_LONGEST = 1 << 16  # bytes of a line, and of what is read at a time


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
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""  # of a line that has begun
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
        if process is None or process.stdout is None:
            return
        if process.returncode is None:  # before the exit code is taken, no other process can have this number
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        self._errors.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors = tempfile.TemporaryFile(mode="w+", errors="backslashreplace")  # noqa: SIM115 - closed with the run
        try:
            process = subprocess.Popen(  # noqa: S603 - the user names the program
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            self._errors.close()
            raise self._problem(f"{getattr(problem, 'strerror', None) or problem}.") from None
        self._printed = 0
        return process

    def _next(self) -> list[str]:
        """Wait for lines, or for the end of a run: the program is then started again by the next call."""
        self._process = self._process or self._start()
        part = self._read(self._process)
        *whole, self._rest = (self._rest + part).split(b"\n")
        if not part and self._rest:  # a last line without an end
            whole, self._rest = [self._rest], b""
        if max(map(len, (self._rest, *whole))) >= _LONGEST:
            raise self._problem(f"a line of more than {_LONGEST:,} bytes. Let it print one report a line.")
        self._printed += len(whole)
        if not part:
            self._end(self._process)
        return [line.decode(errors="surrogateescape") for line in whole]

    def _read(self, process: subprocess.Popen[bytes]) -> bytes:
        """Return what the program has printed; nothing at its end."""
        pipe = process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
            if selector.select(self._timeout):
                return os.read(pipe.fileno(), _LONGEST)  # type: ignore[union-attr]
        raise self._silence()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Take the exit code of a run; refuse a run that failed or printed nothing."""
        try:
            code = process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            raise self._silence() from None
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

    def _silence(self) -> InputError:
        return self._problem(
            f"no line within {self._timeout:g} s. If it buffers its output, let it flush each line; otherwise allow "
            "more time.",
            parameter="timeout",
        )

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
