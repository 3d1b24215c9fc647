"""Reports of a program that is started more than once: kept in a file, and compared with those of earlier starts."""

import fcntl
import json
import os
import stat
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from cloakwork.errors import InputError

_CHANCE = 1e-12  # that reports of two starts are the same by chance
_MOST_STARTS = 1_000  # earlier starts that one is compared with


class KeptReports:
    """Lines that a program printed on each input, and where it was started, in a file that one audit uses at a time.

    `about` is the program and the claim that the reports are for; a file with others is refused. `seed` is that of the
    auditor's own choices. That of the file counts, if it has one: an audit that goes on with the same reports and
    choices is the one that was interrupted, and no second attempt.
    """

    def __init__(self, path: Path, about: Mapping[str, object], seed: int) -> None:
        self.seed, self._about, self._path = seed, about, path
        self.lines: tuple[list[str], list[str]] = ([], [])
        self.starts: tuple[list[int], list[int]] = ([], [])
        self._empty = True
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
        self._file = os.fdopen(handle, "r+b")
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise self._problem("this is no file. Give the name of one.")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._problem("another audit is using it. Wait for that one, or give a new name.") from None
        text = self._file.read()
        whole = text[: text.rfind(b"\n") + 1]  # a last line that was cut off does not count
        if not whole:
            return
        try:
            theirs, failures = self._read(whole)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
            raise self._problem("this is no file of an interrupted audit. Give that of one, or a new name.") from None
        other = [name for name in self._about if theirs.get(name) != self._about[name]]
        if other:
            raise self._problem(
                f"it belongs to an audit with another {' and another '.join(other)}. Run that audit's command again, "
                "or give a new name."
            )
        if failures:
            raise self._problem(
                f"the program failed in this audit: {failures[0]} Whether it fails may depend on its input, so the "
                "audit cannot go on without that. Begin again with a new name."
            )
        self._empty = False
        if whole != text:
            self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)

    def _read(self, whole: bytes) -> tuple[dict[str, object], list[str]]:
        """Read the file; returns what it is about, and why the program failed."""
        head, *parts = map(json.loads, whole.splitlines())
        self.seed = int(head["seed"])
        if self.seed < 0:
            raise ValueError("a seed is not negative")
        for part in parts:
            if "failed" not in part:
                self.starts[part["input"]].extend(map(int, part["starts"]))
                self.lines[part["input"]].extend(map(str, part["reports"]))
        return dict(head["audit"]), [str(part["failed"]) for part in parts if "failed" in part]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the file."""
        self._file.close()

    def add(self, database: int, lines: Sequence[str], first: int, starts: Sequence[int]) -> None:
        """Keep lines, of which the first has the number `first`, unless they are in the file."""
        known = max(first, len(self.lines[database]))
        new = list(lines[known - first :])
        if new:
            begun = [start for start in starts if known <= start < first + len(lines)]
            self._append({"input": database, "starts": begun, "reports": new})

    def fail(self, why: str) -> None:
        """Keep that the program failed, so that the audit does not go on as if it had not."""
        if not self._empty:
            self._append({"failed": why})

    def _append(self, line: Mapping[str, object]) -> None:
        head = [{"audit": self._about, "seed": self.seed}] if self._empty else []
        self._file.write(b"".join(json.dumps(part).encode() + b"\n" for part in (*head, line)))
        self._file.flush()
        self._empty = False

    def _problem(self, text: str) -> InputError:
        return InputError(f"{self._path}: {text}", path=str(self._path))


class CopyCheck:
    """Refuses reports that a program printed after an earlier start, unless chance explains them.

    A program that begins with the same random numbers each time gives copies, which are no evidence.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._counts: Counter[str] = Counter()
        self._starts: list[int] = []
        self._alike: list[tuple[int, int]] = []  # two starts with the same lines so far, the later one still running

    def add(self, lines: Sequence[str], starts: Sequence[int]) -> None:
        """Take the next lines; `starts` are the numbers of the lines with which the program began, all so far."""
        self._lines += lines
        self._counts.update(lines)
        for start in starts[len(self._starts) :]:
            if start >= len(self._lines):
                break
            self._alike += [(earlier, start) for earlier in self._starts[-_MOST_STARTS:]]
            self._starts.append(start)
        self._alike = [pair for pair in self._alike if self._is_open(*pair)]

    def _is_open(self, earlier: int, later: int) -> bool:
        """Whether both starts gave the same lines so far, and the later one may give more of them."""
        if self._lines[earlier] != self._lines[later]:
            return False
        length = min(self._end(later) - later, self._end(earlier) - earlier)
        if self._lines[earlier : earlier + length] != self._lines[later : later + length]:
            return False
        if self._collision**length * len(self._starts) ** 2 < _CHANCE:
            raise InputError(
                f"the program printed the same {length:,} reports after two starts: it uses the same random numbers "
                "each time, and copies are no evidence. Seed it from the operating system."
            )
        return self._end(later) == len(self._lines) and length == self._end(later) - later

    def _end(self, start: int) -> int:
        """The number of lines before the start that follows."""
        after = bisect_right(self._starts, start)
        return self._starts[after] if after < len(self._starts) else len(self._lines)

    @property
    def _collision(self) -> float:
        """The probability that two lines are the same."""
        return sum(count**2 for count in self._counts.values()) / len(self._lines) ** 2

    @property
    def doubtful(self) -> int:
        """How many lines since the last start may be copies: too few to tell. None if all lines are the same."""
        return 0 if len(self._counts) == 1 else max((len(self._lines) - later for _, later in self._alike), default=0)
