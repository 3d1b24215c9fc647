"""From looks at a level, such as how many are in a room, to bins, with a bound on what one visit can change."""

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import IntArray, count, frames, positive
from cloakwork.errors import InputError, ReadingError
from cloakwork.series.bounded import Bins, BoundedSeries, Losses, bins_of, share_lost, whole
from cloakwork.series.events import default_step
from cloakwork.series.given import numbers

_HAIR = 1e-9  # far more than what sums of floats are off by


def mean_levels(
    times: ArrayLike,
    values: ArrayLike,
    bins: Bins,
    *,
    visit: int,
    most: float = 1.0,
    step: float | None = None,
) -> BoundedSeries:
    """Mean levels in bins, such that whatever happens for less than `visit` milliseconds changes a bounded amount.

    Parameters
    ----------
    times
        When the level was looked at, shape (k,), whole Unix milliseconds, in order. Public: it must not depend on who
        is there. It must be exact, too: where a look may be up to d milliseconds before or after its time, or made of
        readings that are, add 2 d to `visit`.
    values
        What was seen, shape (k,), or (series, k): clipped to [0, most].
    bins
        Public. A bin without any look has the mean 0.
    visit
        How long a visit lasts at the most, in milliseconds. All looks of that time may change, and no others.
    most
        The most that a level may count.
    step
        What means are rounded to; a power of ten, a thousandth of `most` or less, if left out.

    Notes
    -----
    A look is one of N_b in its bin b, and so moves its mean by at most most / N_b. The contribution is the largest sum
    of these over the looks of any stretch of time [t, t + visit), times the number of series, since a visit may show
    in all of them. With looks at even intervals and visits as long as a bin it is `most`, for one series.

    Examples
    --------
    >>> hour = mean_levels([0, 20, 40, 60, 80, 100], [0, 1, 1, 3, 0, 0], Bins(0, 60, 2), visit=60)
    >>> [round(value, 3) for value in hour.values[0].tolist()], round(hour.contribution, 6), hour.touched
    ([0.667, 0.333], 1.0, 2)
    """
    when = whole("times", times)
    if (np.diff(when) < 0).any():
        raise InputError("times: give one moment for each look, in order.")
    looked = numbers("values", values, error=ReadingError)
    seen = np.atleast_2d(frames("values", looked, len(when), error=ReadingError))
    if seen.ndim != 2:
        raise ReadingError(f"values has shape {seen.shape}: give (k,) or (series, k).", shape=seen.shape)
    positive("most", most)
    clipped = np.clip(seen, 0.0, most)
    places = bins_of(bins).places(when)
    good = places >= 0
    if not good.any():
        raise InputError("no look lies within the bins: nothing can be published.")
    looks = np.bincount(places[good], minlength=bins.n)
    sums = np.stack([np.bincount(places[good], row[good], minlength=bins.n) for row in clipped])
    means = sums / np.maximum(looks, 1)
    share, touched = _largest(when[good], places[good], looks[places[good]], count("visit", visit))
    cut = (clipped != seen)[:, good]
    losses = Losses(
        outside=int((~good).sum()),
        clipped=int(cut.any(axis=0).sum()),
        empty_bins=int((looks == 0).sum()),
        lower=share_lost(seen[:, good] / looks[places[good]], float(means.sum())) if cut.any() else 0.0,
    )
    return BoundedSeries(
        means,
        most * share * len(seen),
        step=default_step(most) if step is None else positive("step", step),
        touched=touched * len(seen),
        losses=losses,
    )


def _largest(when: IntArray, places: IntArray, looks: IntArray, visit: int) -> tuple[float, int]:
    """The most that one visit moves the means, for looks of 0 or 1, and in how many bins."""
    until = np.searchsorted(when, when + visit, side="left")
    sums = np.concatenate([[0.0], np.cumsum(1.0 / looks)])
    share = float((sums[until] - sums[: len(when)]).max()) + _HAIR
    fresh = np.concatenate([[0], np.cumsum(np.diff(places) > 0)])
    touched = int((fresh[until - 1] - fresh[np.arange(len(when))]).max()) + 1
    return share, touched
