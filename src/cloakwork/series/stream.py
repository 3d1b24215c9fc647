"""Streams: private outputs of a filter while the data arrives (continual observation)."""

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Event, Lock
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, array_or_none, count, frames, frozen, numbers
from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import Explanation, Immutable, Ledger, check_claim, private_words, simulated_words
from cloakwork.series.causal_filter import Recursion, causal_mechanism, causal_taps, settled_length
from cloakwork.series.convolution import convolve_whole, inverse, product
from cloakwork.series.filters import Filter, check_filter
from cloakwork.series.release_noise import MOST_RELEASED, ReleaseClaim, band_factor, odds_text
from cloakwork.series.series_cloak import SeriesCloak
from cloakwork.series.strategies import Strategy, Task

_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class Moment:
    """The published output at one time, counted from 0, and its standard deviation."""

    time: int
    value: float
    standard_deviation: float

    def band(self, confidence: float = 0.95) -> float:
        """The error that the value stays within with this confidence."""
        return float(self.standard_deviation * band_factor(confidence))


@dataclass(frozen=True, eq=False)
class Outputs:
    """Successive outputs of a stream: values of shape (n,) or (runs, n), and their standard deviations, (n,)."""

    values: FloatArray
    standard_deviation: FloatArray

    def __post_init__(self) -> None:
        frozen(self.values)
        frozen(self.standard_deviation)


