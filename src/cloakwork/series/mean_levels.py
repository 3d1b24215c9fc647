"""Mean levels over time, such as how many are in a room, with a bound on how much one visit can change."""

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import IntArray, count, frames, positive
from cloakwork.errors import InputError, ReadingError
from cloakwork.series.bins import Bins
from cloakwork.series.bounded import BoundedSeries, Losses, fraction_lost
from cloakwork.series.input_checks import instance_of, numbers, whole_numbers
from cloakwork.series.tally import BINS, default_step

_TOLERANCE = 1e-9  # far more than the rounding error of the sums


def mean_levels(
    times: ArrayLike,
    values: ArrayLike,
    bins: Bins,
    *,
    visit: int,
    most: float = 1.0,
    step: float | None = None,
) -> BoundedSeries:
    """Average samples of a level in bins, so that anything shorter than `visit` milliseconds changes a bounded amount.

    Parameters
    ----------
    times
        Time of each sample, shape (k,), whole Unix milliseconds, in order. Public: times must not depend on who is
        present. They must also be exact: if a sample may be taken up to d milliseconds before or after its time, add
        2 d to `visit`.
    values
        The samples, shape (k,) or (series, k), clipped to [0, most].
    bins
        Public. A bin without a sample has the mean 0.
    visit
        The longest duration of a visit, in milliseconds. All samples within it may change, and no others.
    most
        The largest level that counts.
    step
        What means are rounded to. Defaults to the largest power of ten up to a thousandth of `most`.

    Notes
    -----
    A sample is one of N_b in its bin b, and moves the mean by at most most / N_b. The contribution is the largest sum
    of these over the samples of any stretch of time [t, t + visit), times the number of series, since a visit may show
    in all of them. With samples at even intervals and visits as long as a bin it is `most`, for one series.

    Examples
    --------
    >>> hour = mean_levels([0, 20, 40, 60, 80, 100], [0, 1, 1, 3, 0, 0], Bins(0, 60, 2), visit=60)
    >>> [round(value, 3) for value in hour.values[0].tolist()], round(hour.contribution, 6), hour.touched
    ([0.667, 0.333], 1.0, 2)
    """
    when = whole_numbers("times", times)
    if (np.diff(when) < 0).any():
        raise InputError("times: give one time for each sample, in order.")
    samples = frames("values", numbers("values", values, error=ReadingError), len(when), error=ReadingError)
    levels = np.atleast_2d(samples)
    if levels.ndim != 2:
        raise ReadingError(f"values has shape {levels.shape}: give (k,) or (series, k).", shape=levels.shape)
    positive("most", most)
    clipped = np.clip(levels, 0.0, most)
    places = instance_of("bins", bins, Bins, BINS).places(when)
    inside = places >= 0
    if not inside.any():
        raise InputError("no sample lies within the bins: nothing can be published.")
    per_bin = np.bincount(places[inside], minlength=bins.n)
    sums = np.stack([np.bincount(places[inside], row[inside], minlength=bins.n) for row in clipped])
    means = sums / np.maximum(per_bin, 1)
    share, touched = _largest_change(when[inside], places[inside], per_bin[places[inside]], count("visit", visit))
    cut = (clipped != levels)[:, inside]
    losses = Losses(
        outside=int((~inside).sum()),
        clipped=int(cut.any(axis=0).sum()),
        empty_bins=int((per_bin == 0).sum()),
        lower=fraction_lost(levels[:, inside] / per_bin[places[inside]], float(means.sum())) if cut.any() else 0.0,
    )
    return BoundedSeries(
        means,
        most * share * len(levels),
        step=default_step(most) if step is None else positive("step", step),
        touched=touched * len(levels),
        losses=losses,
    )


def _largest_change(when: IntArray, places: IntArray, per_bin: IntArray, visit: int) -> tuple[float, int]:
    """The most that one visit moves the means, for samples of 0 or 1, and in how many bins."""
    until = np.searchsorted(when, when + visit, side="left")
    sums = np.concatenate([[0.0], np.cumsum(1.0 / per_bin)])
    share = float((sums[until] - sums[: len(when)]).max()) + _TOLERANCE
    new_bins = np.concatenate([[0], np.cumsum(np.diff(places) > 0)])
    touched = int((new_bins[until - 1] - new_bins[np.arange(len(when))]).max()) + 1
    return share, touched
