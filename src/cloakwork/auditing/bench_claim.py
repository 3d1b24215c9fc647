"""The claim that an audit on the bench tests: the privacy of one reading of one sensor, by the frozen plan."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from cloakwork._checks import IntArray, not_negative, positive
from cloakwork.auditing.audit import ANNOUNCED
from cloakwork.auditing.result import Verdict
from cloakwork.errors import InputError
from cloakwork.physics import Family
from cloakwork.privacy import LaplaceProfile, NoiseLaw, Profile, reading_mu
from cloakwork.site import BitPlan, Plan, Site

FEWEST_REPORTS = 300  # that an audit needs
STRONG_SHIFT = 2.0  # standard deviations: noise a tenth too small then shows in a few thousand readings
_LEARNING = 3.0  # the auditor needs so many times what it would if it knew the best event
_LARGEST_MU = 12.0


@dataclass(frozen=True, kw_only=True)
class BenchClaim:
    """The claim for a single reading of one sensor, on two set-ups whose true readings differ by at most `shift`.

    Lengths are in the `unit` of the readings: the standard deviation `sigma` of the planned noise, which follows `law`;
    the `step` of the readings; the `rounding`, how much the steps of readings and hardware can add to the shift; and
    `hidden_shift`, how far a move that the site hides can shift this sensor. `mu` = (shift + rounding) / sigma. At
    `epsilon`, this noise promises `delta`, which includes the error of the table of noise.

    Notes
    -----
    A reading is rounded to steps and has noise added, rounded: post-processing of the Gaussian mechanism, whose exact
    delta at each epsilon is that of Balle and Wang (Theorem 8), or of the Laplace mechanism. It holds for all epsilons;
    testing near mu / 2 finds missing noise soonest.
    """

    sensor: str
    unit: str
    sigma: float
    step: float
    rounding: float
    shift: float
    hidden_shift: float
    mu: float
    law: NoiseLaw = NoiseLaw.GAUSSIAN
    epsilon: float
    delta: float

    def reports_needed(self, scale: float, *, confidence: float = 0.95) -> float:
        """About how many readings per set-up show that noise is only `scale` times the planned one."""
        mu = self.mu / positive("scale", scale)
        cut, factor = mu / 2 - self.epsilon / mu, math.exp(self.epsilon)
        p, q = float(ndtr(cut)), float(ndtr(cut - mu))
        if self.law is NoiseLaw.LAPLACE:
            above = math.exp(-max(0.0, math.sqrt(2) * mu - self.epsilon) / 2) / 2
            p, q = 1 - above, above / factor
        excess = p - factor * q - self.delta
        if excess <= 0:
            return math.inf
        spread = p * (1 - p) + factor**2 * q * (1 - q)
        return max(FEWEST_REPORTS, _LEARNING * -2 * math.log1p(-confidence) * spread / excess**2)

    def reports_taken(self, scale: float, *, ceiling: int, confidence: float = 0.95) -> float:
        """About how many readings an audit of at most `ceiling` takes until it announces that."""
        return max(min(ANNOUNCED, ceiling), self.reports_needed(scale, confidence=confidence))

    def shown(self, value: float, digits: int = 4) -> str:
        """A value with the site's unit."""
        return f"{value:.{digits}g}{f' {self.unit}' if self.unit else ''}"

    @property
    def strong_shift(self) -> float:
        """A shift that reveals missing noise quickly."""
        return STRONG_SHIFT * self.sigma


