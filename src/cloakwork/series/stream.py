"""Streams: private outputs of a filter while the data arrives (continual observation)."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft

from cloakwork._checks import FloatArray, IntArray, array_or_none, count
from cloakwork._compile import compiled
from cloakwork.errors import BudgetError, InputError, ReadingError
from cloakwork.privacy import Immutable, Ledger, private_words
from cloakwork.series.filters import Filter, check_filters
from cloakwork.series.release_noise import ReleaseNoise, band
from cloakwork.series.series_cloak import Published, SeriesCloak, in_steps
from cloakwork.series.strategies import Contribution, Strategy, causal_strategy, factor, grid_points

_ENDLESS = 1 << 62
_LONGEST_REACH = 1 << 16  # of a filter without a horizon
_SHORTEST, _LONGEST = 1 << 12, 1 << 17  # values after which an endless stream counts as settled
_DAMPINGS = (1.0, *(1 - 2.0**-k for k in range(12, 3, -1)))


@dataclass(frozen=True, slots=True)
class Moment:
    """The published output at one time, counted from 0, and its standard deviation."""

    time: int
    value: float
    standard_deviation: float

    def band(self, confidence: float = 0.95) -> float:
        """Return the error that the value stays within with this confidence."""
        return float(band(self.standard_deviation, confidence))


@final
class Stream(Immutable):
    """Publishes a filter of a private series value by value, as the values arrive.

    Parameters
    ----------
    filter
        What to publish: any filter that does not look ahead.
    horizon
        The largest number of values. None for an endless stream, which needs a filter that forgets: windows, averages,
        `Decay`, any taps with a bounded error; not running sums, nor slow powers.
    epsilon, delta
        The guarantee, for everything that the stream ever publishes.
    contribution
        How much one protected event or person may change in all, over all times: a whole number, like the values, or a
        `Contribution`.
    together
        The number of streams, made alike, that share one guarantee. `contribution` then bounds the Euclidean norm of
        what one event or person changes in all of them.

    Notes
    -----
    At time t the stream releases the whole number r_t = w_0 x_t + w_1 x_{t-1} + ... + n_t: w is the causal square root
    of the filter in whole numbers, and n_t is fresh rounded Gaussian noise. The output (h / w) * r is post-processing.
    The guarantee also holds if values depend on earlier outputs, because r_t uses values up to time t alone and the
    noise is Gaussian (Denisov, McMahan, Rush, Smith and Thakurta). In the long run, a filter that forgets is published
    as accurately as by the best mechanism on a circle.

    The times of values are public: push at a fixed rate, zeros included.

    A stream lives in the memory of one process. It cannot be stored, copied or shared with a fork: the copy would draw
    other noise for the same values. After a crash or an interrupted push, start a new stream with its own budget, and
    count both for everyone whose values were in the first.

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
        contribution: int | Contribution = 1,
        together: int = 1,
    ) -> None:
        [self.filter] = check_filters(filter)
        self.horizon = None if horizon is None else count("horizon", horizon)
        cut = self.filter.cut(_LONGEST_REACH if self.horizon is None else self.horizon)
        if cut.first < 0:
            raise InputError(
                f"{self.filter.name} looks {-cut.first} values ahead, which a stream cannot. Publish the whole series "
                "at its end, with publish().",
                ahead=-cut.first,
            )
        most = in_steps(contribution, 1.0)
        if self.horizon is None:
            strategy = _endless_strategy(cut)
        else:
            strategy = factor([self.filter], self.horizon, mechanism="square-root", contribution=most)
        # At least as many draws as neighbours can differ in. Without a horizon, a unit of change affects as many
        # releases as there are weights; all others have the same distribution for both neighbours.
        self.cloak = SeriesCloak(
            filter,
            strategy.n,
            epsilon=epsilon,
            delta=delta,
            contribution=most,
            series=count("together", together) * (1 if self.horizon is not None else most.total),
            strategy=strategy,
        )
        self.epsilon, self.delta = self.cloak.epsilon, self.cloak.delta
        self._recursion = _Recursion(strategy, np.concatenate([np.zeros(cut.first), cut.values]))
        self._deviations = np.sqrt(self.variances)
        self._lock, self._open = Lock(), list[bool]()
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
        """The number of values so far."""
        return self._ledger.spent

    @property
    def noise(self) -> ReleaseNoise:
        """The noise of each released number; a `Budget` adds it up with other releases."""
        return self.cloak.noise

    @property
    def variances(self) -> FloatArray:
        """The variance of the output at each time, until the horizon or until the error no longer changes."""
        return np.asarray(self.cloak.variances[0])

    @property
    def expected_mse(self) -> float:
        """The mean squared error over the horizon; without one, in the long run."""
        return float(self.variances.mean() if self.horizon is not None else self.variances[-1])

    def push(self, value: float) -> Moment:
        """Take the next true value, a whole number, and publish the output at its time."""
        start, [output], [deviation] = self._released(self._step(value))
        return Moment(start, float(output), float(deviation))

    def extend(self, values: ArrayLike) -> Published:
        """Push several values, shape (k,), one after the other, and publish their outputs."""
        steps = self.cloak.steps("values", values)
        if steps.ndim != 1:
            raise ReadingError(f"values has shape {steps.shape}: give one list of values.", shape=steps.shape)
        _, outputs, deviations = self._released(steps)
        return Published(outputs, deviations, self.cloak)

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> Published:
        """Simulate a fresh stream for values of shape (n,), or several of shape (runs, n).

        The outputs have the same distribution as those of `push`. They are reproducible, hence not private; this spends
        nothing.
        """
        steps = self.cloak.steps("x", x)
        n, most = steps.shape[-1], self.cloak.n
        if steps.ndim > 2 or n > most:
            raise ReadingError(f"x has shape {steps.shape}: give up to {most} values a run.", shape=steps.shape)
        whole = np.pad(steps, [(0, 0)] * (steps.ndim - 1) + [(0, most - n)])
        published = self.cloak.simulate(whole, rng=rng)
        return Published(published.values[..., :n].copy(), published.standard_deviation[:n].copy(), self.cloak)

    def __repr__(self) -> str:
        return (
            f"Stream({self.filter.name}, horizon={self.horizon}, epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"time={self.time})"
        )

    def __reduce__(self) -> str:
        raise BudgetError("a stream cannot be copied or stored: the copy would draw other noise for the same values.")

    def _step(self, value: float) -> IntArray:
        """Return one value as an array of whole steps; Python's whole numbers take the quick way."""
        with suppress(TypeError):
            step = operator.index(value)  # type: ignore[arg-type]
            if abs(step) < self.cloak.largest_step:
                return np.array([step])
        array = array_or_none(value)
        if array is None or array.ndim:
            raise ReadingError("push takes one value: use extend for several.")
        return self.cloak.steps("value", [value])

    def _released(self, steps: IntArray) -> tuple[int, FloatArray, FloatArray]:
        """Return the outputs with their deviations, and the time of the first: another thread may push meanwhile."""
        with self._spending(len(steps)) as start:
            outputs = self._recursion.outputs(steps, self.noise.draw(len(steps), private_words))
        places = np.minimum(np.arange(start, start + len(steps)), self.cloak.n - 1)  # beyond that nothing changes
        return start, outputs * self.cloak.strategy.scales[0, places], self._deviations[places]

    @contextmanager
    def _spending(self, number: int) -> Iterator[int]:
        """Spend `number` values of the budget. An interruption before the release ends the stream.

        Otherwise values that are pushed again would count twice.
        """
        with self._lock:
            if self._open:
                raise BudgetError("this stream was interrupted while it took a value: start a new one.")
            start = self.time
            self._ledger.spend(number)
            self._open.append(True)
            yield start
            self._open.clear()


