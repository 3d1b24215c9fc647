"""The papers' upper bound on the error of basis pursuit, with explicit constants and checked assumptions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import positive, rounded_up
from cloakwork.accuracy.papers_constants import Constants, LineSetting, proof_constants
from cloakwork.accuracy.whitening import check_positions, sigma_of_each_sensor
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, Physics

OUTWARD = 1 + 1e-9


@dataclass(frozen=True)
class Assumption:
    """An assumption of the proof, whether it holds, and the numbers behind the answer."""

    claim: str
    holds: bool
    why: str


@dataclass(frozen=True)
class PapersBound:
    """An upper bound on the earth mover distance between the true map and that of basis pursuit.

    The distance is at most `value`, in units of the line, with at least the given `probability` over the noise.
    `value` is infinite if an assumption fails, and the `length` of the line if the bound is vacuous. `radius` is that
    of basis pursuit, in units of the readings; `constants` are B, C1 .. C5 of the proof for a line of length 1, or None
    if an assumption fails.
    """

    value: float
    probability: float
    radius: float
    constants: Constants | None
    assumptions: tuple[Assumption, ...]
    length: float

    @property
    def informative(self) -> bool:
        """Whether the bound is below the length of the line."""
        return self.value < self.length

    def __str__(self) -> str:
        failed = [f"{each.claim}: {each.why}" for each in self.assumptions if not each.holds]
        if failed:
            return "The papers' bound does not apply. It assumes that " + "; that ".join(failed) + "."
        if not self.informative:
            return "The papers' bound applies but is vacuous: it is not below the length of the line."
        value = rounded_up(self.value)
        return f"The papers' bound: with probability {self.probability:g} the distance (EMD) is at most {value}."


def papers_bound(
    physics: Physics, at: Sequence[object], sigma: float, *, radius: float | None = None, probability: float = 0.9
) -> PapersBound:
    """Bound the error of basis pursuit for unit sources on a line from above, after the papers.

    `physics` must be a `HeatLine`, and `sigma` is the standard deviation of the noise of all sensors. `radius` is that
    of `BasisPursuit(radius=...)`, by default the `probability` quantile of the length of the noise. The bound holds
    with the given probability.

    Notes
    -----
    Gilbert and McMillan, Theorem 14 (first version: Theorem 9 and Corollary 10), with explicit constants, for k
    unit sources x_i, a line of length 1, and a noise vector z that is no longer than the radius:

        EMD <= sqrt(B / (C5 k (1-b))) + k b / (1-b) + min(k, B/C3) / (k (1-b)),      b = min(1, B/C4)
        B = C2 [sqrt(m) (radius + ||z||) + 2p (k^2 - 1) g(A)],  p = floor(sqrt(T/2) m),  g the kernel

    where sources are more than sqrt(2T) + 2A apart. With s_j the p sensors before x_i and s_j+p the p after it,

        W_ij(z) = |g'(s_j+p - x_i)| g(z - s_j) + |g'(x_i - s_j)| g(s_j+p - z)
        C1 = least over i, j of inf -W_ij''/2           C2 = e^(-1/8) / (4 sqrt(2 pi) T)
        C3 = least over i and places outside S_i of sum_j W_ij(x_i) - W_ij(z)
        C4 = least over i of sum_j W_ij(x_i)            C5 = least over i of sum_j inf -W_ij''/2

    with S_i within sqrt(T/2) of x_i and the infima over [s_j+p - sqrt(2T), s_j + sqrt(2T)]. C1, C3, C4, C5 are
    computed and rounded down. Differences from the print: C1, C2, C3, C5; g'' has 1 - z^2/(2T); interference counts
    all sources (k^2 - 1, printed k); the first term has 1/sqrt(k) by Cauchy and Schwarz (printed 1/k); the last has
    min(k, .) (printed min(1, .)); and since sources lie differently between the sensors, each one's part of C3 and C5
    is multiplied by the least C4 over its own, without which the sum over sources need not be positive.

    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> print(papers_bound(line, [0.5], sigma=1e-5))
    The papers' bound: with probability 0.9 the distance (EMD) is at most 0.01204.
    >>> [each.claim for each in papers_bound(line, [0.05], sigma=1e-5).assumptions if not each.holds]
    ['floor(sqrt(T/2) m) sensors lie on both sides of each source']
    """
    line, noise = _checked(physics, sigma)
    if not 0 < probability < 1:
        raise InputError(f"probability={probability!r}: give a number between 0 and 1.", probability=probability)
    check_positions(at)
    longest = noise * math.sqrt(2 * float(special.gammaincinv(line.sensors / 2, probability))) * OUTWARD
    allowed = longest if radius is None else positive("radius", radius)
    setting = LineSetting.from_line(line, np.sort(line.space.places[line.space.indices(at), 0]))
    assumptions = _assumptions(setting, line, allowed, longest)
    if not all(each.holds for each in assumptions):
        return PapersBound(math.inf, probability, allowed, None, assumptions, line.length)
    misfit = (allowed + longest + 2 * setting.k * line.error) * line.length / line.gain
    constants = proof_constants(setting, misfit)
    value = _value(constants, setting.k) * line.length
    return PapersBound(value, probability, allowed, constants, assumptions, line.length)


def _checked(physics: Physics, sigma: float) -> tuple[HeatLine, float]:
    if not isinstance(physics, HeatLine):
        raise InputError(
            f"the papers' bound is for a HeatLine, not a {type(physics).__name__}: use limits(physics, sigma).",
            physics=type(physics).__name__,
        )
    sigmas = sigma_of_each_sensor(physics, sigma)
    if not (sigmas == sigmas[0]).all():
        raise InputError("sigma differs between sensors: the papers' bound takes one number.", sigma=sigma)
    return physics, float(sigmas[0])


def _assumptions(setting: LineSetting, line: HeatLine, radius: float, longest: float) -> tuple[Assumption, ...]:
    T, k = setting.T, setting.k
    gap, needed = setting.smallest_gap, math.sqrt(2 * T)
    sides = setting.sensors_on_each_side
    pairs = max(setting.pairs, 1)
    spacing = f"spacing {setting.spacing * line.length:.4g}" if setting.even else "the gaps between sensors differ"
    dense = f"spacing {setting.spacing:.3g} of the length, sqrt(T/2) is {math.sqrt(T / 2):.3g} of it"
    apart = f"the nearest are {gap:.3g} of the length apart, sqrt(2T) is {needed:.3g}" if k > 1 else "one source"
    beside = f"{sides} or more, {pairs} needed" if sides >= pairs else f"one source has only {sides}, {pairs} needed"
    noise = f"the radius is {radius:.4g}, the noise stays below {longest:.4g} with the given probability"
    spread = f"sqrt(2T) is {needed:.3g} of the length"
    return (
        Assumption("sensors are evenly spaced", setting.even, spacing),
        Assumption("sensors are dense: the nearest lie within sqrt(T/2) of a source", setting.pairs >= 1, dense),
        Assumption("the heat has not spread over the whole line: sqrt(2T) < 1", needed < 1, spread),
        Assumption("sources are more than sqrt(2T) apart", k == 1 or gap > needed, apart),
        Assumption("floor(sqrt(T/2) m) sensors lie on both sides of each source", sides >= pairs, beside),
        Assumption("the noise is no longer than the radius", longest <= radius * OUTWARD, noise),
    )


def _value(c: Constants, k: int) -> float:
    short = min(1.0, c.B / c.C4)
    if short >= 1 or c.C5 <= 0:
        return 1.0
    outside = min(float(k), c.B / c.C3) if c.C3 > 0 else float(k)
    near = math.sqrt(c.B / (c.C5 * k * (1 - short)))
    return min(1.0, (near + k * short / (1 - short) + outside / (k * (1 - short))) * OUTWARD)
