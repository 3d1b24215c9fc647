"""A private series: the claim, its cost, the release, and what was published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, describe_argument, frames, numbers, positive, rounded_down
from cloakwork._extras import optional_parts
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
from cloakwork.series.filters import Filter, check_circle, check_filters, check_taps
from cloakwork.series.mechanisms import Least, Mechanism, check_mechanism
from cloakwork.series.release_noise import (
    MOST_RELEASED,
    Publication,
    ReleaseClaim,
    ReleaseNoise,
    band_factor,
    odds_text,
    percent_text,
)
from cloakwork.series.strategies import CausalStrategy, Task, ideal_cost, spectral_shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST, _LARGEST = 1e-40, 1e40  # of a step or a contribution: floats hold the squares of all results
_ROUNDED = 2.0**50  # values in steps, times places: errors of divisions stay well below one step in all
_REPRESENTED, _AT_MOST = 2.0**-40, 2.0**-10  # how far floats may be from a multiple of the step


def _in_range(name: str, value: float) -> float:
    number = positive(name, value, error=CalibrationError)
    if not _SMALLEST <= number <= _LARGEST:
        limits = f"between {_SMALLEST:g} and {_LARGEST:g}, in another unit"
        raise CalibrationError(f"{name}={number:g}: give a number {limits}.", **{name: number})
    return number


@final
class SeriesCloak(Immutable):
    """Publishes filters of one or more private series, once, with the least noise that meets the claim.

    Parameters
    ----------
    filters
        What to publish; several filters share one release.
    n
        Number of values in each series.
    epsilon, delta
        The claim, for the whole release.
    contribution
        How much one protected event or person may change in all, over all times and series: the l1 distance of
        neighbours, in the unit of the values.
    step
        Values are rounded to multiples of this. None, the default, means that they are whole numbers.
    touched
        With `step`: the largest number of places at which one event or person changes a value, since each may be
        rounded to another multiple. All of them by default; 0 if the values are multiples of the step already.
    series
        Number of series released together.
    circular
        Whether the first value follows the last. Otherwise the series is 0 before its start and after its end, and
        averages near an end use fewer values.
    mechanism
        `Fourier()` or `SquareRoot()`; by default the better of the first two.

    Notes
    -----
    The release is w * x + noise for a filter w of whole numbers (`Strategy`); all outputs follow from it.

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
        self.filters: tuple[Filter, ...] = check_filters(filters)
        self.n, self.series = count("n", n), count("series", series)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = _in_range("contribution", contribution)
        self.step, self.whole = 1.0 if step is None else _in_range("step", step), step is None
        self.touched = self._touched(touched)
        if not isinstance(circular, bool | np.bool_):
            raise InputError(f"circular={describe_argument(circular)}: give True or False.")
        self.circular = bool(circular)
        if circular:
            check_circle(self.filters, self.n)
        self.mechanism: Mechanism = check_mechanism(mechanism)
        self.task = Task(self.n, tuple(check_taps(used, self.n) for used in self.filters), self.circular)
        self.strategy = self.mechanism.strategy(self.task)
        self.claim = ReleaseClaim(self.epsilon, self.delta, self.units, self.series)
        self.noise = self._noise()
        self._ledger = Ledger(
            1,
            unit="release",
            owner="series cloak",
            remedy="Each release costs its own budget: make a new cloak with part of the budget for each release; to "
            "experiment, use simulate(x, rng=...).",
        )
        self._freeze()

    @property
    def units(self) -> int:
        """The number of steps that one event or person may change in all, including rounding.

        A contribution that is not a multiple of the step is rounded up, which leaves room for the error of dividing
        floats by the step.
        """
        return math.ceil(self.contribution / self.step * (1 - 1e-12)) + self.touched

    @cached_property
    def expected_mses(self) -> FloatArray:
        """Mean squared error of each filter's output, shape (filters,)."""
        return np.asarray(self.variances.mean(axis=1))

    @property
    def expected_mse(self) -> float:
        """Mean squared error over all outputs, including the cost of rounding."""
        return float(self.expected_mses.mean())

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of each output, shape (filters, n)."""
        return np.asarray(self.strategy.variances * self.noise.variance * self.step**2)

    @property
    def ideal_mse(self) -> float:
        """The mean squared error without rounding of values and noise, for the better of two sets of coefficients.

        These are the unrounded ones of the mechanism and the whole ones that are released. On a short series that is
        not a circle the former are not quite optimal, and rounding may happen to improve them.
        """
        whole = float(self.strategy.variances.mean()) * (self.noise.shift / self.units) ** 2
        return min(self.strategy.ideal, whole) * self.noise.ideal * self.contribution**2

    @property
    def rounding_cost(self) -> float:
        """The increase of the mean squared error due to whole coefficients, values and noise, relative to `ideal_mse`.

        It is above 0. If rounding happens to improve the coefficients, it covers the rounding of values and noise only.
        """
        return self.expected_mse / self.ideal_mse - 1

    @property
    def papers_mse(self) -> float:
        """The formula of Fawaz, Muthukrishnan and Nikolov for these filters at this claim."""
        return ideal_cost(self.task) * 4 * math.log(1 / self.delta) / self.epsilon**2 * self.contribution**2

    @property
    def spectral_shape(self) -> float:
        """The specLB of the papers, for comparing filters: it is a bound only up to an unknown constant."""
        return spectral_shape(self.task) * self.contribution**2

    def release(self, x: ArrayLike) -> "Published":
        """Publish true values, shape (n,) or (series, n). A cloak does so once."""
        values = numbers("x", x, error=ReadingError)
        exact = self.strategy.applied(self._steps(values))
        self._ledger.spend(1)
        return self._published(exact, values.ndim, private_words)

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> "Published":
        """Draw from the same distribution as `release`; reproducible, hence not private. Spends nothing."""
        values = numbers("x", x, error=ReadingError)
        exact = self.strategy.applied(self._steps(values))
        return self._published(exact, values.ndim, simulated_words(rng))

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs and why."""
        return _explanation(self)

    def __repr__(self) -> str:
        names = ", ".join(used.name for used in self.filters)
        return f"SeriesCloak({names}, n={self.n}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _noise(self) -> ReleaseNoise:
        try:
            return self.mechanism.noise(self.strategy, self.claim)
        except CalibrationError as problem:
            ratio = problem.values.get("ratio")
            if not isinstance(ratio, float):
                raise
            most = self.step * (self.units * SERVER_TABLES.ratio / ratio - self.touched)
            claim = f"epsilon={self.epsilon:g} and delta={self.delta:g}"
            limit = f"{math.floor(most):,}" if self.whole else f"{rounded_down(most, 3)}, in steps of {self.step:g}"
            reachable = f"the most that can be hidden at {claim} is {limit}. Give at most that, "
            if most < self.step:
                reachable = f"{claim} need more noise than can be drawn. Give "
            coarser = "" if self.whole else "a larger step, "
            raise CalibrationError(
                f"contribution={self.contribution:g}: {reachable}{coarser}a larger epsilon or a larger delta.",
                contribution=self.contribution,
                most=most,
            ) from None

    def _touched(self, touched: int | None) -> int:
        if self.whole:
            if touched is not None:
                raise CalibrationError("touched without step: whole numbers are not rounded. Leave it out.")
            if self.contribution != int(self.contribution):
                raise CalibrationError(
                    f"contribution={self.contribution!r}: whole numbers change by whole numbers. Give one, or a step.",
                    contribution=self.contribution,
                )
            return 0
        places = self.n * self.series
        if touched is None:
            return places
        if isinstance(touched, bool) or not isinstance(touched, int | np.integer) or not 0 <= touched <= places:
            raise CalibrationError(f"touched={touched!r}: give a whole number from 0 to {places}.", touched=touched)
        return int(touched)

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
        most = min(MOST_RELEASED / weight, _ROUNDED / max(self.touched, 1))
        if not np.abs(whole).max() < most:
            raise ReadingError(
                f"values are too large for steps of {self.step:g}: give a larger step, or values below "
                f"{rounded_down(most * self.step)} in size.",
                step=self.step,
                most=most * self.step,
            )
        if self.touched == 0:
            self._refuse_fractions(steps, whole)
        return whole.astype(np.int64)

    def _refuse_fractions(self, steps: FloatArray, whole: FloatArray) -> None:
        # a change of `units` steps, rounded to multiples, must stay below one more step
        most = min(_AT_MOST, 1 / (4 * self.units))
        allowed = 0.0 if self.whole else np.clip(_REPRESENTED * np.abs(whole), _REPRESENTED, most)
        far = np.argwhere(np.abs(steps - whole) > allowed)
        if not len(far):
            return
        place = int(far[0][-1])
        rounding = f"Round them, or give step, such as step={self.contribution / 100:g}"
        advice = rounding if self.whole else "Leave out touched=0"
        raise ReadingError(
            f"{len(far)} values, the first at place {place}, are not multiples of {self.step:g}. {advice}.",
            place=place,
        )

    def _published(self, exact: IntArray, axes: int, words: WordSource) -> "Published":
        released = exact + self.noise.draw(exact.size, words).reshape(exact.shape)
        values = self.strategy.outputs(released.astype(np.float64)) * self.step
        spread = np.sqrt(self.variances)
        if axes == 1:
            values = values[:, 0]
        if self.single:
            values, spread = values[0], spread[0]
        return Published(values=values, standard_deviation=spread, cloak=self)