class _Recursion:
    """Releases r = w * (gains x) + noise as x arrives, and computes h * ((r / w) / gains).

    Notes
    -----
    z = r / w is z_t = (r_t - sum over k > 0 of w_k z_{t-k}) / w_0, and z / gains estimates x. The output is h * that.
    """

    def __init__(self, strategy: Strategy, taps: FloatArray) -> None:
        self._weights, self._taps = np.trim_zeros(strategy.weights, "b"), taps
        self._gains = np.ones(1, dtype=np.int64) if strategy.gains is None else strategy.gains
        self._divisor = self._weights.astype(np.float64)
        # the last numbers: each is there twice, so that the last few are always next to each other
        self._inputs = np.zeros(2 * len(self._weights), dtype=np.int64)
        self._quotients = np.zeros(2 * len(self._weights))
        self._estimates = np.zeros(2 * len(taps))
        self._time = np.zeros(1, dtype=np.int64)

    def outputs(self, steps: IntArray, noise: IntArray) -> FloatArray:
        """Take the next values of x and their noise, and return the next outputs."""
        return _outputs(
            steps,
            noise,
            self._weights,
            self._divisor,
            self._gains,
            self._taps,
            self._inputs,
            self._quotients,
            self._estimates,
            self._time,
        )


@compiled
def _outputs(
    steps: IntArray,
    noise: IntArray,
    weights: IntArray,
    divisor: FloatArray,
    gains: IntArray,
    taps: FloatArray,
    inputs: IntArray,
    quotients: FloatArray,
    estimates: FloatArray,
    time: IntArray,
) -> FloatArray:
    outputs = np.empty(len(steps))
    for i in range(len(steps)):
        known = time[0] + 1
        gain = gains[min(time[0], len(gains) - 1)]
        last = time[0] % len(weights) + len(weights)
        inputs[last] = inputs[last - len(weights)] = gain * steps[i]
        released = noise[i]
        rest = 0.0
        for k in range(min(known, len(weights))):
            released += weights[k] * inputs[last - k]
            if k:
                rest += divisor[k] * quotients[last - k]
        quotients[last] = quotients[last - len(weights)] = (released - rest) / divisor[0]
        size = len(taps)
        newest = time[0] % size + size
        estimates[newest] = estimates[newest - size] = quotients[last] / gain
        total = 0.0
        for k in range(min(known, len(taps))):
            total += taps[k] * estimates[newest - k]
        outputs[i] = total
        time[0] += 1
    return outputs