def bench_claim(
    site: Site, plan: Plan, sensor: str, *, shift: float | None = None, epsilon: float | None = None
) -> BenchClaim:
    """The claim for one reading of `sensor`, for two true readings that differ by `shift`, in the site's unit.

    The default shift is the largest that a move of alpha, which the site hides, causes at this sensor. The default
    epsilon is half of mu.
    """
    planned = plan.sensor(sensor)
    slopes = Family(site.physics, site.tolerance).sensor_slopes()
    hidden = plan.claim.alpha * float(slopes[site.sensor_ids.index(sensor)])
    apart = hidden if shift is None else not_negative("shift", shift)
    hardware = site.resolution_of(sensor)
    rounding = planned.step + (hardware or 0.0)
    mu = reading_mu(
        apart,
        sigma=planned.sigma,
        step=planned.step,
        resolution=hardware,
        own_noise=planned.own_noise,
    )
    if mu > _LARGEST_MU:
        raise InputError(
            f"shift={apart:g} is {mu:.3g} standard deviations of the noise, too far for it to hide anything. Give less "
            f"than {_LARGEST_MU * planned.sigma:.3g}; {STRONG_SHIFT * planned.sigma:.3g} is a good choice.",
            shift=apart,
            argument="shift",
        )
    at = mu / 2 if epsilon is None else not_negative("epsilon", epsilon)
    error = plan.tables[planned.table].error
    noise = LaplaceProfile(math.sqrt(2) * mu) if plan.law is NoiseLaw.LAPLACE else Profile(mu)
    return BenchClaim(
        sensor=sensor,
        unit=site.unit,
        sigma=planned.sigma,
        step=planned.step,
        rounding=rounding,
        shift=apart,
        hidden_shift=hidden,
        mu=mu,
        law=plan.law,
        epsilon=at,
        delta=min(noise.delta(at) + (1 + math.exp(at)) * error, 1 - 2.0**-50),
    )


CLEAR = 3.0  # standard errors of a clear difference
SUSPECT = 2.0  # standard errors beyond which the set-ups may cause what looks like a violation
HALF_NOISE = 0.5  # of the planned noise: even a weak audit should find it


@dataclass(frozen=True, kw_only=True)
class SetupComparison:
    """Shift and noise as the readings show them, to find the cause of a verdict.

    The means of the two recordings are `apart` with a standard `error`, and a recording has the standard deviation
    `scatter`, with its own, in the site's unit. The `claim` has the stated shift and the planned noise.
    """

    claim: BenchClaim
    apart: float
    error: float
    scatter: float
    scatter_error: float

    @property
    def allowed(self) -> float:
        """The largest distance of set-ups that are as stated, rounding included."""
        return self.claim.shift + self.claim.rounding

    @property
    def noise_missing(self) -> bool:
        """Whether they scatter by less than the planned noise alone, which no set-up can cause."""
        return self.scatter + CLEAR * self.scatter_error < self.claim.sigma

    @property
    def unseen(self) -> bool:
        """Whether the readings do not show that the set-ups differed."""
        return self.apart <= CLEAR * self.error

    @property
    def nearer(self) -> bool:
        """Whether the set-ups were nearer to each other than stated."""
        return self.apart + CLEAR * self.error < self.claim.shift - self.claim.rounding

    def farther(self, errors: float) -> bool:
        """Whether they are further apart than stated, by so many standard errors."""
        return self.apart - errors * self.error > self.allowed

    def notes(self) -> tuple[str, ...]:
        """Observations, as sentences."""
        sentences = [
            f"The readings of the two set-ups are {self._in_unit(self.apart)} ± {self._in_unit(self.error, 2)} apart "
            f"on average, and scatter by {self._in_unit(self.scatter)}. The stated distance is at most "
            f"{self._in_unit(self.allowed)}, rounding included, and the planned noise is "
            f"{self._in_unit(self.claim.sigma)}."
        ]
        if self.noise_missing:
            sentences.append("They scatter by less than the planned noise alone: noise is missing.")
        if self.unseen:
            sentences.append("The readings cannot show whether the set-ups differed.")
        if self.nearer:
            sentences.append(
                "That is less than stated: the set-ups were nearer to each other, or the baseline replaced readings "
                "that failed or came too late."
            )
        return tuple(sentences)

    def doubt(self) -> str:
        """Reasons why a violation may have another cause than the device; empty if there are none."""
        if self.noise_missing or not self.farther(SUSPECT):
            return ""
        return (
            "Either the device breaks its claim or the set-ups differ too much: the readings are "
            f"{self._in_unit(self.apart)} apart on average, where at most {self._in_unit(self.allowed)} was stated. "
            "Check the set-ups, and audit again."
        )

    def cautions(self, verdict: Verdict, *, reports: int, confidence: float) -> tuple[str, ...]:
        """Reasons why the absence of a violation means little, as sentences."""
        if verdict is not Verdict.NONE_FOUND:
            return ()
        sentences = []
        if self.nearer:
            at_all = ", if at all" if self.unseen else ""
            sentences.append(
                f"The set-ups differed by less than stated{at_all}: this audit tested less than the claim."
            )
        elif self.unseen:
            sentences.append(
                "The readings cannot show whether the set-ups differed: trust depends on who changed them."
            )
        if self.farther(CLEAR):
            sentences.append("The set-ups differed by more than stated: check them.")
        if self.claim.reports_needed(HALF_NOISE, confidence=confidence) > reports:
            sentences.append("So few readings would hardly reveal noise that is half as large as planned.")
        return tuple(sentences)

    def _in_unit(self, value: float, digits: int = 3) -> str:
        return self.claim.shown(value, digits)


