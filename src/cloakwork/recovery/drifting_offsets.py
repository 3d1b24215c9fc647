"""Offsets that drift, over the frames of a window: their law given the paths of the sources, and draws from it.

Given the paths, the offsets follow linear dynamics with Gaussian noise. A Kalman filter gives their law: the covariance
does not depend on the readings, so all chains share it, and the mean is that of each chain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._method_cache import memoize
from cloakwork.physics import Nuisance

SETTLED = 1e-6  # a covariance that changes less, relative to the stationary one, has settled
ROUNDING = 1e-12
MAX_STEPS = 64  # kept after one covariance: intervals, and sets of sensors that count


@dataclass(eq=False)
class KalmanStep:
    """The covariance of the offsets after the readings of a frame, and what leads to it.

    In units of their stationary deviations: `fade` (k,) is the correlation with the frame before, `before` (k, k) the
    covariance before the readings, `seen` (m, k) what the offsets add to the whitened readings, `precision` (m, m) the
    inverse covariance of the whitened readings less the sources, `gain` (k, m) that of the filter, and `after` (k, k)
    the covariance after the readings.
    """

    fade: FloatArray
    before: FloatArray
    seen: FloatArray
    precision: FloatArray
    gain: FloatArray
    after: FloatArray

    @classmethod
    def first(cls, size: int, sensors: int) -> "KalmanStep":
        """The stationary law, before any reading."""
        nothing, one = np.zeros((size, sensors)), np.eye(size)
        return cls(np.ones(size), one, nothing.T, np.eye(sensors), nothing, one)

    def then(self, offsets: Nuisance, seconds: float, scale: FloatArray) -> "KalmanStep":
        """The step to a frame `seconds` later, whose readings are whitened by `scale`, 0 if they do not count."""
        return self._next(offsets, round(1000 * seconds) / 1000, scale)

    @memoize(MAX_STEPS)
    def _next(self, offsets: Nuisance, seconds: float, scale: FloatArray) -> "KalmanStep":
        fade = np.exp(-seconds / offsets.over)
        before = fade[:, None] * self.after * fade
        before[np.diag_indices_from(before)] += 1 - fade**2
        seen = (offsets.factor.T * scale).T
        across = before @ seen.T
        precision = np.asarray(np.linalg.inv(np.eye(len(scale)) + seen @ across), dtype=np.float64)
        gain = across @ precision
        after = before - gain @ across.T
        made = KalmanStep(fade, before, seen, precision, gain, (after + after.T) / 2)
        same = self.seen.shape == seen.shape and np.array_equal(self.seen, seen) and np.array_equal(self.fade, fade)
        return self if same and np.abs(made.after - self.after).max() < SETTLED else made

    @memoize(1)
    def back_from(self, after: "KalmanStep") -> tuple[FloatArray, FloatArray]:
        """The gain (k, k) and the root (k, k) of the covariance of the offsets here, given those one step later."""
        gain = np.asarray(np.linalg.solve(after.before, after.fade[:, None] * self.after).T, dtype=np.float64)
        return gain, _root(self.after - gain @ after.before @ gain.T)

    @cached_property
    def spread(self) -> FloatArray:
        """The root (k, k) of the covariance after the readings."""
        return _root(self.after)


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix L such that L L' is the covariance, which rounding may have left slightly indefinite."""
    safe = (covariance + covariance.T) / 2 + ROUNDING * np.eye(len(covariance))
    return np.asarray(np.linalg.cholesky(safe), dtype=np.float64)


@dataclass(eq=False)
class OffsetLaw:
    """The law of the offsets just before a window, in each of some chains: means (chains, k) and one covariance."""

    offsets: Nuisance
    mean: FloatArray
    step: KalmanStep
    time: float | None = None

    @classmethod
    def stationary(cls, offsets: Nuisance, chains: int) -> "OffsetLaw":
        """The law before any reading."""
        size, sensors = offsets.columns.shape[::-1]
        return cls(offsets, np.zeros((chains, size)), KalmanStep.first(size, sensors))

    def steps(self, times: Sequence[float], scales: Sequence[FloatArray]) -> list[KalmanStep]:
        """The steps to frames of these times, with these scales of their readings."""
        steps, last, before = [], self.step, self.time
        for time, scale in zip(times, scales, strict=True):
            last = last.then(self.offsets, 0.0 if before is None else time - before, scale)
            steps.append(last)
            before = time
        return steps

    def _filtered(
        self, steps: Sequence[KalmanStep], rests: Sequence[FloatArray]
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """After each frame, the means, and what its readings less the sources (chains, m) had that was not foreseen."""
        mean = self.mean
        for step, rest in zip(steps, rests, strict=True):
            mean = mean * step.fade
            surprise = rest - mean @ step.seen.T
            mean = mean + surprise @ step.gain.T
            yield mean, surprise

    def draw(
        self, steps: Sequence[KalmanStep], rests: Sequence[FloatArray], rng: np.random.Generator
    ) -> list[FloatArray]:
        """Draw the offsets of each frame (chains, k), given the whitened readings less the sources (chains, m)."""
        means = [mean for mean, _ in self._filtered(steps, rests)]
        noise = rng.standard_normal((len(steps), *self.mean.shape))
        drawn = [means[-1] + noise[-1] @ steps[-1].spread.T]
        for t in range(len(steps) - 2, -1, -1):
            gain, spread = steps[t].back_from(steps[t + 1])
            ahead = drawn[-1] - means[t] * steps[t + 1].fade
            drawn.append(means[t] + ahead @ gain.T + noise[t] @ spread.T)
        return drawn[::-1]

    def log_likelihood(self, steps: Sequence[KalmanStep], rests: Sequence[FloatArray]) -> FloatArray:
        """The log likelihood of the readings in each chain, the offsets integrated out, up to a common constant."""
        total = np.zeros(len(self.mean))
        for step, (_, surprise) in zip(steps, self._filtered(steps, rests), strict=True):
            total -= ((surprise @ step.precision) * surprise).sum(axis=1) / 2
        return total

    def after(self, step: KalmanStep, rest: FloatArray, time: float) -> "OffsetLaw":
        """The law after the readings of one frame less the sources, (chains, m)."""
        [(mean, _)] = self._filtered([step], [rest])
        return OffsetLaw(self.offsets, mean, step, time)
