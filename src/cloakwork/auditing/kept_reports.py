"""Reports of a program in a file, with which an interrupted audit goes on."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from cloakwork.errors import InputError

_CHANCE = 1e-12  # that two runs are the same by chance


class KeptReports:
    """Lines that a program printed on each input, in a file of their own.

    Parameters
    ----------
    path
        The file; it is made if it is not there.
    about
        What the reports belong to. A file that says otherwise is refused.
    seed
        Of the auditor's own choices. That of the file counts, if it has one: an audit that goes on with the same
        reports and choices is the one that was interrupted, and no second attempt.
    """

    def __init__(self, path: Path, about: Mapping[str, object], seed: int) -> None:
        self.seed = seed
        self.lines: tuple[list[str], list[str]] = ([], [])
        self._path, self._begun = path, [False, False]
        if path.exists() and path.stat().st_size:
            self._read(about)
        else:
            self._append({"audit": about, "seed": seed})

    def _read(self, about: Mapping[str, object]) -> None:
        """Read the file; a last line that was cut off does not count."""
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        try:
            head, *rest = map(json.loads, whole.splitlines())
            theirs, self.seed = dict(head["audit"]), int(head["seed"])
            for part in rest:
                self.lines[part["input"]].extend(map(str, part["reports"]))
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise InputError(
                f"{self._path}: this is no file of an interrupted audit. Give that of one, or a new name.",
                path=str(self._path),
            ) from problem
        other = [name for name in about if theirs.get(name) != about[name]]
        if other:
            raise InputError(
                f"{self._path}: it belongs to an audit with another {' and another '.join(other)}. Run that audit's "
                "command again, or give a new name.",
                path=str(self._path),
                different=other,
            )
        if whole != text:
            self._path.write_bytes(whole)

    def add(self, database: int, lines: Sequence[str], first: int) -> None:
        """Keep lines of which the first has this number, unless they are in the file."""
        known = self.lines[database]
        new = list(lines[max(0, len(known) - first) :])
        if not new:
            return
        if not self._begun[database]:
            self._begun[database] = True
            if known[: len(new)] == new:
                refuse_copy(new, 1)
        self._append({"input": database, "reports": new})

    def _append(self, line: Mapping[str, object]) -> None:
        with open(self._path, "a", encoding="ascii", opener=partial(os.open, mode=0o600)) as file:
            file.write(json.dumps(line) + "\n")


def refuse_copy(lines: Sequence[str], chances: int) -> None:
    """Refuse lines that were printed before, unless chance explains it."""
    shares = np.unique(lines, return_counts=True)[1] / len(lines)
    if float((shares**2).sum()) ** len(lines) * chances < _CHANCE:
        raise InputError(
            f"two runs of the program printed the same {len(lines)} reports: it uses the same random numbers each "
            "time, and copies are no evidence. Seed it from the operating system."
        )
