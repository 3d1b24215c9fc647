"""Bins: equal, public stretches of time, and the spans that people write for them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import IntArray, count, whole_numbers
from cloakwork.errors import InputError

HOUR = 3_600_000
MOST_VALUES = 2**24
_UNITS = {"s": 1000, "m": 60_000, "h": HOUR, "d": 24 * HOUR, "w": 7 * 24 * HOUR}


@dataclass(frozen=True)
class Bins:
    """`n` equal stretches of time of `every` milliseconds each, starting at `start`, in Unix milliseconds.

    Bins are public, so they must not depend on the events.

    Examples
    --------
    >>> day = Bins.between(1_794_700_800_000, 1_794_787_200_000, every=3_600_000)
    >>> day.n, day.places([1_794_700_800_000, 1_794_787_199_999, 1_794_787_200_000]).tolist()
    (24, [0, 23, -1])
    """

    start: int
    every: int
    n: int

    def __post_init__(self) -> None:
        count("every", self.every)
        count("n", self.n)
        count("start", self.start, least=-math.inf)

    @classmethod
    def between(cls, start: int, end: int, *, every: int, series: int = 1) -> "Bins":
        """Divide the time from `start` until just before `end` into a whole number of bins.

        Refuses bins that would fill the memory for this number of series.
        """
        if count("end", end, least=-math.inf) <= cls(start, every, 1).start:
            raise InputError(
                f"the period from {utc_text(start)} to {utc_text(end)} is empty: give a start before the end.",
                parameter=("start", "end"),
            )
        if (end - start) % every:
            low = start + (end - start) // every * every
            near = utc_text(low + every) if low == start else f"{utc_text(low)} or {utc_text(low + every)}"
            raise InputError(
                f"the time from {utc_text(start)} to {utc_text(end)} is not a whole number of bins of "
                f"{span_text(every)}: give {near} as the end, or bins of another length.",
                parameter=("end", "every"),
            )
        n = (end - start) // every
        if n * series > MOST_VALUES:
            raise InputError(
                f"{n:,} bins for each of {series:,} series are more than {MOST_VALUES:,} values: give a shorter "
                "period or longer bins.",
                parameter=("start", "end", "every"),
                most=MOST_VALUES,
            )
        return cls(start, every, n)

    @property
    def end(self) -> int:
        """The end of the last bin."""
        return self.start + self.n * self.every

    @property
    def times(self) -> IntArray:
        """The start of each bin, shape (n,)."""
        return self.start + self.every * np.arange(self.n, dtype=np.int64)

    def places(self, times: ArrayLike) -> IntArray:
        """The bin of each time; -1 for times before the first bin or after the last."""
        places = (whole_numbers("times", times) - self.start) // self.every
        return np.asarray(np.where((places >= 0) & (places < self.n), places, -1))


def span_text(milliseconds: int) -> str:
    """Write a span in the largest unit that divides it.

    >>> span_text(86_400_000), span_text(5_400_000), span_text(250)
    ('1d', '90m', '250ms')
    """
    for unit, size in reversed(_UNITS.items()):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def utc_text(milliseconds: int) -> str:
    """Write Unix milliseconds as a time in UTC, to the second where that is exact.

    >>> utc_text(1_791_158_400_000), utc_text(250)
    ('2026-10-05T00:00:00Z', '1970-01-01T00:00:00.250Z')
    """
    unit: Any = "ms" if milliseconds % 1000 else "s"
    return str(np.datetime_as_string(np.datetime64(milliseconds, "ms"), unit=unit, timezone="UTC"))
