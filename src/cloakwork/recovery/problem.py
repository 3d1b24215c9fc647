"""What a solver is given: the physics projected onto its numerical range, and the readings there."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import NumericalRange, Physics


class CloakLike(Protocol):
    """All that recovery reads of a cloak: never a key, never a true value."""

    @property
    def sigmas(self) -> FloatArray:
        """Noise of each sensor."""

    @property
    def steps(self) -> FloatArray:
        """Step of each sensor."""

    @property
    def physics(self) -> Physics:
        """How sources become readings."""


@dataclass(frozen=True, eq=False)
class Projected:
    """Whitened readings (frames, m), and the same in the basis of the range."""

    readings: FloatArray
    inside: FloatArray
    basis: FloatArray

    @cached_property
    def outside(self) -> FloatArray:
        """Squared norm of what lies outside the range, one a frame."""
        rest = self.readings - self.inside @ self.basis.T
        return np.asarray(np.einsum("ij,ij->i", rest, rest))


@dataclass(frozen=True, eq=False)
class Problem:
    """One model with its noise. Sensors with different noise are whitened: divided by their own sigma.

    Parameters
    ----------
    sigma
        Standard deviation of each sensor's noise, shape (m,).
    step
        Step of each sensor's readings, shape (m,); zero for readings that were never rounded.
    """

    physics: Physics
    sigma: FloatArray
    step: FloatArray

    @classmethod
    def with_noise(cls, physics: Physics, sigma: ArrayLike, step: ArrayLike = 0.0) -> "Problem":
        """From one number for all sensors, or one each."""
        m = physics.sensors
        try:
            sigmas = np.array(np.broadcast_to(np.asarray(sigma, dtype=np.float64), (m,)))
            steps = np.array(np.broadcast_to(np.asarray(step, dtype=np.float64), (m,)))
        except (TypeError, ValueError):
            raise InputError(f"sigma: give one number, or one for each of the {m} sensors.", sensors=m) from None
        if not (np.isfinite(sigmas).all() and (sigmas > 0).all()):
            raise InputError("sigma holds a value that is not a finite number above 0.", sigma=sigma)
        return cls(physics, sigmas, steps)

    @cached_property
    def effective_sigma(self) -> FloatArray:
        """Noise of each sensor with the two roundings added: sigma^2 + step^2 / 6."""
        return np.sqrt(self.sigma**2 + self.step**2 / 6)

    @property
    def weights(self) -> FloatArray | None:
        """What readings are multiplied with before all else; none when all sensors have the same noise."""
        s = self.effective_sigma
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
        return np.asarray((self.range.reduced**2).sum(axis=0))

    @property
    def paper_radius(self) -> float:
        """Sigma sqrt(m), as Gilbert and McMillan take it."""
        return self.noise * math.sqrt(self.physics.sensors)

    def project(self, readings: FloatArray) -> Projected:
        """Readings, shape (frames, m), onto the range."""
        scaled = readings if self.weights is None else readings * self.weights
        basis = self.range.basis
        return Projected(scaled, np.ascontiguousarray(scaled @ basis), basis)
