"""Lines of text in little memory: as the numbers that they are, wherever nothing is lost by it."""

from collections.abc import Sequence

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing.sources.forms import Form, Part, numbers_of

_TOGETHER = 1 << 13  # lines that are kept in one way: few, so that a word among numbers costs little


class Lines:
    """Lines in the order in which they came, for a `Reader`.

    Parameters
    ----------
    form
        What they will be taken for; None if that is decided by all of them.

    Notes
    -----
    Beside the numbers there is a mark of each line's text, by which 1.0 and 1.00 are told apart.
    """

    def __init__(self, form: Form | None = None) -> None:
        self._form = form
        self._parts: list[Part] = []
        self._marks: list[IntArray] = []
        self._open: list[str] = []
        self._closed = 0

    def __len__(self) -> int:
        return self._closed + len(self._open)

    def extend(self, lines: Sequence[str]) -> None:
        """Add lines."""
        self._open.extend(lines)
        if len(self._open) >= _TOGETHER:
            self._close()

    def parts(self) -> list[Part]:
        """All lines, some as arrays of numbers."""
        self._close()
        return self._parts

    def same(self, other: "Lines") -> bool:
        """Whether the lines of two are the same, one by one, as far as both go."""
        most = min(len(self), len(other))
        return np.array_equal(self.marks()[:most], other.marks()[:most])

    def marks(self) -> IntArray:
        """The mark of each line."""
        self._close()
        return np.concatenate([marks([]), *self._marks])

    def _close(self) -> None:
        lines, self._open = self._open, []
        if lines:
            self._closed += len(lines)
            self._marks.append(marks(lines))
            numbers = numbers_of(lines, self._form)
            self._parts.append(lines if numbers is None else numbers)


def marks(texts: Sequence[str]) -> IntArray:
    """A number of 64 bits for each text, the same for the same text, by which others are told apart in this process.

    Notes
    -----
    Two texts have one mark with probability 2^-64; Python's hash is keyed by chance, so nobody can choose such texts.
    """
    return np.fromiter(map(hash, texts), np.int64, len(texts))
