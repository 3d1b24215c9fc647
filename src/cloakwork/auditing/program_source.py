"""A program that prints reports, one a line, run on two inputs."""

import logging
import os
import selectors
import shlex
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.auditing.kept_reports import CopyCheck, KeptReports
from cloakwork.errors import InputError
from cloakwork.parallel import Cluster
from cloakwork.readings import ReportForm, ReportReader, printable

log = logging.getLogger(__name__)

_CHUNK = 1 << 16
_LONGEST = 1 << 16  # characters of a line
_TAIL = 2000  # bytes kept of standard error
_POLL = 0.01  # seconds
PART = 500  # reports of one run on a cluster
_FEW = 100  # reports of one run: starting the program then takes most of the time


class ProgramSource:
    """Reports of a program, which runs once for each input and is read while it runs.

    The input, 0 or 1, replaces each `{}` in the `command`, or is added as the last argument; no shell is involved.
    Lines are read as `form` says, inferred from the first ones by default. `timeout` is in seconds, for each line and
    for the exit after the output is closed. Workers of a `cluster` run the program for `PART` reports each; by default
    it runs here. Reports that `kept` holds come first, and it keeps the others.

    Notes
    -----
    The pipe holds the program back, so it may print for ever. A program that exits with code 0 is started again: it may
    print any number of reports each time. Use the source as a context, which ends the programs.
    """

    def __init__(
        self,
        command: str,
        *,
        form: ReportForm | None = None,
        timeout: float = 30.0,
        cluster: Cluster | None = None,
        kept: KeptReports | None = None,
    ) -> None:
        seconds = positive("timeout", timeout)
        words = _words(command)
        self.reader = ReportReader(form)
        self._programs = tuple(
            _Program(_with_input(words, database), seconds, database)
            if cluster is None
            else _SharedProgram(_with_input(words, database), seconds, database, cluster)
            for database in (0, 1)
        )
        self._kept, self._copies = kept, (CopyCheck(), CopyCheck())
        if kept is not None:
            for program, lines, starts in zip(self._programs, kept.lines, kept.starts, strict=True):
                program.begin_with(lines, starts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002 - the program has its own
        """The next reports on an input."""
        try:
            return self._next(database, size)
        except InputError as problem:
            if self._kept is not None:
                self._kept.fail(str(problem))
            raise

    def _next(self, database: int, size: int) -> NDArray[Any]:
        if self.reader.form is None or self.reader.width is None:
            self.reader.decide([line for program in self._programs for line in program.look(size)])
        program = self._programs[database]
        first = program.taken
        lines = program.take(size)
        if self._kept is not None:
            self._kept.add(database, lines, first, program.starts)
        self._copies[database].add(lines, program.starts)
        return self.reader.read(lines, where=lambda index: f"line {first + index + 1:,} on input {database}")

    def refuse_copies(self) -> None:
        """Refuse to conclude from reports while too few came after a start to tell them from copies."""
        doubtful = max(check.doubtful for check in self._copies)
        if doubtful:
            raise InputError(
                f"since its last start the program printed {doubtful:,} reports, all as after an earlier start. They "
                "may be copies, and are too few to tell: take more reports.",
                reports=doubtful,
            )

    def close(self) -> None:
        """End the programs."""
        for program in self._programs:
            program.close()


class _Lines(ABC):
    """The lines of consecutive runs of a program on one input."""

    def __init__(self) -> None:
        self._ready: list[str] = []
        self.taken = 0
        self.starts: list[int] = []  # numbers of the lines with which the program began

    @property
    def made(self) -> int:
        """Reports so far, of all runs."""
        return self.taken + len(self._ready)

    def begin_with(self, lines: Sequence[str], starts: Sequence[int]) -> None:
        """Take these lines before any other."""
        self._ready, self.starts = list(lines), list(starts)

    def look(self, size: int) -> list[str]:
        """The next lines, which stay."""
        while len(self._ready) < size:
            self._more()
        return self._ready[:size]

    def take(self, size: int) -> list[str]:
        """The next lines."""
        found = self.look(size)
        del self._ready[:size]
        self.taken += size
        return found

    @abstractmethod
    def close(self) -> None:
        """Make no more lines."""

    @abstractmethod
    def _more(self) -> None:
        """Wait for more lines, or for the end of a run."""


class _Program(_Lines):
    """Runs here, one after the other."""

    def __init__(self, words: Sequence[str], timeout: float, database: int) -> None:
        super().__init__()
        self._words, self._timeout, self._database = list(words), timeout, database
        self._process: subprocess.Popen[bytes] | None = None
        self._selector: selectors.BaseSelector | None = None
        self._rest = b""
        self._printed = 0
        self._errors = b""

    def close(self) -> None:
        """End the program, if it still runs, and everything that it started."""
        if self._selector is not None:
            self._selector.close()
            self._selector = None
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:  # before its exit code is taken, its number cannot belong to another process
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def _name(self) -> str:
        return shlex.join(self._words)

    def _start(self) -> None:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user names the program
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            raise InputError(f"{self._name}: {getattr(problem, 'strerror', None) or problem}.") from None
        self.starts.append(self.made)
        self._process, self._selector, self._printed, self._errors = process, selectors.DefaultSelector(), 0, b""
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, pipe is process.stdout)

    def _more(self) -> None:
        """Wait for at least one more line, or until the program has ended and must be started again."""
        if self._process is None:
            self._start()
        end = time.monotonic() + self._timeout
        before = len(self._ready)
        while self._selector is not None and len(self._ready) == before:
            left = end - time.monotonic()
            if left <= 0:
                raise InputError(
                    f"{self._name}: no line within {self._timeout:g} s. If it buffers its output, let it flush each "
                    "line; otherwise allow more time.",
                    timeout=self._timeout,
                    argument="timeout",
                )
            for key, _ in self._selector.select(left):
                self._read(key.fd, reports=bool(key.data))

    def _read(self, pipe: int, *, reports: bool) -> None:
        if self._process is None:
            return  # it ended while the other pipe was read
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return
        if not reports:
            self._errors = (self._errors + chunk)[-_TAIL:]
            if not chunk and self._selector is not None:
                self._selector.unregister(pipe)
        elif chunk:
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._keep(lines)
        else:
            self._ended()

    def _keep(self, lines: list[bytes]) -> None:
        if len(self._rest) > _LONGEST or any(len(line) > _LONGEST for line in lines):
            raise InputError(
                f"{self._name}: a line of more than {_LONGEST:,} characters. Let it print one report a line."
            )
        self._ready.extend(line.decode("utf-8", "surrogateescape") for line in lines)
        self._printed += len(lines)

    def _ended(self) -> None:
        """Check the exit code; the program is started again when more lines are needed."""
        if self._rest:  # a last line without its end
            self._keep([self._rest])
            self._rest = b""
        process = self._process
        if process is None:
            return
        code = self._exit_code(process)
        reason, printed = _last_line(self._errors), self._printed
        self.close()
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            why = f": {reason.rstrip('.')}" if reason else ""
            after = f"after {self.made:,} report{'' if self.made == 1 else 's'}" if self.made else "before any report"
            raise InputError(
                f"{self._name}: on input {self._database}, {after}, it ended with {how}{why}. "
                "A failure can be an outcome too: print a word for it instead of exiting.",
                code=code,
                database=self._database,
                reports=self.made,
            )
        if not printed:
            raise InputError(f"{self._name}: it exited without printing a report. Let it print at least one line.")
        if printed < _FEW and self._database == 0 and self.made == printed:
            log.warning(
                "%s exits after %d report%s and is started again for more, which takes long. Let it print reports in a "
                "loop.",
                self._name,
                printed,
                "" if printed == 1 else "s",
            )

    def _exit_code(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the program to exit and keep reading its errors: with a full pipe it could not exit."""
        end = time.monotonic() + self._timeout
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)
            if process.stderr is not None:
                with suppress(BlockingIOError):
                    self._errors = (self._errors + os.read(process.stderr.fileno(), _CHUNK))[-_TAIL:]
            if process.returncode is not None:
                return process.returncode
            if time.monotonic() > end:
                raise InputError(f"{self._name}: it closed its output and did not exit.")


class _SharedProgram(_Lines):
    """Runs by the workers of a cluster, in the order in which they were asked for.

    The order in which they end may depend on the reports.
    """

    def __init__(self, words: Sequence[str], timeout: float, database: int, cluster: Cluster) -> None:
        super().__init__()
        self._outcomes = cluster.run(run_program, ((str(number), (words, timeout, database)) for number in count()))
        self._ended: dict[int, list[str]] = {}
        self._next = 0

    def close(self) -> None:
        """Ask for no more runs."""
        self._outcomes.close()

    def _more(self) -> None:
        while self._next not in self._ended:
            outcome = next(self._outcomes)
            if outcome.failure:
                raise InputError(f"on a worker of the cluster: {outcome.failure}")
            self._ended[int(outcome.name)] = outcome.result
        self.starts.append(self.made)
        self._ready += self._ended.pop(self._next)
        self._next += 1


def run_program(part: tuple[Sequence[str], float, int]) -> list[str]:
    """Run a program on one input for `PART` reports, on a worker."""
    program = _Program(*part)
    try:
        return program.take(PART)
    finally:
        program.close()


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


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    return printable(lines[-1]) if lines else ""