def _endless_strategy(filter: Filter) -> Strategy:  # noqa: A002 - it is one
    """Return a strategy that forgets, so that errors stay bounded for ever."""
    reach = filter.first + len(filter.values)
    if reach >= _LONGEST_REACH:
        raise InputError(
            f"{filter.name} looks back without end, or nearly: its error or its memory would grow for ever. Give a "
            "horizon, or a filter that forgets, such as Decay(0.99) or WindowSum(168).",
            filter=filter.name,
        )
    n = min(max(1 << (4 * reach - 1).bit_length(), _SHORTEST), _LONGEST)
    for damping in _DAMPINGS:
        strategy = causal_strategy([filter], n, band=n // 4, damping=damping)
        if np.isfinite(strategy.variances).all() and forgets(strategy.weights):
            return strategy
    raise InputError(
        f"{filter.name}: in a stream without a horizon, errors of this filter would grow or fade too slowly. Give one.",
        filter=filter.name,
    )


def forgets(weights: IntArray) -> bool:
    """Return whether all zeros of w_0 + w_1 z + ... lie outside the unit circle, so that dividing by it forgets.

    Notes
    -----
    The number of zeros within is the winding number of W(e^{i t}) around 0 (the argument principle). The grid is so
    fine that W cannot wind around 0 between two points: from the nearest one it changes by at most sum k |w_k| times
    half their distance. If that is not certain, the answer is no.
    """
    whole = np.trim_zeros(weights, "b").astype(np.float64)
    size = grid_points(len(whole))
    circle = fft.fft(whole, size)
    unseen = np.pi / size * float((np.arange(len(whole)) * np.abs(whole)).sum())
    if not np.abs(circle).min() > unseen * (1 + 1e-6):
        return False
    turned = np.angle(np.roll(circle, -1) / circle).sum()
    return round(float(turned) / (2 * np.pi)) == 0