@dataclass(frozen=True, eq=False)
class Published(Publication):
    """Private outputs of one or more filters.

    `values` have the shape (n,), or (series, n) for several series; with a leading axis for several filters.
    `standard_deviation` is that of each value, the same for all series: shape (n,) or (filters, n). It is public, since
    it does not depend on the data. The `cloak` has the claim, the mechanism and its cost.

    >>> from cloakwork.series import WindowSum, publish
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], WindowSum(2), epsilon=1.0, delta=1e-6)
    >>> published.values.shape, published.band(0.95).round(1).tolist()
    ((8,), [9.3, 10.4, 10.5, 10.5, 10.5, 10.5, 10.5, 10.5])
    """

    values: FloatArray
    standard_deviation: FloatArray
    cloak: SeriesCloak

    def __post_init__(self) -> None:
        for array in (self.values, self.standard_deviation):
            array.setflags(write=False)

    @property
    def spectral_shape(self) -> float:
        """The specLB of the papers, for comparing filters: it is a bound only up to an unknown constant."""
        return self.cloak.spectral_shape

    def band(self, confidence: float = 0.95) -> FloatArray:
        """The error that each value stays within with this confidence; the shape of `standard_deviation`."""
        return np.asarray(self.standard_deviation * band_factor(confidence))

    def plot(self, ax: "Axes | None" = None, *, confidence: float = 0.95) -> "Axes":
        """Draw a line with its band for each filter and series, on new axes by default."""
        if ax is not None and not callable(getattr(ax, "fill_between", None)):
            raise InputError(f"ax={describe_argument(ax)}: give axes of Matplotlib, or leave it out.")
        with optional_parts():
            from matplotlib.figure import Figure  # noqa: PLC0415 - slow to load, and rarely needed

        axes = Figure(figsize=(8.0, 4.2), layout="constrained").subplots() if ax is None else ax
        width = np.atleast_2d(self.band(confidence))
        rows = self.values.reshape(len(width), -1, self.values.shape[-1])
        times = np.arange(rows.shape[-1])
        for used, lines, error in zip(self.cloak.filters, rows, width, strict=True):
            for number, line in enumerate(lines):
                label = used.name if len(lines) == 1 else f"{used.name}, series {number}"
                [drawn] = axes.plot(times, line, label=label)
                axes.fill_between(times, line - error, line + error, alpha=0.25, color=drawn.get_color(), linewidth=0)
        title = f"{100 * confidence:g} % bands: epsilon {self.epsilon:g}, delta {self.delta:g}"
        axes.set(xlabel="time", ylabel="published", title=title)
        axes.legend()
        return axes