@final
class Stream(Immutable):
    """Publishes a filter of a private series value by value, as the values arrive.

    Parameters
    ----------
    filter
        What to publish: any filter that does not look ahead.
    horizon
        The largest number of values. None for an endless stream, which needs a filter that forgets: windows, averages,
        `Decay`, any coefficients with a bounded error; not running sums, nor slow powers.
    epsilon, delta
        The claim, for everything that the stream ever publishes.
    contribution
        How much one protected event or person may change in all, over all times: a whole number, like the values.
    band
        Keep only this number of coefficients of the strategy: less memory, more error. Without a horizon there is a
        default.
    together
        The number of streams, made alike, that share one claim. `contribution` then bounds the Euclidean norm of what
        one event or person changes in all of them.

    Notes
    -----
    At time t the stream releases the whole number r_t = w_0 x_t + w_1 x_{t-1} + ... + n_t: w is the square root of the
    filter as a power series, in whole numbers (`SquareRoot`), and n_t is fresh rounded Gaussian noise. A change of one
    unit moves all releases together by at most ||w||_2, however long the stream is. So one (epsilon, delta) covers all
    of it, and the output (h / w) * r is post-processing.

    The claim also holds for adaptive inputs, where values depend on earlier outputs: r_t uses values up to time t only,
    so, given the past, two neighbouring histories differ in r_t by a shift of the mean alone, and the squares of all
    shifts add up to at most ||w||^2 contribution^2, however they are chosen. This needs a lower triangular strategy and
    Gaussian noise (Denisov, McMahan, Rush, Smith and Thakurta).

    In the long run a stream is as accurate as a batch: |W|^2 = |H| on the unit circle, so the error of a filter that
    forgets tends to that of the best mechanism on a circle, `Fourier`.

    A stream lives in the memory of one process. It cannot be stored, copied or shared with a fork: the copy would draw
    other noise for the same values. After a crash or an interrupted push it cannot continue: start a new stream with
    its own budget, and count both against everyone whose values were in the first.

    Examples
    --------
    >>> from cloakwork.series import Decay, Stream
    >>> stream = Stream(Decay(0.9), None, epsilon=1.0, delta=1e-6)
    >>> first = stream.push(12)
    >>> first.time, round(first.standard_deviation, 1), round(stream.expected_mse**0.5, 1)
    (0, 5.1, 6.1)
    """

    _kind = "stream"

    def __init__(
        self,
        filter: Filter,  # noqa: A002 - it is one
        horizon: int | None,
        *,
        epsilon: float,
        delta: float,
        contribution: int = 1,
        band: int | None = None,
        together: int = 1,
    ) -> None:
        check_claim(epsilon, delta)
        self.filter = check_filter(filter)
        self.horizon = None if horizon is None else count("horizon", horizon)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        self.together = count("together", together)
        taps = causal_taps(filter, self.horizon)
        self.settled = self.horizon if self.horizon is not None else settled_length(taps, band)
        self.task = Task(self.settled, (taps,))
        self.mechanism = causal_mechanism(filter, self.task, band, self.horizon)
        self.strategy: Strategy = self.mechanism.strategy(self.task)
        self.weights: IntArray = frozen(np.trim_zeros(self.strategy.weights, "b"))
        # At least as many draws as neighbours can differ in. A unit of change affects as many releases as there are
        # weights; without a horizon, all others have the same law for both neighbours, errors of the tables included.
        series = together if self.horizon is not None else together * self.contribution
        claim = ReleaseClaim(self.epsilon, self.delta, self.contribution, series)
        self.noise = self.mechanism.noise(self.strategy, claim)
        self._scale = self.task.scales[0]
        self._weight = float(np.abs(self.weights).sum())
        self._recursion = Recursion(self.weights, taps.values, self.horizon)
        self._lock, self._open = Lock(), Event()
        self._ledger = Ledger(
            _ENDLESS if self.horizon is None else self.horizon,
            unit="values",
            owner="stream",
            remedy="Start a new stream with its own budget, or give a longer horizon next time; to experiment, use "
            "simulate(x, rng=...).",
        )
        self._freeze()

    @property
    def time(self) -> int:
        """Number of values so far."""
        return self._ledger.spent

    @property
    def band(self) -> int:
        """Number of values that each release depends on."""
        return len(self.weights)

    @property
    def memory(self) -> int:
        """The most numbers that the stream keeps, of eight bytes each."""
        return self._recursion.memory

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the output at each time, shape (horizon,); without a horizon, until it has settled."""
        return frozen(np.asarray(self.strategy.variances[0] * self.noise.variance))

    @property
    def expected_mse(self) -> float:
        """Mean squared error over the horizon; without one, in the long run."""
        return float(self.variances.mean() if self.horizon is not None else self.variances[-1])

    @cached_property
    def batch_mse(self) -> float:
        """The mean squared error of publishing the whole series at its end, with a `SeriesCloak` at the same claim.

        Without a horizon, the error of the last value of a series as long as the stream needs to settle.
        """
        cloak = SeriesCloak(
            self.filter, self.settled, epsilon=self.epsilon, delta=self.delta, contribution=self.contribution
        )
        return cloak.expected_mse if self.horizon is not None else float(cloak.variances[0, -1])

    def standard_deviation(self, time: int) -> float:
        """Standard deviation of the output at a time, counted from 0."""
        if isinstance(time, bool) or not isinstance(time, int | np.integer) or time < 0 or not self._reaches(time):
            allowed = "from 0 on" if self.horizon is None else f"from 0 to {self.horizon - 1}"
            raise InputError(f"time={time!r}: give a whole number {allowed}.", time=time)
        return math.sqrt(self.variances[min(time, self.settled - 1)])

    def push(self, value: float) -> Moment:
        """Take the next true value, a whole number, and publish the output at its time.

        Values beyond the horizon are refused before anything is released.
        """
        step = self._step(value)
        with self._spending(1):
            noise = int(self.noise.draw(1, private_words)[0])
            return self._moment(self.time - 1, self._recursion.next(step, noise))

    def extend(self, values: ArrayLike) -> Outputs:
        """Push several values, shape (k,), one after the other, and publish their outputs."""
        steps = self._steps("values", values)
        if steps.ndim != 1:
            raise ReadingError(f"values has shape {steps.shape}: give one list of values.", shape=steps.shape)
        with self._spending(len(steps)) as start:
            noise = self.noise.draw(len(steps), private_words)
            pairs = zip(steps.tolist(), noise.tolist(), strict=True)
            moments = [self._moment(start + k, self._recursion.next(*pair)) for k, pair in enumerate(pairs)]
        return Outputs(
            np.array([moment.value for moment in moments]),
            np.array([moment.standard_deviation for moment in moments]),
        )

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> Outputs:
        """Simulate a fresh stream for values of shape (n,), or several of shape (runs, n).

        The outputs have the same distribution as those of `push`. They are reproducible, hence not private; this spends
        nothing.
        """
        steps = self._steps("x", x)
        n = steps.shape[-1]
        if not self._reaches(n - 1):
            raise ReadingError(f"x has {n} values: the horizon is {self.horizon}.", n=n, horizon=self.horizon)
        noise = self.noise.draw(steps.size, simulated_words(rng)).reshape(-1, n)
        released = (convolve_whole(self.weights, np.atleast_2d(steps))[:, :n] + noise).astype(np.float64)
        answer = product(self.task.taps[0].values, inverse(self.weights.astype(np.float64), n), n)
        scale = self._scale[np.minimum(np.arange(n), self.settled - 1)]
        values = np.stack([product(answer, row, n) for row in released]) * scale
        return Outputs(values.reshape(steps.shape), np.array([self.standard_deviation(time) for time in range(n)]))

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs compared with a batch, and why."""
        ratio = self.expected_mse / self.batch_mse
        price = f"have {ratio:.3g} times the mean squared error" if ratio > 1.005 else "cost nothing"
        span = "in the long run" if self.horizon is None else f"over {self.horizon:,} values"
        hidden = (
            "Someone who sees every output, from the first to the last, can hardly tell whether the values changed by "
            f"up to {self.contribution}, all times together: {odds_text(self.epsilon, self.delta)}.",
            "This also holds if later values depend on earlier outputs.",
        )
        not_hidden = (
            "The times and the number of values are public: push at a fixed rate, zeros included.",
            f"A change of k times {self.contribution} is hidden with k mu only: someone who comes back day after day "
            "is hidden only as far as all their values together stay within the contribution.",
            "After a crash a new stream begins, with its own budget: both count for everyone who was in the first.",
        )
        cost = (
            f"Outputs are off by {math.sqrt(self.expected_mse):.4g} (root mean square) {span}; published together at "
            f"the end, they would be off by {math.sqrt(self.batch_mse):.4g}: timely outputs {price}.",
            f"The first output is off by {math.sqrt(self.variances[0]):.4g}, the last by "
            f"{math.sqrt(self.variances[-1]):.4g}.",
        )
        drivers = (
            f"{type(self.mechanism).__name__}: one whole number is released for each value, computed from the last "
            f"{self.band:,}, with its own noise; outputs follow from these.",
            f"The stream keeps up to {self.memory:,} numbers of the past.",
        )
        return Explanation(hidden, not_hidden, cost, drivers)

    def __repr__(self) -> str:
        return (
            f"Stream({self.filter.name}, horizon={self.horizon}, epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"time={self.time})"
        )

    def __reduce__(self) -> str:
        raise BudgetError("a stream cannot be copied or stored: the copy would draw other noise for the same values.")

    @contextmanager
    def _spending(self, number: int) -> Iterator[int]:
        """Spend `number` values of the budget. An interruption before the release ends the stream.

        Otherwise values that are pushed again would count twice.
        """
        with self._lock:
            if self._open.is_set():
                raise BudgetError("this stream was interrupted while it took a value: start a new one.")
            start = self.time
            self._ledger.spend(number)
            self._open.set()
            yield start
            self._open.clear()

    def _reaches(self, time: int) -> bool:
        return self.horizon is None or time < self.horizon

    def _moment(self, time: int, output: float) -> Moment:
        place = min(time, self.settled - 1)
        return Moment(time, output * float(self._scale[place]), math.sqrt(self.variances[place]))

    def _step(self, value: float) -> int:
        step: int | None = None
        with suppress(TypeError):
            step = operator.index(value)  # type: ignore[arg-type]
        if step is None:  # others may be whole too, such as 3.0
            array = array_or_none(value)
            if array is None or array.ndim:
                raise ReadingError("push takes one value: use extend for several.")
            return int(self._steps("value", [value])[0])
        if abs(step) >= MOST_RELEASED / self._weight:
            raise self._too_large()
        return step

    def _steps(self, name: str, values: object) -> IntArray:
        array = numbers(name, values, error=ReadingError)
        if array.ndim not in (1, 2) or not array.size:
            raise ReadingError(f"{name} has shape {array.shape}: give a list of at least one value.", shape=array.shape)
        steps = frames(name, array, array.shape[-1], error=ReadingError)
        far = np.argwhere(steps != np.rint(steps))
        if len(far):
            place = int(far[0][-1])
            raise ReadingError(
                f"{name}[{place}] is not a whole number ({len(far)} such entries): a stream takes whole numbers. Use a "
                "smaller unit, also for the contribution.",
                place=place,
            )
        if np.abs(steps).max() * self._weight >= MOST_RELEASED:
            raise self._too_large()
        return steps.astype(np.int64)

    def _too_large(self) -> ReadingError:
        return ReadingError(
            f"a value is too large: this stream takes up to {MOST_RELEASED / self._weight:.3g}. Use a larger unit.",
            most=MOST_RELEASED / self._weight,
        )