def compare(claim: BenchClaim, recordings: tuple[IntArray, IntArray]) -> SetupComparison:
    """Compare two recordings, in steps, with the stated shift and the planned noise.

    Notes
    -----
    Standard errors are those of independent readings; that of the scatter is s / sqrt(2 n) for normal noise, and
    sqrt(5/2) times that for Laplace noise.
    """
    first, second = (values.astype(np.float64) * claim.step for values in recordings)
    scatter = math.sqrt((first.var() + second.var()) / 2)
    return SetupComparison(
        claim=claim,
        apart=abs(float(first.mean() - second.mean())),
        error=math.sqrt(first.var() / len(first) + second.var() / len(second)),
        scatter=scatter,
        scatter_error=scatter / math.sqrt((0.8 if claim.law is NoiseLaw.LAPLACE else 2) * (len(first) + len(second))),
    )


@dataclass(frozen=True, kw_only=True)
class BitClaim:
    """The claim for a single report of a binary sensor, whatever it sees in the two set-ups.

    `truth` is the planned probability of a true report. The claim is (epsilon, delta); at the default epsilon,
    ln(truth / (1 - truth)), delta is 0.
    """

    sensor: str
    truth: float
    epsilon: float
    delta: float

    def reports_needed(self, times: float, *, confidence: float = 0.95) -> float:
        """About how many reports per set-up show a device whose reports have so many times the planned epsilon."""
        p = 1 / (1 + math.exp(-times * math.log(self.truth / (1 - self.truth))))
        factor = math.exp(self.epsilon)
        excess = p - factor * (1 - p) - self.delta
        if excess <= 0:
            return math.inf
        return _LEARNING * -2 * math.log1p(-confidence) * (1 + factor**2) * p * (1 - p) / excess**2

    def notes(self, recordings: tuple[IntArray, IntArray]) -> tuple[str, ...]:
        """Shares of ones in both recordings, as sentences."""
        shares = [float(np.mean(values)) for values in recordings]
        error = math.sqrt(sum(share * (1 - share) / len(r) for share, r in zip(shares, recordings, strict=True)))
        honest = 2 * self.truth - 1
        return (
            f"{100 * shares[0]:.4g} % and {100 * shares[1]:.4g} % of the reports are 1, with a standard error of "
            f"{100 * error:.2g} % for the difference. If the sensor sees 0 in one set-up and 1 in the other, an honest "
            f"device has a difference of {100 * honest:.3g} %.",
            *(("These reports cannot show whether the set-ups differed.",) if 3 * error > honest else ()),
        )


def bit_claim(plan: BitPlan, sensor: str, *, shift: float | None = None, epsilon: float | None = None) -> BitClaim:
    """The claim for one report of a sensor of a plan; `shift` is refused, since bits have none."""
    if sensor not in plan.ids:
        raise InputError(f"{plan.site} has no sensor {sensor!r}. It has {', '.join(plan.ids)}.", sensor=sensor)
    if shift is not None:
        raise InputError(
            f"shift={shift:g}: {sensor} is a binary sensor. Have it see 0 in one set-up and 1 in the other.",
            shift=shift,
            argument="shift",
        )
    other, each = plan.other, plan.each
    at = each if epsilon is None else not_negative("epsilon", epsilon)
    delta = 0.0 if at >= each else 1 - other - math.exp(at) * other + 1e-12
    return BitClaim(sensor=sensor, truth=1 - other, epsilon=at, delta=delta)