def _explanation(cloak: SeriesCloak) -> Explanation:
    places = "" if cloak.series == 1 else f" in all {cloak.series} series together"
    if 0 < cloak.touched < cloak.n * cloak.series:
        places = f", at up to {cloak.touched} of them" + places
    hidden = (
        f"Someone who sees everything that is published can hardly tell whether the values{places} changed by up to "
        f"{cloak.contribution:g}: {odds_text(cloak.epsilon, cloak.delta)}.",
        "If each event adds at most that much, this hides single events (event level); if everything that one person "
        "adds stays below it, it hides people (user level).",
    )
    not_hidden = (
        f"The {cloak.n} times, the filters and the error bands are public, as is the fact of the publication.",
        f"A change of k times {cloak.contribution:g} moves the release k times as far: someone who adds more than the "
        "stated contribution is hidden less.",
        "Publishing the same values again, or another view of the same events, adds up: each release spends its own "
        "(epsilon, delta).",
    )
    each = zip(cloak.filters, cloak.expected_mses.tolist(), strict=True)
    cost = [] if cloak.single else [f"{used.name} is off by {math.sqrt(mse):.4g}." for used, mse in each]
    cost += [
        f"{'Values' if cloak.single else 'All'} are off by {math.sqrt(cloak.expected_mse):.4g} (root mean square), and "
        f"by {math.sqrt(cloak.ideal_mse):.4g} without rounding: whole numbers cost "
        f"{percent_text(cloak.rounding_cost)} of the mean squared error.",
        f"The formula of the paper on private convolution gives {math.sqrt(cloak.papers_mse):.4g}.",
    ]
    if cloak.touched:
        cost.append(
            f"Values are rounded to multiples of {cloak.step:g}, which may move {cloak.touched} of them to another "
            f"multiple: the noise covers {cloak.units * cloak.step:.4g} instead of {cloak.contribution:g}."
        )
    mechanism = type(cloak.mechanism).__name__
    if isinstance(cloak.mechanism, Least):
        mechanism = "SquareRoot" if isinstance(cloak.strategy, CausalStrategy) else "Fourier"
    edges = "The series is 0 before its start and after its end; averages near an end use fewer values."
    if cloak.circular:
        edges = "The series is a circle: its first value follows its last."
    released = f"{cloak.strategy.length:,} whole numbers are released, each with its own noise"
    drivers = (f"{mechanism}: {released}; everything that is published follows from them.", edges)
    return Explanation(hidden, not_hidden, tuple(cost), drivers)
