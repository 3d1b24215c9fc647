"""How much noise each sensor adds, and in which steps it sends: enough for what one frame may cost."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError
from cloakwork.physics import Family
from cloakwork.privacy.design import BLIND, Search, few_ratios
from cloakwork.privacy.noise_table import DEVICE_TABLES
from cloakwork.privacy.sensitivity import Scope, exposure
from cloakwork.privacy.variance import mean_variance

RESOLUTION_COST = 0.01
_DIVISION = 1 + 2.0**-19  # covers what `exposure` adds to a step


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Standard deviation and step of each sensor, and a bound on the mean variance of a window where it is designed."""

    sigma: FloatArray
    step: FloatArray
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class Allowance:
    """What one of `number` frames of a window may cost: `mu` standard deviations for a move of `alpha` in any model.

    `sensitivity` is how far such a move shifts the readings in this scope; `resolution` the step that devices have,
    or None where it follows the noise.
    """

    family: Family
    alpha: float
    scope: Scope
    mu: float
    number: int
    sensitivity: float
    resolution: ArrayLike | None

    @property
    def sensors(self) -> int:
        """Number of sensors."""
        return self.family.physics.sensors

    @property
    def _root(self) -> float:
        return math.sqrt(self.sensors) if self.scope is Scope.NETWORK else 1.0

    @property
    def ratio(self) -> float:
        """Noise in steps where they follow it: such that rounding costs 1 %, as far as there are tables."""
        return min((1 + RESOLUTION_COST) / RESOLUTION_COST * self._root / self.mu, DEVICE_TABLES.ratio / 1.001)

    def cost(self, sigma: FloatArray, step: FloatArray) -> float:
        """The exact mu of a frame with this noise, rounded up."""
        return exposure(self.family, alpha=self.alpha, scope=self.scope, sigma=sigma, step=step)

    def given(self, sigma: ArrayLike) -> NoiseLevels:
        """The noise that someone chose; whether it is enough is for others to check."""
        chosen = per_sensor("sigma", sigma, self.sensors)
        return NoiseLevels(chosen, self._steps(chosen))

    def equal(self) -> NoiseLevels:
        """The least noise that is the same for all sensors."""
        coarse = self.sensitivity / (self.ratio * self.mu - self._root)
        step = np.full(self.sensors, coarse) if self.resolution is None else self._steps(np.ones(self.sensors))
        rounding = math.sqrt(float((step**2).sum())) if self.scope is Scope.NETWORK else float(step.max())
        needed = (self.sensitivity + rounding * _DIVISION) / self.mu * (1 + 1e-11)
        return NoiseLevels(np.full(self.sensors, needed), step)

    def least_error(self) -> NoiseLevels:
        """Noise that locates a lone source best, each sensor with its own; never worse than the same for all."""
        if self.scope is Scope.SENSOR:
            return self._least_each()
        best = self.search().found()
        sigma = best.sigma * math.sqrt(self.number)
        own = self._scaled(sigma if self.resolution is None else few_ratios(sigma, self._steps(sigma)))
        same = self.equal()
        better = own if self.variance(own.sigma) < self.variance(same.sigma) else same
        return replace(better, bound=self._without_rounding(best.optimum.bound))

    def _without_rounding(self, bound: float | None) -> float | None:
        """What no noise of any steps can go below: that of noise which may spend all of mu on moves.

        Noise that is smaller by a factor has a mean variance that is smaller by at most its square.
        """
        if self.resolution is not None:
            return replace(self, resolution=None).search(rounded=0.0).found().optimum.bound
        return None if bound is None else bound * ((self.mu - self._rounded) / self.mu) ** 2 * (1 - 1e-12)

    def variance(self, sigma: FloatArray) -> float:
        """The mean variance of a lone source that is located from a whole window."""
        return mean_variance(self.family.physics, sigma / math.sqrt(self.number))

    def search(self, rounded: float | None = None) -> Search:
        """The search over the noise of a whole window taken as one frame, of which rounding costs `rounded`."""
        gain = 1 + self.family.tolerance.gain
        usual = self._rounded if self.resolution is None else 0.0
        left = self.mu - (usual if rounded is None else rounded)
        reach = left * math.sqrt(self.number) / (self.alpha * gain)
        if self.resolution is None:
            return Search(self.family, reach)
        return Search(self.family, reach, (self._steps(np.ones(self.sensors)) / (self.alpha * gain)) ** 2)

    @property
    def _rounded(self) -> float:
        """What rounding costs where steps follow the noise."""
        return self._root / self.ratio * _DIVISION

    def _scaled(self, sigma: FloatArray) -> NoiseLevels:
        """The same proportions, at the size that the exact condition asks for."""
        fixed = self._rounded if self.resolution is None else 0.0
        cost = self.cost(sigma, self._steps(sigma))
        for _ in range(5):
            sigma = sigma * ((cost - fixed) / (self.mu - fixed) * (1 + 1e-11))
            cost = self.cost(sigma, self._steps(sigma))
            if cost <= self.mu:
                break
        return NoiseLevels(sigma, self._steps(sigma))

    def _least_each(self) -> NoiseLevels:
        """Against someone who sees one sensor, each needs what it needs alone."""
        slopes = self.family.sensor_slopes()
        moved = self.alpha * np.maximum(slopes, BLIND * slopes.max())
        if self.resolution is None:
            sigma = moved / (self.mu - self._rounded) * (1 + 1e-11)
        else:
            sigma = (moved + self._steps(moved) * _DIVISION) / self.mu * (1 + 1e-11)
        return NoiseLevels(sigma, self._steps(sigma), self.variance(moved / self.mu) * (1 - 1e-12))

    def _steps(self, sigma: FloatArray) -> FloatArray:
        """The steps of the devices, or such that all sensors have the same ratio and one table serves them."""
        if self.resolution is None:
            return sigma / self.ratio
        return per_sensor("resolution", self.resolution, self.sensors)


def per_sensor(name: str, given: ArrayLike, m: int) -> FloatArray:
    """One number for all sensors, or one for each, as an array of shape (m,)."""
    try:
        values = np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), (m,)))
    except (TypeError, ValueError):
        raise CalibrationError(f"{name}: give one number, or one for each of the {m} sensors.", sensors=m) from None
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise CalibrationError(f"{name} holds a value that is not a finite number above 0.")
    return values
