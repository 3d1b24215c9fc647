"""Publish filters of private series: the guarantee, its cost, the release, and what was published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import (
    FloatArray,
    IntArray,
    count,
    frames,
    instance_of,
    numbers,
    positive,
    read_only,
    rounded_down,
    short_repr,
)
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import (
    Explanation,
    Immutable,
    Ledger,
    WordSource,
    check_claim,
    private_words,
    simulated_words,
)
from cloakwork.series.filters import Coefficients, Filter, check_filters
from cloakwork.series.release_noise import MAX_RELEASED, ReleaseNoise, band, odds_text
from cloakwork.series.strategies import Contribution, Strategy, factor

_SMALLEST, _LARGEST = 1e-40, 1e40  # of a step or a contribution: floats hold the squares of all results
_MAX_STEPS = 2.0**50  # of a value: dividing it by the step is then exact enough
_REPRESENTED, _AT_MOST = 2.0**-40, 2.0**-10  # how far floats may be from a multiple of the step


@final
class SeriesCloak(Immutable):
    """Publishes filters of one or more private series, once, with the least noise that meets the guarantee.

    Parameters
    ----------
    filters
        What to publish; several filters share one release.
    n, series
        The number of values in each series, and the number of series.
    epsilon, delta
        The guarantee, for the whole release.
    contribution
        How much one protected event or person may change in all, over all times and series, in the unit of the values;
        or a `Contribution`, in steps.
    step
        What values are whole multiples of. They are whole numbers by default.
    circular
        Whether the first value follows the last. Otherwise the series is 0 before its start and after its end, and
        averages near an end use fewer values.
    strategy
        What to release, as `factor` makes it; by default what has the least error.

    Notes
    -----
    The release is w * x + noise for whole numbers w (`Strategy`); all outputs follow from it.

    Examples
    --------
    >>> from cloakwork.series import RunningSum, SeriesCloak
    >>> cloak = SeriesCloak(RunningSum(), 1024, epsilon=1.0, delta=1e-6)
    >>> round(cloak.expected_mse, 1)
    159.9
    """

    def __init__(
        self,
        filters: Filter | Sequence[Filter],
        n: int,
        *,
        epsilon: float,
        delta: float,
        contribution: float | Contribution = 1,
        step: float = 1.0,
        series: int = 1,
        circular: bool = False,
        strategy: Strategy | None = None,
    ) -> None:
        check_claim(epsilon, delta)
        self.single = not isinstance(filters, list | tuple)
        self.filters = check_filters(filters)
        self.n, self.series = count("n", n), count("series", series)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.step = in_range("step", step)
        self.contribution = in_steps(contribution, self.step)
        self.circular = instance_of("circular", circular, bool, "True or False")
        self.strategy = strategy or factor(self.filters, self.n, circular=circular, contribution=self.contribution)
        self.noise = self._noise()
        self._ledger = Ledger(
            1,
            unit="release",
            owner="series cloak",
            remedy="Each release costs its own budget: make a new cloak with part of the budget for each release; to "
            "experiment, use simulate(x, rng=...).",
        )
        self._freeze()

    @cached_property
    def variances(self) -> FloatArray:
        """The variance of each output, shape (filters, n)."""
        return read_only(np.asarray(self.strategy.variances * self.noise.variance * self.step**2))

    @property
    def expected_mses(self) -> FloatArray:
        """The mean squared error of each filter's output, shape (filters,)."""
        return np.asarray(self.variances.mean(axis=1))

    @property
    def expected_mse(self) -> float:
        """The mean squared error over all outputs, including the cost of rounding."""
        return float(self.variances.mean())

    def release(self, x: ArrayLike) -> "Published":
        """Publish true values, shape (n,) or (series, n). A cloak does so once."""
        steps = self._series(x)
        if steps.size != self.n * self.series:
            raise ReadingError(
                f"x has shape {steps.shape}: this cloak was made for {self.series} series of {self.n} values.",
                shape=steps.shape,
            )
        exact = self.strategy.apply(np.atleast_2d(steps))
        self._ledger.spend(1)
        return self._published(exact, private_words, steps.ndim)

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> "Published":
        """Draw from the same distribution as `release`, for any number of series.

        This is reproducible, hence not private, and spends nothing.
        """
        steps = self._series(x)
        return self._published(self.strategy.apply(np.atleast_2d(steps)), simulated_words(rng), steps.ndim)

    def without_noise(self, x: ArrayLike) -> FloatArray:
        """Return the true outputs, shape (filters, series, n). They are not private."""
        exact = self.strategy.apply(np.atleast_2d(self._series(x)))
        return self.strategy.outputs(exact.astype(np.float64)) * self.step

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs and why."""
        total = self.contribution.total * self.step
        together = "" if self.series == 1 else f" in all {self.series} series together"
        most = self.contribution
        apart = f" (at most {most.per_bin * self.step:g} in any {most.separation} bins)" if most.per_bin else ""
        edges = "The series is 0 before its start and after its end; averages near an end use fewer values."
        each = zip(self.filters, np.sqrt(self.expected_mses).tolist(), strict=True)
        return Explanation(
            hidden=(
                f"Someone who sees everything that is published can hardly tell whether the values{together} changed "
                f"by up to {total:g}{apart}: {odds_text(self.epsilon, self.delta)}.",
                "If one event adds at most that much, this hides every event (event level). If everything that one "
                "person adds stays below it, this hides every person (user level).",
            ),
            not_hidden=(
                f"The {self.n} times, the filters, the error bands and the fact of the publication are public.",
                f"Someone who adds k times {total:g} moves the release k times as far, and is hidden less.",
                "Publishing the same values again adds up: each release spends its own (epsilon, delta).",
            ),
            cost=tuple(f"{used.name} is off by {root:.4g} (root mean square)." for used, root in each),
            drivers=(
                f"{self.strategy.length:,} whole numbers are released, each with its own noise; all outputs follow.",
                "The series is a circle: its first value follows its last." if self.circular else edges,
            ),
        )

    def __repr__(self) -> str:
        names = ", ".join(used.name for used in self.filters)
        return f"SeriesCloak({names}, n={self.n}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _noise(self) -> ReleaseNoise:
        draws = self.strategy.length * self.series
        shift = self.strategy.sensitivity(self.contribution)
        try:
            return ReleaseNoise.hiding(shift, epsilon=self.epsilon, delta=self.delta, draws=draws)
        except CalibrationError as problem:
            share = problem.values.get("share")
            most = math.floor(self.contribution.total * share) * self.step if isinstance(share, float) else 0
            if not most or self.contribution.per_bin is not None:
                raise
            limit = f"{most:,.0f}" if self.step == 1.0 else f"{rounded_down(most, 3)}, in steps of {self.step:g}"
            raise CalibrationError(
                f"contribution={self.contribution.total * self.step:g}: the most that can be hidden at "
                f"epsilon={self.epsilon:g} and delta={self.delta:g} is {limit}. Give at most that, or a larger epsilon "
                "or delta.",
                contribution=self.contribution.total * self.step,
                most=most,
            ) from None

    def _series(self, x: ArrayLike) -> IntArray:
        steps = self.steps("x", x)
        if steps.ndim > 2 or steps.shape[-1] != self.n:
            raise ReadingError(f"x has shape {steps.shape}: give {self.n} values in each series.", shape=steps.shape)
        return steps

    @cached_property
    def largest_step(self) -> float:
        """Values up to this many steps are released exactly."""
        return min(MAX_RELEASED / self.strategy.largest_sum, _MAX_STEPS)

    def steps(self, name: str, x: ArrayLike) -> IntArray:
        """Return values in whole steps; refuse other values without showing any."""
        values = numbers(name, x, error=ReadingError)
        if not values.ndim or not values.size:
            raise ReadingError(
                f"{name} has shape {values.shape}: give a list of at least one value.", shape=values.shape
            )
        values = frames(name, values, values.shape[-1], error=ReadingError)
        with np.errstate(over="ignore"):
            steps = values / self.step
        whole = np.rint(steps)
        if not np.abs(whole).max() < self.largest_step:
            most = self.largest_step * self.step
            raise ReadingError(
                f"values are too large for steps of {self.step:g}: give a larger step, or values below "
                f"{rounded_down(most)} in size.",
                most=most,
            )
        # multiples of 0.1 are not exact in floats; all of them together must stay below one more step
        near = min(_AT_MOST, 1 / (4 * self.contribution.total))
        allowed = 0.0 if self.step == 1.0 else np.clip(_REPRESENTED * np.abs(whole), _REPRESENTED, near)
        far = np.argwhere(np.abs(steps - whole) > allowed)
        if len(far):
            raise ReadingError(
                f"{len(far)} values of {name}, the first at place {far[0][-1]}, are not multiples of {self.step:g}. "
                "Round what each event adds to a step before you add it up, and give that step.",
                place=int(far[0][-1]),
            )
        return whole.astype(np.int64)

    def _published(self, exact: IntArray, words: WordSource, axes: int) -> "Published":
        released = exact + self.noise.draw(exact.size, words).reshape(exact.shape)
        values = self.strategy.outputs(released.astype(np.float64)) * self.step
        spread = np.sqrt(self.variances)
        if axes == 1:
            values = values[:, 0]
        return Published(values[0], spread[0], self) if self.single else Published(values, spread, self)


@dataclass(frozen=True, eq=False)
class Published:
    """Private outputs, and the cloak that made them, which has the guarantee and explains it.

    `values` have the shape (n,), or (series, n) for several series; with a leading axis for several filters.
    `standard_deviation` is the same for all series: (n,) or (filters, n). It is public.

    >>> from cloakwork.series import WindowSum
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], WindowSum(2), epsilon=1.0, delta=1e-6)
    >>> published.values.shape, published.band(0.95).round(1).tolist()
    ((8,), [9.3, 10.4, 10.5, 10.5, 10.5, 10.5, 10.5, 9.9])
    """

    values: FloatArray
    standard_deviation: FloatArray
    cloak: SeriesCloak

    __repr__ = short_repr

    def __post_init__(self) -> None:
        read_only(self.values)
        read_only(self.standard_deviation)

    @property
    def expected_mse(self) -> float:
        """The expected mean squared error over these outputs, including the cost of rounding."""
        return float((self.standard_deviation**2).mean())

    def band(self, confidence: float = 0.95) -> FloatArray:
        """Return the error that each value stays within with this confidence; the shape of `standard_deviation`."""
        return band(self.standard_deviation, confidence)


def publish(
    x: ArrayLike, filters: Filter | Sequence[Filter], *, epsilon: float, delta: float, **options: Any
) -> Published:
    """Publish one or more filters of private series, shape (n,) or (series, n).

    The options are those of `SeriesCloak`. The number of values and of series is public: it must not depend on the
    data. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> from cloakwork.series import RunningSum
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], RunningSum(), epsilon=1.0, delta=1e-6)
    >>> published.values.shape, round(published.expected_mse**0.5)
    ((8,), 6)
    """
    values = numbers("x", x, error=ReadingError)
    if not 1 <= values.ndim <= 2 or not values.size:
        raise InputError(
            f"x has shape {values.shape}: give one series (n,) or several (series, n), of at least one value.",
            shape=values.shape,
        )
    series = len(values) if values.ndim == 2 else 1
    cloak = SeriesCloak(filters, values.shape[-1], epsilon=epsilon, delta=delta, series=series, **options)
    return cloak.release(values)


def convolve(x: ArrayLike, h: ArrayLike, *, epsilon: float, delta: float, **options: Any) -> Published:
    """Publish the circular convolution of a private x, shape (N,) or (series, N), with a public h of up to N values.

    y_i = sum over j of h_j x_{i-j mod N}. The options are those of `publish`.

    Examples
    --------
    >>> convolve([3, 0, 4, 1, 7, 0, 2, 5], [0.5, 0.5], epsilon=1.0, delta=1e-6).values.shape
    (8,)
    """
    if isinstance(h, Filter):
        raise InputError("h: give a list of real coefficients; for a filter such as Trend(24), use publish.")
    return publish(x, Coefficients(h), epsilon=epsilon, delta=delta, circular=True, **options)


def in_range(name: str, value: float) -> float:
    """Return a positive number whose squares, and those of everything computed from it, are no problem for floats."""
    number = positive(name, value, error=CalibrationError)
    if not _SMALLEST <= number <= _LARGEST:
        raise CalibrationError(
            f"{name}={number:g}: give a number between {_SMALLEST:g} and {_LARGEST:g}, in another unit.",
            parameter=name,
            **{name: number},
        )
    return number


def in_steps(contribution: float | Contribution, step: float) -> Contribution:
    """Return the contribution in steps, rounded up."""
    if isinstance(contribution, Contribution):
        return contribution
    number = in_range("contribution", contribution)
    if step == 1.0 and number != int(number):
        raise CalibrationError(
            f"contribution={number!r}: whole numbers change by whole numbers. Give one, or a step.", contribution=number
        )
    return Contribution(math.ceil(number / step * (1 - 1e-12)))
