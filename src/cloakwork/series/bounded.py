"""Series whose protected changes are bounded: what one event, person or visit can change is part of the series."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, frozen
from cloakwork.errors import InputError
from cloakwork.series.cloak import SeriesCloak
from cloakwork.series.filters import Filter
from cloakwork.series.given import array_of, numbers, one_of, whole_number
from cloakwork.series.mechanisms import Mechanism


@dataclass(frozen=True)
class Bins:
    """Equal stretches of time: `n` of `every` milliseconds each, from `start` on, in Unix milliseconds.

    They are public, and so must not follow from what happened.

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
        whole_number("start", self.start, "Unix milliseconds")

    @classmethod
    def between(cls, start: int, end: int, *, every: int) -> "Bins":
        """Bins from `start` until before `end`; refused where these are no whole number of them."""
        count("every", every)
        for name, moment in (("start", start), ("end", end)):
            whole_number(name, moment, "Unix milliseconds")
        if end <= start or (end - start) % every:
            raise InputError(
                f"from {start} to {end} is {(end - start) / every:g} bins of {every} ms: give a whole number of them.",
                start=start,
                end=end,
                every=every,
            )
        return cls(start, every, (end - start) // every)

    @property
    def end(self) -> int:
        """When the last bin is over."""
        return self.start + self.n * self.every

    @property
    def times(self) -> IntArray:
        """When each bin begins, shape (n,)."""
        return self.start + self.every * np.arange(self.n, dtype=np.int64)

    def places(self, times: ArrayLike) -> IntArray:
        """The bin of each moment, -1 for those before the first and after the last."""
        found = (whole("times", times) - self.start) // self.every
        return np.asarray(np.where((found >= 0) & (found < self.n), found, -1))


def bins_of(given: object) -> Bins:
    """The bins that were given, refused where they are something else."""
    return one_of("bins", given, Bins, "Bins, such as Bins(start=0, every=3_600_000, n=24)")


@dataclass(frozen=True)
class Losses:
    """What bounding left out or made smaller. True numbers: for whoever has the data, never to be published.

    `lower` is the share by which limits made the sum of all that lies in the bins smaller: below 0 where values below 0
    were clipped, and 0 where nothing was.
    """

    outside: int = 0
    other_names: int = 0
    clipped: int = 0
    over_limit: int = 0
    empty_bins: int = 0
    lower: float = 0.0


@dataclass(frozen=True, eq=False)
class BoundedSeries:
    """Private series with what one protected event, person or visit can change in them.

    Parameters
    ----------
    values
        Shape (series, n).
    contribution
        The most that one of those who are protected can change in all, over all times and series.
    step, touched
        As `SeriesCloak` has them: None for whole numbers.
    losses
        What was left out to keep to the contribution. Not private.
    """

    values: FloatArray
    contribution: float
    step: float | None = None
    touched: int | None = None
    losses: Losses = field(default_factory=Losses, repr=False)

    def __post_init__(self) -> None:
        values = numbers("values", self.values)
        if values.ndim != 2 or not values.size:
            raise InputError(f"values has shape {values.shape}: give (series, n).", shape=values.shape)
        object.__setattr__(self, "values", frozen(values))

    def cloak(
        self,
        filters: Filter | Sequence[Filter],
        *,
        epsilon: float,
        delta: float,
        mechanism: Mechanism | None = None,
    ) -> SeriesCloak:
        """A cloak for these series, to publish them with: `cloak.release(series.values)`."""
        return SeriesCloak(
            filters,
            self.values.shape[1],
            epsilon=epsilon,
            delta=delta,
            contribution=self.contribution,
            step=self.step,
            touched=self.touched,
            series=self.values.shape[0],
            mechanism=mechanism,
        )


def share_lost(came: FloatArray, kept: float) -> float:
    """By which share `kept` is lower than the sum of what came; 0 where that is not above 0.

    >>> share_lost(np.array([5.0, 3.0]), 6.0), share_lost(np.zeros(2), 0.0)
    (0.25, 0.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        whole_sum = float(came.sum())
    return 1.0 - kept / whole_sum if whole_sum > 0 else 0.0


def whole(name: str, values: ArrayLike, length: int | None = None) -> IntArray:
    """`values` as a list of whole numbers, refused where they are of another kind: nothing is ever cut to one."""
    array = array_of(values)
    if array is None:
        raise InputError(f"{name}: give a list of whole numbers.")
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "" if length is None else f"{length} of "
        raise InputError(f"{name} has shape {array.shape}: give a list of {wanted}whole numbers.")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name}: give whole numbers, and none of more than 64 bits.")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name}: give whole numbers below 2^63.")
    return array.astype(np.int64)
