"""Rows of a CSV file, many at a time."""

import csv
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TextIO

_TOGETHER = 1 << 9  # fewer than wake the garbage collector, which would look through all of them
_QUOTED = re.compile(r'"[^"]*"').sub


class Rows:
    """What a CSV file holds; commas, semicolons or tabs part the columns, whichever the first line has most of.

    Parameters
    ----------
    file
        Open as text, with `newline=""`.
    left
        How many reports are wanted. Whoever takes rows keeps it, so that none is asked of a pipe that is not needed.
    told
        Told now and then how many bytes of the file are read, unless it is a pipe.

    Notes
    -----
    An error of the file is raised only when the rows before it were taken, so that these are judged first.
    """

    def __init__(self, file: TextIO, left: int, told: Callable[[int], None]) -> None:
        head = file.readline()
        self.delimiter = _delimiter(head)
        self.left = left
        self._file, self._told = file, told
        self._rows = csv.reader(chain([head], file), delimiter=self.delimiter)
        self._problem: csv.Error | OSError | None = None

    def header(self) -> list[str]:
        """The names of the columns."""
        return [name.strip() for name in next(self._rows, [])]

    def batches(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Rows below the header, with the number of the first of them; no more at once than reports are wanted."""
        number = 2
        while batch := self._take(min(_TOGETHER, self.left)):
            yield number, batch
            number += len(batch)

    def _take(self, size: int) -> list[list[str]]:
        if self._problem is not None:
            raise self._problem
        batch: list[list[str]] = []
        try:
            for row in islice(self._rows, size):
                batch.append(row)  # noqa: PERF402 - those before an error are kept
        except (csv.Error, OSError) as problem:
            self._problem = problem
            if not batch:
                raise
        if self._file.seekable():
            self._told(self._file.buffer.tell())
        return batch


def _delimiter(head: str) -> str:
    """What parts the columns, by the first line: what it has most of, names in quotation marks apart.

    >>> _delimiter('"x, left, low";y'), _delimiter("v")
    (';', ',')
    """
    return max(",;\t", key=_QUOTED("", head).count)
