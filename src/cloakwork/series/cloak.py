"""A private series: the claim, what it costs, and the release."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, frames, positive, rounded_down
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import (
    SERVER_TABLES,
    Explanation,
    Immutable,
    Ledger,
    WordSource,
    check_claim,
    private_words,
    simulated_words,
)
from cloakwork.series.explain import explain
from cloakwork.series.filters import Filter, check_circle, filters_of, taps_of
from cloakwork.series.given import numbers, said
from cloakwork.series.mechanisms import Mechanism, mechanism_of
from cloakwork.series.noise import Claim, Noise
from cloakwork.series.published import Published
from cloakwork.series.spectra import spectral_shape
from cloakwork.series.strategies import Task, ideal_cost

_SMALLEST, _LARGEST = 1e-40, 1e40  # of a step or a contribution: floats hold the squares of all that is made of it
_MOST = 2.0**61  # a release must fit into 63 bits, with its noise
_ROUNDED = 2.0**50  # values in steps, times places: what divisions are off by stays well below one step in all
_REPRESENTED, _AT_MOST = 2.0**-40, 2.0**-10  # how far from a multiple of the step, which floats are not exactly


def _in_range(name: str, value: float) -> float:
    number = positive(name, value, error=CalibrationError)
    if not _SMALLEST <= number <= _LARGEST:
        raise CalibrationError(
            f"{name}={number:g}: give a number between {_SMALLEST:g} and {_LARGEST:g}, in another unit.",
            **{name: number},
        )
    return number


@final
class SeriesCloak(Immutable):
    """Publishes filters of one or more private series, once, with the least noise that meets the claim.

    Parameters
    ----------
    filters
        What to publish, one filter or several; several share one release.
    n
        Values in each series.
    epsilon, delta
        The claim, for the whole release.
    contribution
        How much one protected event or person may change in all, over all times and series: the l1 distance of
        neighbours, in the unit of the values.
    step
        Values are rounded to multiples of this. None, the default, says that they are whole numbers.
    touched
        With `step`: at how many places, at the most, one event or person changes a value, since each may be rounded to
        another multiple. All of them by default; 0 if the values are multiples of the step already.
    series
        How many series are released together.
    circular
        Whether the last value is followed by the first. Otherwise there is nothing before and after, and averages are
        over what there is.
    mechanism
        `Fourier()`, `SquareRoot()` or `PaperLaplace()`; by default the better of the first two.

    Notes
    -----
    What is released is w * x + noise for a filter w of whole numbers (`Strategy`); outputs are made from that.

    Examples
    --------
    >>> from cloakwork.series import RunningSum, SeriesCloak
    >>> cloak = SeriesCloak(RunningSum(), 1024, epsilon=1.0, delta=1e-6)
    >>> round(cloak.expected_mse, 1), cloak.rounding_cost < 0.002
    (172.6, True)
    """

    def __init__(
        self,
        filters: Filter | Sequence[Filter],
        n: int,
        *,
        epsilon: float,
        delta: float,
        contribution: float = 1,
        step: float | None = None,
        touched: int | None = None,
        series: int = 1,
        circular: bool = False,
        mechanism: Mechanism | None = None,
    ) -> None:
        check_claim(epsilon, delta)
        self.single = not isinstance(filters, list | tuple)
        self.filters: tuple[Filter, ...] = filters_of(filters)
        self.n, self.series = count("n", n), count("series", series)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = _in_range("contribution", contribution)
        self.step, self.whole = 1.0 if step is None else _in_range("step", step), step is None
        self.touched = self._touched(touched)
        self.circular = self._circular(circular)
        self.mechanism: Mechanism = mechanism_of(mechanism)
        self.task = Task(self.n, tuple(taps_of(one, self.n) for one in self.filters), self.circular)
        self.strategy = self.mechanism.strategy(self.task)
        self.claim = Claim(self.epsilon, self.delta, self.units, self.series)
        self.noise = self._noise()
        self._ledger = Ledger(
            1,
            unit="release",
            owner="series cloak",
            remedy="Publishing once more costs as much again: make a new cloak with part of the budget for each "
            "release; to experiment, use simulate(x, rng=...).",
        )
        self._freeze()

    @property
    def units(self) -> int:
        """How many steps one event or person may change in all, with what rounding can add.

        A contribution that is not a multiple of the step counts as the next one: this leaves room for what dividing
        floats by the step is off by.
        """
        return math.ceil(self.contribution / self.step * (1 - 1e-12)) + self.touched

    @cached_property
    def expected_mses(self) -> FloatArray:
        """Mean squared error of each filter's output, shape (filters,)."""
        return np.asarray(self.variances.mean(axis=1))

    @property
    def expected_mse(self) -> float:
        """Mean squared error over all outputs, with the cost of rounding."""
        return float(self.expected_mses.mean())

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of each output, shape (filters, n)."""
        return np.asarray(self.strategy.variances * self.noise.variance * self.step**2)

    @property
    def ideal_mse(self) -> float:
        """What values and noise of any precision would reach, with the better of two sets of coefficients.

        They are those that the mechanism prescribes, not rounded, and the whole ones that are released. On a short
        series that is no circle the former are not quite the best there are, and rounding may happen upon better ones.
        """
        whole = float(self.strategy.variances.mean()) * (self.noise.shift / self.units) ** 2
        return min(self.strategy.ideal, whole) * self.noise.ideal * self.contribution**2

    @property
    def rounding_cost(self) -> float:
        """How much more mean squared error whole coefficients, values and noise cost, as a fraction of `ideal_mse`.

        It is above 0. Where whole coefficients happen to be better than those they were rounded from, only the rounding
        of values and noise is in it.
        """
        return self.expected_mse / self.ideal_mse - 1

    @property
    def papers_mse(self) -> float:
        """What the formula of Fawaz, Muthukrishnan and Nikolov gives for these filters at this claim."""
        return ideal_cost(self.task) * 4 * math.log(1 / self.delta) / self.epsilon**2 * self.contribution**2

    @property
    def spectral_shape(self) -> float:
        """The papers' specLB of the filters, to compare filters by: known up to a constant only."""
        return spectral_shape(self.task) * self.contribution**2

    def release(self, x: ArrayLike) -> Published:
        """Publish true values, for real: shape (n,), or (series, n). A cloak does so once.

        What was published says nothing more about the values than the claim allows.
        """
        values = numbers("x", x, error=ReadingError)
        exact = self.strategy.applied(self._steps(values))
        self._ledger.spend(1)
        return self._published(exact, values.ndim, private_words)

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> Published:
        """The same law as `release`, reproducible and therefore not private; spends nothing."""
        values = numbers("x", x, error=ReadingError)
        exact = self.strategy.applied(self._steps(values))
        return self._published(exact, values.ndim, simulated_words(rng))

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs and what drives it, in plain sentences."""
        return explain(self)

    def __repr__(self) -> str:
        names = ", ".join(one.name for one in self.filters)
        return f"SeriesCloak({names}, n={self.n}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _circular(self, given: bool) -> bool:
        if not isinstance(given, bool | np.bool_):
            raise InputError(f"circular={said(given)}: give True or False.")
        if given:
            check_circle(self.filters, self.n)
        return bool(given)

    def _noise(self) -> Noise:
        try:
            return self.mechanism.noise(self.strategy, self.claim)
        except CalibrationError as problem:
            ratio = problem.values.get("ratio")
            if not isinstance(ratio, float):
                raise
            raise CalibrationError(
                f"contribution={self.contribution:g}: the noise would be {ratio:.3g} steps of {self.step:g}, and there "
                f"are tables for up to {SERVER_TABLES.ratio:.3g}. Give a smaller contribution, a larger step or "
                "a larger "
                "epsilon.",
                contribution=self.contribution,
                most=self.step * (self.units * SERVER_TABLES.ratio / ratio - self.touched),
            ) from None

    def _touched(self, given: int | None) -> int:
        if self.whole:
            if given is not None:
                raise CalibrationError("touched without step: whole numbers are not rounded. Leave it out.")
            if self.contribution != int(self.contribution):
                raise CalibrationError(
                    f"contribution={self.contribution!r}: whole numbers change by whole numbers. Give one, or a step.",
                    contribution=self.contribution,
                )
            return 0
        places = self.n * self.series
        if given is None:
            return places
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 0 <= given <= places:
            raise CalibrationError(f"touched={given!r}: give a whole number from 0 to {places}.", touched=given)
        return int(given)

    def _steps(self, x: FloatArray) -> IntArray:
        values = frames("x", x, self.n, error=ReadingError)
        if values.ndim > 2 or values.size != self.n * self.series:
            raise ReadingError(
                f"x has shape {values.shape}: this cloak was made for {self.series} series of {self.n} values.",
                shape=values.shape,
            )
        with np.errstate(over="ignore"):
            steps = values.reshape(self.series, self.n) / self.step
        whole = np.rint(steps)
        weight = float(np.abs(self.strategy.weights).sum(axis=-1).max())
        most = min(_MOST / weight, _ROUNDED / max(self.touched, 1))
        if not np.abs(whole).max() < most:
            raise ReadingError(
                f"values are too large for steps of {self.step:g}: give a coarser step, or values below "
                f"{rounded_down(most * self.step)} in size.",
                step=self.step,
                most=most * self.step,
            )
        if self.touched == 0:
            self._refuse_fractions(steps, whole)
        return whole.astype(np.int64)

    def _refuse_fractions(self, steps: FloatArray, whole: FloatArray) -> None:
        # what units of change hold in all, rounded to multiples, must stay below one more
        most = min(_AT_MOST, 1 / (4 * self.units))
        allowed = 0.0 if self.whole else np.clip(_REPRESENTED * np.abs(whole), _REPRESENTED, most)
        far = np.argwhere(np.abs(steps - whole) > allowed)
        if not len(far):
            return
        place = int(far[0][-1])
        advice = (
            f"Round them, or give step, such as step={self.contribution / 100:g}"
            if self.whole
            else "Leave out touched=0"
        )
        raise ReadingError(
            f"{len(far)} values, the first at place {place}, are not multiples of {self.step:g}. {advice}.",
            place=place,
        )

    def _published(self, exact: IntArray, axes: int, words: WordSource) -> Published:
        released = exact + self.noise.draw(exact.size, words).reshape(exact.shape)
        values = self.strategy.outputs(released.astype(np.float64)) * self.step
        spread = np.sqrt(self.variances)
        if axes == 1:
            values = values[:, 0]
        if self.single:
            values, spread = values[0], spread[0]
        return Published(values=values, standard_deviation=spread, cloak=self)
