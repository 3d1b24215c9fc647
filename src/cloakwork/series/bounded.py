"""Series with a bound on how much one event, person or visit can change."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cloakwork._checks import FloatArray, frozen
from cloakwork.errors import InputError
from cloakwork.series.bins import Bins
from cloakwork.series.filters import Filter
from cloakwork.series.input_checks import numbers
from cloakwork.series.mechanisms import Mechanism
from cloakwork.series.series_cloak import SeriesCloak


@dataclass(frozen=True)
class Losses:
    """Counts of events that bounding dropped or reduced. They are true numbers: never publish them.

    `lower` is the fraction by which limits reduced the sum over all bins: negative if values below 0 were clipped, 0 if
    nothing was.
    """

    outside: int = 0
    other_names: int = 0
    clipped: int = 0
    over_limit: int = 0
    empty_bins: int = 0
    lower: float = 0.0


@dataclass(frozen=True, eq=False)
class BoundedSeries:
    """Private series, and how much one protected event, person or visit can change them.

    Parameters
    ----------
    values
        Shape (series, n).
    contribution
        The most that one protected event, person or visit can change in all, over all times and series.
    step, touched
        As in `SeriesCloak`: None for whole numbers.
    losses
        Data dropped to keep to the contribution. Not private.
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
        """Make a cloak for these series. Publish with `cloak.release(series.values)`."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSeries:
    """Bounded series counted from a file or a store, with what a reader of the publication needs to know.

    Parameters
    ----------
    series
        The true values.
    title
        Name of the file or the site.
    hides
        What the claim covers, in a sentence.
    level
        "event", "user" or "visit".
    names
        Names of the series; empty for one series without a name.
    bins
        None if rows have no time.
    unit
        What the values count, for the axis of a picture.
    bound
        Name of the parameter that limits what one event, person or visit adds; empty if each event counts 1.
    inferred
        Parameters that are public, but were taken from the data.
    time_column
        Column of the times, if the file has one.
    unused_counts
        A column that looks like counts, although each row was counted as one event.
    remarks
        Sentences about the true data. Not private.
    """

    series: BoundedSeries
    title: str
    hides: str
    level: str
    names: tuple[str, ...] = ()
    bins: Bins | None = None
    unit: str = "events"
    bound: str = ""
    inferred: tuple[str, ...] = ()
    time_column: str | None = None
    unused_counts: str | None = None
    remarks: tuple[str, ...] = field(default=(), repr=False)

    @property
    def limited(self) -> bool:
        """Whether limits may have reduced the data. That limits exist is public; their effect is not."""
        return self.level != "event" or self.series.step is not None


def fraction_lost(unlimited: FloatArray, kept: float) -> float:
    """The fraction by which `kept` is below the sum of the unlimited amounts; 0 unless that sum is positive.

    >>> fraction_lost(np.array([5.0, 3.0]), 6.0), fraction_lost(np.zeros(2), 0.0)
    (0.25, 0.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(unlimited.sum())
    return 1.0 - kept / total if total > 0 else 0.0


def loss_remark(losses: Losses) -> list[str]:
    """How much limits reduced the total, as a list of at most one sentence."""
    percent = 100 * losses.lower
    direction = "lower" if percent >= 0 else "higher"
    return [f"the published total is {abs(percent):.3g} % {direction} than that of the data"] if percent else []
