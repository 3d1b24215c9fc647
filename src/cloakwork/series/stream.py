"""Streaming: private outputs of a filter while the data arrives (continual observation)."""

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Event, Lock
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, frames, frozen
from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import Explanation, Immutable, Ledger, WordSource, check_claim, private_words, simulated_words
from cloakwork.series.cloak import SeriesCloak
from cloakwork.series.endless import causal, looking_back, settled_length
from cloakwork.series.exact import convolve_whole
from cloakwork.series.explain_stream import explain
from cloakwork.series.filters import Filter, filter_of
from cloakwork.series.given import array_of, numbers
from cloakwork.series.moments import Moment, Outputs
from cloakwork.series.noise import Claim
from cloakwork.series.power import inverse, product
from cloakwork.series.recursion import Recursion
from cloakwork.series.strategies import Strategy, Task

_MOST = 2.0**61  # a release must fit into 63 bits, with its noise
_ENDLESS = 1 << 62


@final
class Stream(Immutable):
    """Publishes a filter of a private series value by value, as the values arrive.

    Parameters
    ----------
    filter
        What to publish: any filter that does not look ahead.
    horizon
        How many values will come at the most. None for an endless stream, which filters allow that forget: windows,
        averages, `Decay`, any coefficients whose error stays bounded; not running sums, nor slow powers.
    epsilon, delta
        The claim, for everything that the stream ever publishes.
    contribution
        How much one protected event or person may change in all, over all times: a whole number, since values are.
    band
        Keep only so many coefficients of the strategy: less memory, more error. Without a horizon it is chosen by
        default.

    Notes
    -----
    At time t the whole number r_t = w_0 x_t + w_1 x_{t-1} + ... + n_t is released, exactly: w is the square root of
    the filter as a power series, in whole numbers (`SquareRoot`), and n_t fresh rounded Gaussian noise. A change of one
    unit moves all releases together by ||w||_2 at the most, however long the stream: so one (epsilon, delta) covers
    all of it, and the output (h / w) * r is post-processing.

    It is private for adaptive inputs too, where each value may depend on what was published before: r_t takes in
    values up to time t only, so that, given the past, two neighbouring histories differ in r_t by a shift of the mean
    alone, and the squares of all shifts add up to ||w||^2 times contribution^2 at the most, whoever chooses them.
    That needs a strategy that is lower triangular and noise that is Gaussian (Denisov, McMahan, Rush, Smith and
    Thakurta).

    In the long run a stream is as good as a batch: |W|^2 = |H| on the unit circle, so for a filter that forgets the
    error tends to that of the best mechanism on a circle, `Fourier`.

    A stream lives in the memory of one process. It cannot be stored, copied or shared with a fork: the copy would
    draw other noise for the same values. After a crash, or when a push was interrupted, it cannot go on: begin a new
    stream, with its own budget, and count both against everyone whose values were in the first.

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
    ) -> None:
        check_claim(epsilon, delta)
        self.filter = filter_of(filter)
        self.horizon = None if horizon is None else count("horizon", horizon)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        taps = looking_back(filter, self.horizon)
        self.settled = self.horizon if self.horizon is not None else settled_length(taps, band)
        self.task = Task(self.settled, (taps,))
        self.mechanism = causal(filter, self.task, band, self.horizon)
        self.strategy: Strategy = self.mechanism.strategy(self.task)
        self.weights: IntArray = frozen(np.trim_zeros(self.strategy.weights, "b"))
        self.noise = self.mechanism.noise(self.strategy, self._claim())
        self._scale = self.task.scales[0]
        self._weight = float(np.abs(self.weights).sum())
        self._recursion = Recursion(self.weights, taps.values, self.horizon)
        self._lock, self._open = Lock(), Event()
        self._ledger = Ledger(
            _ENDLESS if self.horizon is None else self.horizon,
            unit="values",
            owner="stream",
            remedy="Begin a new stream with a budget of its own, or give a longer horizon next time; to experiment, "
            "use simulate(x, rng=...).",
        )
        self._freeze()

    @property
    def time(self) -> int:
        """How many values have come so far."""
        return self._ledger.spent

    @property
    def band(self) -> int:
        """How many values back the release of a moment looks, itself included."""
        return len(self.weights)

    @property
    def memory(self) -> int:
        """How many numbers the stream keeps at the most, of eight bytes each."""
        return self._recursion.memory

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the output at each time, shape (horizon,); without a horizon, until they have settled."""
        return frozen(np.asarray(self.strategy.variances[0] * self.noise.variance))

    @property
    def expected_mse(self) -> float:
        """Mean squared error over the horizon; without one, in the long run."""
        return float(self.variances.mean() if self.horizon is not None else self.variances[-1])

    @cached_property
    def batch_mse(self) -> float:
        """What publishing the whole series at once, at its end, would reach: `SeriesCloak` at the same claim.

        Without a horizon, the error at the end of as many values as it takes the stream to settle.
        """
        cloak = SeriesCloak(
            self.filter, self.settled, epsilon=self.epsilon, delta=self.delta, contribution=self.contribution
        )
        return cloak.expected_mse if self.horizon is not None else float(cloak.variances[0, -1])

    def standard_deviation(self, time: int) -> float:
        """How far off the output at a time is, counted from 0."""
        if isinstance(time, bool) or not isinstance(time, int | np.integer) or time < 0 or not self._reaches(time):
            allowed = "from 0 on" if self.horizon is None else f"from 0 to {self.horizon - 1}"
            raise InputError(f"time={time!r}: give a whole number {allowed}.", time=time)
        return math.sqrt(self.variances[min(time, self.settled - 1)])

    def push(self, value: float) -> Moment:
        """Take the next true value, a whole number, and publish the output of this moment, for real.

        Each value spends one of the horizon; more are refused before anything is released.
        """
        step = self._step(value)
        with self._spending(1):
            noise = int(self.noise.draw(1, private_words)[0])
            return self._moment(self.time - 1, self._recursion.next(step, noise))

    def extend(self, values: ArrayLike) -> Outputs:
        """Push several values, shape (k,), one after the other: the outputs of these moments, for real."""
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
        """All that a fresh stream would publish for values of shape (n,), or of (runs, n) for several, from time 0 on.

        The same law as `push`, reproducible and therefore not private; spends nothing.
        """
        steps = self._steps("x", x)
        n = steps.shape[-1]
        if not self._reaches(n - 1):
            raise ReadingError(f"x has {n} values: the horizon is {self.horizon}.", n=n, horizon=self.horizon)
        values = self._simulated(np.atleast_2d(steps), simulated_words(rng)).reshape(steps.shape)
        return Outputs(values, np.array([self.standard_deviation(time) for time in range(n)]))

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs against a batch, and what drives it, in plain sentences."""
        return explain(self)

    def __repr__(self) -> str:
        return (
            f"Stream({self.filter.name}, horizon={self.horizon}, epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"time={self.time})"
        )

    def __reduce__(self) -> str:
        raise BudgetError("a stream cannot be copied or stored: the copy would draw other noise for the same values.")

    @contextmanager
    def _spending(self, number: int) -> Iterator[int]:
        """Take `number` values off the budget; what is interrupted before it is released ends the stream.

        Whoever pushed those values again would have them count twice.
        """
        with self._lock:
            if self._open.is_set():
                raise BudgetError("this stream was interrupted while it took a value: begin a new one.")
            start = self.time
            self._ledger.spend(number)
            self._open.set()
            yield start
            self._open.clear()

    def _claim(self) -> Claim:
        """The claim, with at least as many draws as neighbours can differ in.

        A unit of change is in as many releases as there are weights: without a horizon, the rest have the same law for
        both neighbours, errors of the tables included.
        """
        series = 1 if self.horizon is not None else self.contribution
        return Claim(self.epsilon, self.delta, self.contribution, series)

    def _reaches(self, time: int) -> bool:
        return self.horizon is None or time < self.horizon

    def _moment(self, time: int, output: float) -> Moment:
        place = min(time, self.settled - 1)
        return Moment(time, output * float(self._scale[place]), math.sqrt(self.variances[place]))

    def _step(self, value: float) -> int:
        try:
            step = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            step = None
        if step is None:
            return self._single(value)
        if abs(step) >= _MOST / self._weight:
            raise self._too_large()
        return step

    def _single(self, value: object) -> int:
        """One value that is no whole number by its kind, but perhaps by its size."""
        given = array_of(value)
        if given is None or given.ndim:
            raise ReadingError("push takes one value: use extend for several.")
        return int(self._steps("value", [value])[0])

    def _steps(self, name: str, values: object) -> IntArray:
        given = numbers(name, values, error=ReadingError)
        if given.ndim not in (1, 2) or not given.size:
            raise ReadingError(f"{name} has shape {given.shape}: give a list of at least one value.", shape=given.shape)
        found = frames(name, given, given.shape[-1], error=ReadingError)
        far = np.argwhere(found != np.rint(found))
        if len(far):
            place = int(far[0][-1])
            raise ReadingError(
                f"{name}[{place}] is not a whole number ({len(far)} such entries): a stream takes whole numbers. Count "
                "in a smaller unit, and give contribution in it too.",
                place=place,
            )
        if np.abs(found).max() * self._weight >= _MOST:
            raise self._too_large()
        return found.astype(np.int64)

    def _too_large(self) -> ReadingError:
        return ReadingError(
            f"a value is too large: this stream takes up to {_MOST / self._weight:.3g}. Count in a larger unit.",
            most=_MOST / self._weight,
        )

    def _simulated(self, steps: IntArray, words: WordSource) -> FloatArray:
        n = steps.shape[1]
        released = convolve_whole(self.weights, steps)[:, :n] + self.noise.draw(steps.size, words).reshape(steps.shape)
        answer = product(self.task.taps[0].values, inverse(self.weights.astype(np.float64), n), n)
        values = np.stack([product(answer, row, n) for row in released.astype(np.float64)])
        return np.asarray(values * self._scale[np.minimum(np.arange(n), self.settled - 1)])
