"""Calibration: how far a hidden move shifts the readings, and the noise that each sensor therefore adds."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from cloakwork._checks import FloatArray, member_of, per_sensor, positive
from cloakwork.errors import CalibrationError
from cloakwork.physics import Drift, Family, Nuisance, Physics
from cloakwork.privacy.claim import Claim, Scope
from cloakwork.privacy.design import BLIND, Search, few_ratios
from cloakwork.privacy.hardware import SensorSteps
from cloakwork.privacy.noise_floor import Charge, NoiseFloor
from cloakwork.privacy.noise_table import DEVICE_TABLES
from cloakwork.privacy.tiled_design import searched
from cloakwork.privacy.variance import place_variances
from cloakwork.sensor import OFFSET_PARTS

RESOLUTION_COST = 0.01
_DIVISION = 1 + 2.0**-19  # covers the margin that `Allowance.cost` adds to a step


def sensitivity(physics: Physics | Family, *, alpha: float, scope: Scope | str = Scope.NETWORK) -> float:
    """How far a move of size `alpha` can shift the readings (same unit as the readings), rounded outward.

    Notes
    -----
    alpha * max ||M_i - M_j||_2 / d(i, j) over adjacent places i, j (Gilbert and McMillan, Proposition 5); with scope
    "sensor" the largest |M_ki - M_kj| / d(i, j) of any sensor k instead. Over a continuum of places it is the largest
    directional derivative. For a `Family` with a `Timing`, sources move between the readings of a frame
    (`Family.steepest`).

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> round(sensitivity(HeatLine(n=100, m=50, T=0.05), alpha=0.01), 6)
    0.135897
    """
    positive("alpha", alpha, error=CalibrationError)
    family = physics if isinstance(physics, Family) else Family(physics)
    if member_of("scope", scope, Scope, error=CalibrationError) is Scope.SENSOR:
        return alpha * float(family.each.max()) * (1 + 1e-15)
    return alpha * family.steepest().value * (1 + 1e-15)


def refuse_nothing_to_hide(physics: Physics, slope: float) -> None:
    """Refuse a model in which no move changes a reading."""
    if slope <= 1e-13 * max(physics.peak, 1e-300):
        raise CalibrationError(
            "no move of a source changes any reading, so there is nothing to hide. Check that the sensors can see the "
            "sources."
        )


def reading_mu(
    shift: float, *, sigma: float, step: float, resolution: float | None = None, noise_floor: float = 0.0
) -> float:
    """The mu of one reading of one sensor whose true value moves by `shift`, rounded up."""
    noise, rounding = np.array([sigma]), np.array([step + (resolution or 0.0)])
    charges = [Charge(noise, rounding)]
    if resolution is not None:
        own = NoiseFloor(np.array([noise_floor]), np.array([resolution]))
        charges.append(own.charged(noise, rounding))
    return min(float((shift + c.rounding[0] * (1 + 2.0**-20)) / c.noise[0]) for c in charges) * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Standard deviation of each sensor's noise, and how much rounding it covers."""

    sigma: FloatArray
    rounding: FloatArray


