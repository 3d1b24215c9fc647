"""The input of a solver: the physics projected onto its numerical range, and the readings there."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, per_sensor
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Nuisance, NumericalRange, Physics, whitener


class CloakLike(Protocol):
    """The parts of a cloak that recovery reads: never a key, never a true value."""

    @property
    def total_sigmas(self) -> FloatArray: ...
    @property
    def roundings(self) -> FloatArray: ...
    @property
    def physics(self) -> Physics: ...
    @property
    def offsets(self) -> Nuisance | None: ...


@dataclass(frozen=True, eq=False)
class Problem:
    """A model with its noise. Sensors with different noise are whitened: divided by their own sigma.

    `sigma` (m,) is the standard deviation of each sensor's noise, `step` (m,) the step of its readings, 0 if they are
    not rounded. `offsets` add to the covariance of the noise, and whitening is then a matrix. Sensors of infinite sigma
    do not count.
    """

    physics: Physics
    sigma: FloatArray
    step: FloatArray
    offsets: Nuisance | None = None

    @classmethod
    def with_noise(
        cls, physics: Physics, sigma: ArrayLike, step: ArrayLike = 0.0, drift: Drift | Nuisance | None = None
    ) -> "Problem":
        """Make a problem from one number for all sensors, or one per sensor."""
        sigmas = per_sensor("sigma", sigma, physics.sensors)
        steps = per_sensor("step", step, physics.sensors, zero=True)
        if not isinstance(drift, Drift | Nuisance | None):
            raise InputError(f"drift={drift!r}: give an object such as Drift(room=1.0).", drift=drift)
        offsets = drift.on(physics) if isinstance(drift, Drift) else drift
        return cls(physics, sigmas, steps, offsets if offsets is not None and len(offsets.over) else None)

    @cached_property
    def key(self) -> Hashable:
        """Equal for problems with the same physics and noise."""
        factor = b"" if self.offsets is None else self.offsets.factor.tobytes()
        return (self.physics, self.sigma.tobytes(), self.step.tobytes(), factor)

    @cached_property
    def effective_sigma(self) -> FloatArray:
        """Noise of each sensor with the two roundings added: sigma^2 + step^2 / 6."""
        return np.sqrt(self.sigma**2 + self.step**2 / 6)

    @cached_property
    def weights(self) -> FloatArray | None:
        """Factors (m,) or a matrix (m, m) that whiten the readings; None if all sensors have the same noise alone."""
        s = self.effective_sigma
        if self.offsets is not None:
            return whitener(s, self.offsets.factor)
        return None if (s == s[0]).all() else 1 / s

    @property
    def noise(self) -> float:
        """Standard deviation of the (whitened) readings."""
        return float(self.effective_sigma[0]) if self.weights is None else 1.0

    @property
    def range(self) -> NumericalRange:
        """The range of the (whitened) physics."""
        return self.physics.range(self.weights)

    @cached_property
    def column_squares(self) -> FloatArray:
        """Squared norm of each column of the reduced physics, shape (n,)."""
        if self.physics.near is not None and self.offsets is None:
            return np.asarray(self.physics.near.power(2).T @ (self.noise / self.effective_sigma) ** 2)
        return np.asarray((self.range.reduced**2).sum(axis=0))

    def whiten(self, readings: FloatArray) -> FloatArray:
        """Readings (..., m) with equal and independent noise, of the standard deviation `noise`."""
        if self.weights is None:
            return readings
        return np.asarray(readings * self.weights if self.weights.ndim == 1 else readings @ self.weights.T)

    def scores(self, whitened: FloatArray) -> FloatArray:
        """How many standard deviations the rest of each sensor is from what those of all others foretell, shape (m,).

        `whitened` (m,) is the rest after whitening, in units of its noise.

        Notes
        -----
        With C the covariance and r the rest, (C^-1 r)_l / sqrt((C^-1)_ll): the residual of sensor l given the others
        over its standard deviation, and r_l / sigma_l where the noise is independent.
        """
        if self.weights is None or self.weights.ndim == 1:
            return whitened
        spread = np.sqrt((self.weights**2).sum(axis=0))
        return np.asarray(np.divide(whitened @ self.weights, spread, out=np.zeros_like(whitened), where=spread > 0))

    def without(self, sensors: Iterable[int]) -> "Problem":
        """The same problem, in which some sensors do not count."""
        sigma = self.sigma.copy()
        sigma[list(sensors)] = np.inf
        return replace(self, sigma=sigma)

    def project(self, readings: FloatArray) -> FloatArray:
        """Coordinates of whitened readings (frames, m) in the basis of the range, (frames, rank)."""
        return np.ascontiguousarray(self.whiten(readings) @ self.range.basis)

    def outside(self, readings: FloatArray) -> FloatArray:
        """The part of whitened readings (frames, m) outside the range, (frames, m)."""
        return np.asarray(self.whiten(readings) - self.project(readings) @ self.range.basis.T)
