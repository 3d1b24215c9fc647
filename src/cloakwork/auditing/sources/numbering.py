"""Sequence numbers of two recordings: each counts once, and none may be in both."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.auditing.sources.forms import word_of
from cloakwork.auditing.sources.lines import marks
from cloakwork.errors import ReadingError

_ENOUGH = 10**18  # from here on a number does not stand for itself
_STANDS_FOR_ITSELF = re.compile("0|[1-9][0-9]{0,17}").fullmatch


class Numbers:
    """Which value each sequence number of a sensor has, in both recordings.

    Notes
    -----
    A number is its text: 7 and 07 are two. What is no usual whole number is counted, below zero.
    """

    def __init__(self) -> None:
        self._unusual: dict[str, int] = {}
        self._tables: dict[str, dict[Path, _Table]] = {}

    def new(
        self, path: Path, sensor: str, rows: Sequence[int], numbers: Sequence[str], values: Sequence[str]
    ) -> list[str]:
        """Values of the numbers that are new; refused unless the others say the same again in the same file.

        `rows` says where in the file they were found, for messages.
        """
        if not rows:
            return []
        tables = self._tables.setdefault(sensor, {})  # the first recording's comes first
        table = tables.setdefault(path, _Table())
        said = marks(values)
        each, first, place = np.unique(self._coded(numbers), return_index=True, return_inverse=True)
        expected = said[first]
        old = table.look(each, expected)
        other = next(iter(tables))
        taken = tables[other].look(each, expected) if other != path else np.zeros_like(old)
        different, shared = said != expected[place], taken[place]
        if np.any(different | shared):
            index = int(np.argmax(different | shared))
            raise _refusal(
                path, other if shared[index] else path, rows[index], numbers[index], different=bool(different[index])
            )
        table.add(each[~old], expected[~old])
        return [values[index] for index in np.sort(first[~old]).tolist()]

    def refuse_two_sensors(self) -> None:
        """Refuse recordings of two sensors: what tells them apart is not what they measured."""
        if len(self._tables) > 1:
            each = " and ".join(f"{sensor[:64]!r} in {next(iter(of))}" for sensor, of in self._tables.items())
            raise ReadingError(f"readings of {each}: both recordings must be of one sensor.")

    def _coded(self, numbers: Sequence[str]) -> IntArray:
        """A whole number for each text, another one for another text."""
        try:
            usual = np.fromiter(map(int, numbers), np.int64, len(numbers))
        except (ValueError, OverflowError):
            usual = np.array([-1])
        if usual.min() >= 0 and usual.max() < _ENOUGH and list(map(str, usual.tolist())) == list(numbers):
            return usual
        return np.fromiter(map(self._code, numbers), np.int64, len(numbers))

    def _code(self, number: str) -> int:
        if _STANDS_FOR_ITSELF(number):
            return int(number)
        return self._unusual.setdefault(number, -1 - len(self._unusual))


class _Table:
    """Numbers with a mark each, in few sorted runs: a run that is not longer than the next is merged with it."""

    def __init__(self) -> None:
        self._runs: list[tuple[IntArray, IntArray]] = []

    def look(self, numbers: IntArray, expected: IntArray) -> NDArray[np.bool_]:
        """Which of these sorted numbers are in the table; what it has for them is put into `expected`."""
        known = np.zeros(len(numbers), dtype=bool)
        for have, values in self._runs:
            if numbers[0] > have[-1] or numbers[-1] < have[0]:
                continue
            place = np.minimum(np.searchsorted(have, numbers), len(have) - 1)
            found = have[place] == numbers
            expected[found] = values[place[found]]
            known |= found
        return known

    def add(self, numbers: IntArray, values: IntArray) -> None:
        """Add sorted numbers that are not in the table."""
        if not len(numbers):
            return
        while self._runs and len(self._runs[-1][0]) <= len(numbers):
            have, theirs = self._runs.pop()
            numbers, values = np.concatenate([have, numbers]), np.concatenate([theirs, values])
            order = np.argsort(numbers, kind="stable")
            numbers, values = numbers[order], values[order]
        self._runs.append((numbers, values))


def _refusal(path: Path, first: Path, row: int, number: str, *, different: bool) -> ReadingError:
    where = f"{path}, row {row:,}: number {word_of(number)}"
    if different:
        return ReadingError(
            f"{where} has {'two values' if first == path else f'another value in {first}'}. Noise was used twice, "
            "or someone else speaks in the sensor's name: these are not reports of one honest device."
        )
    return ReadingError(
        f"{where} is in {first} too, with the same value: they are one recording, or overlap. Give two that "
        "were made one after the other."
    )
