"""What one reading of a test device promises by the frozen plan, and what two recordings say about the set-ups."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from cloakwork._checks import IntArray, not_negative, percent
from cloakwork.auditing.audit import FEWEST_REPORTS, Audit, Verdict
from cloakwork.auditing.page import Subject
from cloakwork.errors import InputError
from cloakwork.physics import Family
from cloakwork.privacy import LaplaceProfile, NoiseLaw, Profile, reading_mu
from cloakwork.site import BitPlan, BitSite, FrozenPlan, Plan, Site

STRONG_SHIFT = 2.0  # standard deviations: noise a tenth too small then shows within a few thousand readings
HALF_NOISE = 0.5  # of the planned noise: even a weak audit should find it
_LEARNING = 3.0  # an auditor that knew the best event would need this many times fewer reports
_LARGEST_MU = 12.0
_CLEAR, _SUSPECT = 3.0, 2.0  # standard errors
_LIMITS = (
    "Anything about all sensors together: what many sensors or many readings reveal follows from the plan only if each "
    "adds its own noise.",
    "Its budget: a test device has none, so how many readings it takes at work was not tested.",
)


@dataclass(frozen=True, kw_only=True)
class DeviceClaim:
    """The claim (epsilon, delta) for one report of one sensor, for two set-ups.

    Of a sensor of readings, lengths are in the site's `unit`: the standard deviation `sigma` of the planned noise, the
    `step` of the readings, the stated `shift` between the set-ups, and the `rounding` that steps can add to it. Of a
    binary sensor, `truth` is the planned probability of a true report, and the lengths are 0.
    """

    site: str
    sensor: str
    epsilon: float
    delta: float
    origin: str
    truth: float = 0.0
    unit: str = ""
    sigma: float = 0.0
    step: float = 0.0
    shift: float = 0.0
    rounding: float = 0.0
    law: NoiseLaw = NoiseLaw.GAUSSIAN

    def reports_needed(self, scale: float, *, confidence: float = 0.95) -> float:
        """Return about how many reports of each set-up show noise that is only `scale` times the planned one."""
        factor = math.exp(self.epsilon)
        mu = (self.shift + self.rounding) / (scale * self.sigma) if self.sigma else 0.0
        if self.truth:
            p = 1 / (1 + math.pow(1 / self.truth - 1, 1 / scale))
            q = 1 - p
        elif self.law is NoiseLaw.LAPLACE:
            p = 1 - math.exp(-max(0.0, math.sqrt(2) * mu - self.epsilon) / 2) / 2
            q = (1 - p) / factor
        else:
            cut = mu / 2 - self.epsilon / mu
            p, q = float(ndtr(cut)), float(ndtr(cut - mu))
        excess = p - factor * q - self.delta
        if excess <= 0:
            return math.inf
        spread = p * (1 - p) + factor**2 * q * (1 - q)
        return max(float(FEWEST_REPORTS), _LEARNING * -2 * math.log1p(-confidence) * spread / excess**2)

    def shown(self, value: float, digits: int = 4) -> str:
        """Return a value with the site's unit."""
        return f"{value:.{digits}g}{f' {self.unit}' if self.unit else ''}"

    def subject(self, audit: Audit, recordings: tuple[IntArray, IntArray], *, missing: int = 0) -> Subject:
        """Return the subject of the report: what the recordings show about the set-ups and the noise."""
        never = f"By their numbers, {missing:,} readings never came. This audit says nothing about their content."
        notes, cautions, doubt = self._bits(recordings) if self.truth else self._readings(recordings)
        few = self.reports_needed(HALF_NOISE, confidence=audit.confidence) > audit.reports_used
        if few:
            cautions = (*cautions, "So few readings would hardly reveal noise that is half as large as planned.")
        return Subject(
            name=f"The sensor {self.sensor} of {self.site}",
            inputs=("set-up 0", "set-up 1"),
            claim=(self.origin,),
            notes=(*(() if audit.dependence else notes), *((never,) if missing else ())),
            limits=_LIMITS,
            cautions=cautions if audit.verdict is Verdict.NONE_FOUND else (),
            doubt=doubt,
        )

    def _readings(self, recordings: tuple[IntArray, IntArray]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Compare shift and scatter of two recordings with what was stated: notes, cautions and a doubt."""
        first, second = (values * self.step for values in recordings)
        apart, allowed = abs(float(first.mean() - second.mean())), self.shift + self.rounding
        error = math.sqrt(first.var() / len(first) + second.var() / len(second))
        scatter = math.sqrt((first.var() + second.var()) / 2)
        kurtosis = 0.8 if self.law is NoiseLaw.LAPLACE else 2
        scatter_error = scatter / math.sqrt(kurtosis * (len(first) + len(second)))
        notes = [
            f"The readings of the two set-ups are {self.shown(apart, 3)} ± {self.shown(error, 2)} apart on average, "
            f"and scatter by {self.shown(scatter, 3)}. The stated distance is at most {self.shown(allowed, 3)}, "
            f"rounding included, and the planned noise is {self.shown(self.sigma, 3)}. Readings are whole steps of "
            f"{self.shown(self.step, 6)}."
        ]
        missing = scatter + _CLEAR * scatter_error < self.sigma  # which no set-up can cause
        if missing:
            notes.append("They scatter by less than the planned noise alone: noise is missing.")
        cautions = []
        if apart + _CLEAR * error < self.shift - self.rounding:
            cautions.append("The set-ups differed by less than stated: this audit tested less than the claim.")
        elif apart <= _CLEAR * error:
            cautions.append("The readings cannot show whether the set-ups differed.")
        if apart - _CLEAR * error > allowed:
            cautions.append("The set-ups differed by more than stated: check them.")
        far = not missing and apart - _SUSPECT * error > allowed
        doubt = (
            "Either the device breaks its claim or the set-ups differ too much: the readings are "
            f"{self.shown(apart, 3)} apart on average, where at most {self.shown(allowed, 3)} was stated. Check the "
            "set-ups, and audit again."
        )
        return tuple(notes), tuple(cautions), doubt if far else ""

    def _bits(self, recordings: tuple[IntArray, IntArray]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        shares = [float(np.mean(values)) for values in recordings]
        error = math.sqrt(sum(s * (1 - s) / len(part) for s, part in zip(shares, recordings, strict=True)))
        note = (
            f"{percent(shares[0])} and {percent(shares[1])} of the reports are 1. If the sensor sees 0 in one set-up "
            f"and 1 in the other, an honest device has a difference of {percent(2 * self.truth - 1)}."
        )
        unseen = 3 * error > 2 * self.truth - 1
        return (note,), ("These reports cannot show whether the set-ups differed.",) if unseen else (), ""


def device_claim(
    site: Site | BitSite, plan: FrozenPlan, sensor: str, *, shift: float | None = None, epsilon: float | None = None
) -> DeviceClaim:
    """Return the claim for one report of `sensor`, for two true readings that differ by `shift`, in the site's unit.

    The default shift is the largest that a move of alpha, which the site hides, causes at this sensor. The default
    epsilon is half of the Gaussian DP parameter mu = (shift + rounding) / sigma, where missing noise shows soonest.

    Notes
    -----
    A reading is rounded to steps and has noise added, rounded: post-processing of the Gaussian mechanism, whose exact
    delta at each epsilon is in Balle and Wang (Theorem 8), or of the Laplace mechanism.
    """
    if isinstance(plan, BitPlan):
        return _bit_claim(plan, sensor, shift, epsilon)
    assert isinstance(site, Site) and isinstance(plan, Plan)  # noqa: S101, PT018 - one of bits has a plan of bits
    planned = plan.sensor(sensor)
    slopes = Family(site.physics, site.tolerance).each
    hidden = plan.claim.alpha * float(slopes[site.sensor_ids.index(sensor)])
    apart = hidden if shift is None else not_negative("shift", shift)
    hardware = site.resolution_of(sensor)
    mu = reading_mu(
        apart,
        sigma=planned.sigma,
        step=planned.step,
        resolution=hardware,
        noise_floor=planned.noise_floor,
    )
    if mu > _LARGEST_MU:
        raise InputError(
            f"shift={apart:g} is {mu:.3g} standard deviations of the noise, too far for it to hide anything. Give less "
            f"than {_LARGEST_MU * planned.sigma:.3g}; {STRONG_SHIFT * planned.sigma:.3g} is a good choice.",
            shift=apart,
            parameter="shift",
        )
    at = mu / 2 if epsilon is None else not_negative("epsilon", epsilon)
    noise = LaplaceProfile(math.sqrt(2) * mu) if plan.law is NoiseLaw.LAPLACE else Profile(mu)
    error = (1 + math.exp(at)) * plan.tables[planned.table].error
    claim = DeviceClaim(
        site=plan.site,
        sensor=sensor,
        epsilon=at,
        delta=min(noise.delta(at) + error, 1 - 2.0**-50),
        origin="",
        unit=site.unit,
        sigma=planned.sigma,
        step=planned.step,
        shift=apart,
        rounding=planned.step + (hardware or 0.0),
        law=plan.law,
    )
    origin = (
        f"By the plan {plan.digest[:12]} this sensor adds {plan.law.title()} noise with a standard deviation of "
        f"{claim.shown(claim.sigma)}. So one reading has at most this epsilon and delta for set-ups whose true "
        f"readings differ by at most {claim.shown(apart)}, as was stated, and {claim.shown(claim.rounding)} for "
        f"rounding. A move of {plan.claim.alpha:g}, which the site hides, shifts this sensor by at most "
        f"{claim.shown(hidden)}."
    )
    return replace(claim, origin=origin)


def _bit_claim(plan: BitPlan, sensor: str, shift: float | None, epsilon: float | None) -> DeviceClaim:
    if sensor not in plan.ids:
        raise InputError(f"{plan.site} has no sensor {sensor!r}. It has {', '.join(plan.ids)}.", sensor=sensor)
    if shift is not None:
        raise InputError(
            f"{sensor} is a binary sensor: leave out the shift, and have it see 0 in one set-up and 1 in the other.",
            shift=shift,
            parameter="shift",
        )
    other, each = plan.other, plan.each
    at = each if epsilon is None else not_negative("epsilon", epsilon)
    delta = 0.0 if at >= each else 1 - other - math.exp(at) * other + 1e-12
    origin = (
        f"By the plan {plan.digest[:12]} this sensor reports what it sees with probability {1 - other:.6g}, and else "
        "the opposite. So one report has at most this epsilon and delta, whatever the set-ups are."
    )
    return DeviceClaim(site=plan.site, sensor=sensor, epsilon=at, delta=delta, origin=origin, truth=1 - other)
