"""What one reading of one sensor promises, by the frozen plan: the claim that an audit on the bench tests."""

import math
from dataclasses import dataclass

from scipy.special import ndtr

from cloakwork._checks import not_negative, positive
from cloakwork.auditing.audit import ANNOUNCED
from cloakwork.errors import InputError
from cloakwork.physics import Family
from cloakwork.privacy import Profile
from cloakwork.site import Plan, Site

FEWEST = 300  # reports that an audit needs at all
STRONG_SHIFT = 2.0  # standard deviations: noise a tenth too small then shows in some thousand readings
_LEARNING = 3.0  # the auditor needs so many times what it would if it knew the best event
_LARGEST_MU = 12.0


@dataclass(frozen=True, kw_only=True)
class BenchClaim:
    """The claim for a single reading of one sensor, on two set-ups whose true readings differ by at most `shift`.

    Parameters
    ----------
    sensor, unit
        Whose reading, and its unit.
    sigma, step
        Standard deviation of the planned noise, and the step of the readings, in that unit.
    shift, hidden_shift
        How far the two true readings are apart at most, and how far a move that the site hides can shift this sensor.
    mu
        (shift + step) / sigma: how many standard deviations apart, rounding included.
    epsilon, delta
        One point of what Gaussian noise promises at this mu; `delta` includes the error of the table of noise.

    Notes
    -----
    A reading is rounded to steps and has Gaussian noise added, rounded: post-processing of the Gaussian mechanism,
    whose exact delta at each epsilon is that of Balle and Wang (Theorem 8). It holds for all epsilons; testing near
    mu / 2 finds missing noise soonest.
    """

    sensor: str
    unit: str
    sigma: float
    step: float
    shift: float
    hidden_shift: float
    mu: float
    epsilon: float
    delta: float

    def reports_needed(self, scale: float, *, confidence: float = 0.95) -> float:
        """About how many readings per set-up can show that noise is only `scale` times the planned one."""
        mu = self.mu / positive("scale", scale)
        cut = mu / 2 - self.epsilon / mu
        p, q, factor = float(ndtr(cut)), float(ndtr(cut - mu)), math.exp(self.epsilon)
        excess = p - factor * q - self.delta
        if excess <= 0:
            return math.inf
        spread = p * (1 - p) + factor**2 * q * (1 - q)
        return max(FEWEST, _LEARNING * -2 * math.log1p(-confidence) * spread / excess**2)

    def reports_taken(self, scale: float, *, ceiling: int, confidence: float = 0.95) -> float:
        """After how many readings an audit of at most `ceiling` would say so: not before it announces anything."""
        return max(min(ANNOUNCED, ceiling), self.reports_needed(scale, confidence=confidence))

    @property
    def strong_shift(self) -> float:
        """A shift with which missing noise is found soon."""
        return STRONG_SHIFT * self.sigma


def bench_claim(
    site: Site, plan: Plan, sensor: str, *, shift: float | None = None, epsilon: float | None = None
) -> BenchClaim:
    """What one reading of `sensor` promises for two true readings that differ by `shift`, in the site's unit.

    Without a shift it is the largest that a move of alpha, which the site hides, can make on this sensor. Without an
    epsilon it is half of mu.
    """
    planned = plan.sensor(sensor)
    slopes = Family(site.physics, site.tolerance).sensor_slopes()
    hidden = plan.claim.alpha * float(slopes[site.sensor_ids.index(sensor)])
    apart = hidden if shift is None else not_negative("shift", shift)
    mu = (apart + planned.step * (1 + 2.0**-20)) / planned.sigma * (1 + 1e-12)
    if mu > _LARGEST_MU:
        raise InputError(
            f"--shift {apart:g}: that is {mu:.3g} standard deviations of the noise, which it does not hide at all. "
            f"Give less than {_LARGEST_MU * planned.sigma:.3g}; {STRONG_SHIFT * planned.sigma:.3g} is a good choice.",
            shift=apart,
        )
    at = mu / 2 if epsilon is None else not_negative("epsilon", epsilon)
    error = plan.tables[planned.table].error
    return BenchClaim(
        sensor=sensor,
        unit=site.unit,
        sigma=planned.sigma,
        step=planned.step,
        shift=apart,
        hidden_shift=hidden,
        mu=mu,
        epsilon=at,
        delta=min(Profile(mu).delta(at) + (1 + math.exp(at)) * error, 1 - 2.0**-50),
    )