@dataclass(frozen=True, eq=False)
class Allowance:
    """How much one frame of a window may reveal: `mu` standard deviations for a move of the claim's alpha.

    It holds for every model of the family. `sensitivity` is the largest shift of the readings by such a move in the
    scope of the claim. Without a stated step of sending, for exact readings only, that step follows the noise; it is
    then `finer` by this factor than usual. Designs locate sources in spite of `drift`.
    """

    family: Family
    claim: Claim
    mu: float
    sensitivity: float
    hardware: SensorSteps
    finer: float = 1.0
    drift: Drift | Nuisance | None = None

    @property
    def own(self) -> NoiseFloor | None:
        """The noise that sensors have before their hardware rounds; None if it is not stated."""
        return self.hardware.floor

    @property
    def rounding(self) -> FloatArray | None:
        """The most that rounding adds to the shift of each sensor; None if it is one step that follows the noise."""
        resolution, sent, _ = self.hardware
        return sent if sent is None or resolution is None else sent + resolution

    @property
    def sensors(self) -> int:
        return self.family.physics.sensors

    @property
    def _root(self) -> float:
        return math.sqrt(self.claim.seen(self.sensors))

    @property
    def ratio(self) -> float:
        """Noise in steps if steps follow it: rounding costs 1 %, unless the tables end before."""
        usual = (1 + RESOLUTION_COST) / RESOLUTION_COST * self._root / self.mu
        return min(usual * self.finer, DEVICE_TABLES.ratio / (1.001 if self.finer == 1 else 2 * OFFSET_PARTS))

    def frame_mu(self, sigma: FloatArray, *, rounded: float = 1.0) -> float:
        """The mu of a frame with this noise, rounded up; what rounding adds counts `rounded` times."""
        return min(self._costs(sigma, rounded))

    def refuse_too_little(self, sigma: FloatArray) -> None:
        """Refuse noise with which a frame has more than its mu."""
        mu, claim = self.frame_mu(sigma), self.claim
        if mu <= self.mu:
            return
        # the cost of rounding stays the same if the step grows with sigma
        fixed = mu - self.cost(sigma, np.zeros_like(sigma)) if self.hardware.sent is None else 0.0
        factor = (mu - fixed) / (self.mu - fixed)
        if self.own is not None:
            factor = float((self.scaled(sigma).sigma / sigma).max())
        enough = f"multiply sigma by at least {factor * 1.0001:.4f}, or " if 1 < factor < math.inf else ""
        raise CalibrationError(
            f"this noise gives mu={mu:.6g} per frame, but epsilon={claim.epsilon:g}, delta={claim.delta:g} over "
            f"{claim.readings} frames allow {self.mu:.6g}: {enough}leave sigma out, and it is computed.",
            mu=mu,
            allowed=self.mu,
            factor=factor,
        )

    def rests_on_noise_floor(self, sigma: FloatArray) -> bool:
        """Whether the cost of this noise holds only with the stated noise floor."""
        return bool(np.argmin(self._costs(sigma)))

    def _costs(self, sigma: FloatArray, rounded: float = 1.0) -> list[float]:
        """The mu without a noise floor, and with it if it is stated; both are upper bounds."""
        charges = [Charge(sigma, self.covered(sigma))]
        if self.own is not None:
            charges.append(self.own.charged(sigma, self.covered(sigma)))
        return [self.cost(noise, rounded * rounding) for noise, rounding in charges]

    def cost(self, sigma: FloatArray, rounding: FloatArray) -> float:
        """The mu of a frame with this noise and rounding: the largest shift in standard deviations, rounded up.

        Notes
        -----
        network: alpha `Family.steepest` of the readings over sigma + ||r/sigma||; sensor: the largest
        (alpha slope_l + r_l)/sigma_l. The rounding r, a sum of steps, is taken 2^-20 larger to cover the division of
        readings by steps in floating point (|reading/step| is below 2^31).
        """
        family, added = self.family, rounding * (1 + 2.0**-20)
        if self.claim.scope is not Scope.NETWORK:
            return float(np.max((self.claim.alpha * family.each + added) / sigma)) * (1 + 1e-12)
        slope = family.steepest(1 / sigma).value
        return (self.claim.alpha * slope + math.sqrt(float(((added / sigma) ** 2).sum()))) * (1 + 1e-12)

    def chosen(self, sigma: ArrayLike) -> NoiseLevels:
        """Noise that the caller chose. This does not check whether it is enough."""
        sigmas = per_sensor("sigma", sigma, self.sensors, error=CalibrationError)
        return NoiseLevels(sigmas, self.covered(sigmas))

    def equal(self) -> NoiseLevels:
        """The least noise that is the same for all sensors."""
        if self.own is not None:
            return self.scaled(np.full(self.sensors, self.sensitivity / self.mu))
        coarse = self.sensitivity / (self.ratio * self.mu - self._root)
        rounding = np.full(self.sensors, coarse) if self.rounding is None else self.rounding
        needed = (self.sensitivity + self.claim.joint(rounding) * _DIVISION) / self.mu * (1 + 1e-11)
        return NoiseLevels(np.full(self.sensors, needed), rounding)

    def least_error(self) -> NoiseLevels:
        """The noise per sensor that locates a lone source best; never worse than equal noise."""
        if self.claim.scope is Scope.SENSOR:
            return self._least_each()
        sigma = searched(self.search()) * math.sqrt(self.claim.readings)
        own = self.scaled(sigma if self.hardware.sent is None else few_ratios(sigma, self.hardware.sent))
        same = self.equal()
        return own if self.variance(own.sigma) < self.variance(same.sigma) else same

    def variance(self, sigma: FloatArray) -> float:
        """The mean variance of a lone source located from a whole window."""
        one_frame = sigma / math.sqrt(self.claim.readings)
        return float(place_variances(self.family.physics, one_frame, drift=self.drift).mean())

    def search(self) -> Search:
        """The search over the noise of a whole window taken as one frame."""
        gain = 1 + self.family.tolerance.gain
        left = self.mu - (self._rounded if self.rounding is None else 0.0)
        reach = left * math.sqrt(self.claim.readings) / (self.claim.alpha * gain)
        rounding = np.zeros(self.sensors) if self.rounding is None else (self._worth / (self.claim.alpha * gain)) ** 2
        return Search(self.family, reach, rounding, self.drift)

    @property
    def _worth(self) -> FloatArray:
        """The rounding that a search should cover: without the hardware's where the noise floor makes that cheaper."""
        plain = self.covered(np.ones(self.sensors))
        if self.own is None or not self.rests_on_noise_floor(self.equal().sigma):
            return plain
        return np.where(self.own.helps, plain - self.own.resolution, plain)

    @property
    def _rounded(self) -> float:
        """The mu that rounding takes when steps follow the noise."""
        return self._root / self.ratio * _DIVISION

    def scaled(self, sigma: FloatArray) -> NoiseLevels:
        """Scale the noise until it meets the exact condition."""
        if self.own is not None:
            scaled = self._scaled_with_own(sigma)
            return NoiseLevels(scaled, self.covered(scaled))
        fixed = self._rounded if self.rounding is None else 0.0
        cost = self.frame_mu(sigma)
        for _ in range(5):
            sigma = sigma * ((cost - fixed) / (self.mu - fixed) * (1 + 1e-11))
            cost = self.frame_mu(sigma)
            if cost <= self.mu:
                break
        return NoiseLevels(sigma, self.covered(sigma))

    def _scaled_with_own(self, sigma: FloatArray) -> FloatArray:
        """Scale the noise of sensors with a noise floor until it just meets the exact condition."""
        enough = self.cost(sigma, self.covered(sigma)) / self.mu * (1 + 1e-11)
        least = self.cost(sigma, np.zeros_like(sigma)) / self.mu

        def excess(factor: float) -> float:
            return math.log(self.frame_mu(sigma * factor) / self.mu)

        if least < enough and excess(least) <= 0:
            return sigma * least
        if least >= enough or excess(enough) > -1e-9:
            return sigma * enough
        scaled = sigma * float(optimize.brentq(excess, least, enough, rtol=1e-10)) * (1 + 1e-9)
        return scaled if self.frame_mu(scaled) <= self.mu else sigma * enough

    def _least_each(self) -> NoiseLevels:
        """In scope "sensor", each sensor needs the noise that it would need alone."""
        slopes = self.family.each
        moved = self.claim.alpha * np.maximum(slopes, BLIND * slopes.max())
        if self.rounding is None:
            sigma = moved / (self.mu - self._rounded) * (1 + 1e-11)
        else:
            sigma = (moved + self.covered(moved) * _DIVISION) / self.mu * (1 + 1e-11)
        if self.own is not None:
            sigma = min(sigma, self._least_each_with_own(moved, sigma, self.own), key=lambda each: np.log(each).sum())
        return NoiseLevels(sigma, self.covered(sigma))

    def _least_each_with_own(self, moved: FloatArray, enough: FloatArray, own: NoiseFloor) -> FloatArray:
        """The noise that each sensor needs alone, to nine digits; `enough` is what it needs without a noise floor."""
        low = moved / self.mu
        high = 16 * np.maximum(enough, low)
        while (high > low * (1 + 1e-9)).any():
            middle = np.sqrt(low * high)
            noise, rounding = own.charged(middle, self.covered(middle))
            meets = (moved + rounding * _DIVISION) / noise * (1 + 1e-11) <= self.mu
            low, high = np.where(meets, low, middle), np.where(meets, middle, high)
        return high

    def covered(self, sigma: FloatArray) -> FloatArray:
        """The rounding to cover, or steps that give all sensors the same ratio, so that they share one table."""
        return sigma / self.ratio if self.rounding is None else self.rounding
