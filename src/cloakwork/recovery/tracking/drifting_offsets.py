"""Offsets that drift: a Kalman filter over the frames of a window, given the paths of the sources.

The covariance does not depend on the readings, so all chains share it; each chain has a mean of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._method_cache import memoize
from cloakwork.physics import Nuisance

CONVERGED = 1e-6  # change of a covariance, relative to the stationary one, below which it stays the same
ROUNDING = 1e-12
MAX_STEPS = 64  # cached after one covariance: intervals, and sets of sensors that count


class Residual(NamedTuple):
    """The whitened readings of a frame less the sources of each chain, (chains, m), and what whitened them."""

    time: float
    scale: FloatArray
    rest: FloatArray


@dataclass(eq=False)
class KalmanStep:
    """The covariance of the offsets after a frame, and what leads to it, in units of their stationary deviations.

    `fade` (k,) is the correlation with the frame before, `before` (k, k) the covariance before the readings, `effect`
    (m, k) what the offsets add to the whitened readings, `precision` (m, m) the inverse covariance of the residual,
    `gain` (k, m) that of the filter, and `after` (k, k) the covariance after the readings.
    """

    fade: FloatArray
    before: FloatArray
    effect: FloatArray
    precision: FloatArray
    gain: FloatArray
    after: FloatArray

    @classmethod
    def stationary(cls, size: int, sensors: int) -> "KalmanStep":
        """Return the stationary distribution, before any reading."""
        nothing, one = np.zeros((size, sensors)), np.eye(size)
        return cls(np.ones(size), one, nothing.T, np.zeros((sensors, sensors)), nothing, one)

    @memoize(MAX_STEPS)
    def following(self, offsets: Nuisance, seconds: float, scale: FloatArray) -> "KalmanStep":
        """Return the step to a frame `seconds` later, whose readings are whitened by `scale`."""
        fade = np.exp(-seconds / offsets.over)
        before = fade[:, None] * self.after * fade
        before[np.diag_indices_from(before)] += 1 - fade**2
        effect = (offsets.factor.T * scale).T
        across = before @ effect.T
        precision = np.asarray(np.linalg.inv(np.eye(len(scale)) + effect @ across), dtype=np.float64)
        gain = across @ precision
        after = before - gain @ across.T
        step = KalmanStep(fade, before, effect, precision, gain, (after + after.T) / 2)
        same = self.effect.shape == effect.shape and np.array_equal(self.effect, effect)
        same = same and np.array_equal(self.fade, fade)
        return self if same and np.abs(step.after - self.after).max() < CONVERGED else step

    @memoize(1)
    def backward(self, following: "KalmanStep") -> tuple[FloatArray, FloatArray]:
        """Return the gain (k, k) and root covariance (k, k) of the offsets here, given those one step later."""
        gain = np.asarray(np.linalg.solve(following.before, following.fade[:, None] * self.after).T, dtype=np.float64)
        return gain, _root(self.after - gain @ following.before @ gain.T)

    @cached_property
    def root(self) -> FloatArray:
        """The root (k, k) of the covariance after the readings."""
        return _root(self.after)


def _root(covariance: FloatArray) -> FloatArray:
    """Return L with L L' = covariance, which rounding may have left slightly indefinite."""
    safe = (covariance + covariance.T) / 2 + ROUNDING * np.eye(len(covariance))
    return np.asarray(np.linalg.cholesky(safe), dtype=np.float64)


@dataclass(eq=False)
class OffsetBelief:
    """What earlier frames say about the offsets: a mean in each chain (chains, k), and one covariance."""

    offsets: Nuisance
    means: FloatArray
    step: KalmanStep
    time: float | None = None

    @classmethod
    def stationary(cls, offsets: Nuisance, chains: int) -> "OffsetBelief":
        size, sensors = offsets.columns.shape[::-1]
        return cls(offsets, np.zeros((chains, size)), KalmanStep.stationary(size, sensors))

    def filter(self, residuals: Sequence[Residual]) -> Iterator[tuple[KalmanStep, FloatArray, FloatArray]]:
        """Yield for each frame its step, the means after it, and the part of its readings that was not predicted."""
        step, means, before = self.step, self.means, self.time
        for time, scale, rest in residuals:
            seconds = 0.0 if before is None else round(1000 * (time - before)) / 1000
            step = step.following(self.offsets, seconds, scale)
            means = means * step.fade
            surprise = rest - means @ step.effect.T
            means = means + surprise @ step.gain.T
            yield step, means, surprise
            before = time

    def draw(self, residuals: Sequence[Residual], rng: np.random.Generator) -> list[FloatArray]:
        """Draw what the offsets add to the whitened readings of each frame, (chains, m)."""
        steps, means, _ = zip(*self.filter(residuals), strict=True)
        noise = rng.standard_normal((len(steps), *self.means.shape))
        drawn = [means[-1] + noise[-1] @ steps[-1].root.T]
        for t in range(len(steps) - 2, -1, -1):
            gain, root = steps[t].backward(steps[t + 1])
            ahead = drawn[-1] - means[t] * steps[t + 1].fade
            drawn.append(means[t] + ahead @ gain.T + noise[t] @ root.T)
        return [offsets @ step.effect.T for offsets, step in zip(drawn[::-1], steps, strict=True)]

    def log_likelihood(self, residuals: Sequence[Residual]) -> FloatArray:
        """Return the log likelihood of the readings in each chain, the offsets integrated out, up to a constant."""
        return np.asarray(-sum(((s @ step.precision) * s).sum(axis=1) for step, _, s in self.filter(residuals)) / 2)

    def persistence(self, residuals: Sequence[Residual], power: float) -> FloatArray:
        """Return the log likelihood less `power` times what it were if each frame had offsets of its own."""
        return self.log_likelihood(residuals) - power * sum(map(self.log_likelihood, zip(residuals)))

    def after(self, residual: Residual) -> "OffsetBelief":
        [(step, means, _)] = self.filter([residual])
        return replace(self, means=means, step=step, time=residual.time)
