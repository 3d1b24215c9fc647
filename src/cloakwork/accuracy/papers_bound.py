"""The papers' upper bound on the error of basis pursuit, with its constants worked out and its assumptions checked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cloakwork._checks import positive, rounded_up
from cloakwork.accuracy.papers_constants import Constants, LineSetting, proof_constants
from cloakwork.accuracy.whitening import sigma_of_each_sensor
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, Physics

OUTWARD = 1 + 1e-9


@dataclass(frozen=True)
class Assumption:
    """One thing that the proof needs: what it is, whether it holds, and the numbers behind that."""

    claim: str
    holds: bool
    why: str


@dataclass(frozen=True)
class PapersBound:
    """An upper bound on the earth mover distance between the true map and the one that basis pursuit finds.

    Parameters
    ----------
    value
        In units of the line; with `probability` at least, the distance is not larger. Infinite if an assumption fails,
        and the length of the line if the bound says nothing.
    probability
        How often the noise is small enough for it.
    radius
        The radius of basis pursuit that it holds for, in units of the readings.
    constants
        B, C1 .. C5 of the proof, for a line of length 1; None if an assumption fails.
    assumptions
        What the proof needs, each with whether it holds.
    length
        Length of the line, which no distance exceeds.
    """

    value: float
    probability: float
    radius: float
    constants: Constants | None
    assumptions: tuple[Assumption, ...]
    length: float

    @property
    def informative(self) -> bool:
        """Whether it says more than that nothing is farther than the length of the line."""
        return self.value < self.length

    def __str__(self) -> str:
        failed = [f"{one.claim}: {one.why}" for one in self.assumptions if not one.holds]
        if failed:
            return "The papers' bound does not apply. It assumes that " + "; that ".join(failed) + "."
        if not self.informative:
            return "The papers' bound applies but says nothing: it is not below the length of the line."
        value = rounded_up(self.value)
        return f"The papers' bound: with probability {self.probability:g} the distance (EMD) is at most {value}."


def papers_bound(
    physics: Physics,
    at: Sequence[object],
    sigma: float,
    *,
    radius: float | None = None,
    probability: float = 0.9,
) -> PapersBound:
    """How wrong basis pursuit can be at the most for unit sources at the given places of a line, after the papers.

    Parameters
    ----------
    physics
        A `HeatLine`; the papers prove nothing for other spaces.
    at
        Positions of the sources, on the places of the line.
    sigma
        Standard deviation of the noise, the same for all sensors.
    radius
        The radius given to `BasisPursuit(radius=...)`; the `probability` quantile of the noise's length when left out.
    probability
        How often the bound is to hold.

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
    computed and rounded down. Where this differs from the print: C1, C2, C3, C5; g'' has 1 - z^2/(2T); interference is
    counted for all sources (k^2 - 1, printed k); the first term has 1/sqrt(k) by Cauchy and Schwarz (printed 1/k); the
    last has min(k, .) (printed min(1, .)); and as sources lie differently between the sensors, each one's part of C3
    and C5 is multiplied by the least C4 over its own, without which the sum over sources need not be positive.

    Examples
    --------
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> print(papers_bound(line, [0.5], sigma=1e-5))
    The papers' bound: with probability 0.9 the distance (EMD) is at most 0.01204.
    >>> [one.claim for one in papers_bound(line, [0.05], sigma=1e-5).assumptions if not one.holds]
    ['there are floor(sqrt(T/2) m) sensors on both sides of each source']
    """
    line, noise = _checked(physics, sigma)
    if not 0 < probability < 1:
        raise InputError(f"probability={probability!r}: give a number between 0 and 1.", probability=probability)
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray) or not len(at):
        raise InputError(f"at={at!r}: give a list of one position or more.", at=at)
    longest = noise * math.sqrt(float(stats.chi2.ppf(probability, line.sensors))) * OUTWARD
    given = longest if radius is None else positive("radius", radius)
    places = np.array([line.space.index(position) for position in at], dtype=np.int64)
    setting = LineSetting.from_line(line, np.sort(line.space.places[places, 0]))
    assumptions = _assumptions(setting, line, given, longest)
    if not all(one.holds for one in assumptions):
        return PapersBound(math.inf, probability, given, None, assumptions, line.length)
    misfit = (given + longest + 2 * setting.k * line.error) * line.length / line.gain
    constants = proof_constants(setting, misfit)
    return PapersBound(
        _value(constants, setting.k) * line.length, probability, given, constants, assumptions, line.length
    )


def _checked(physics: Physics, sigma: float) -> tuple[HeatLine, float]:
    if not isinstance(physics, HeatLine):
        raise InputError(
            f"the papers' bound is for heat on a line, not for a {type(physics).__name__}: give a HeatLine, or use "
            "limits(physics, sigma) for what is possible elsewhere."
        )
    sigmas = sigma_of_each_sensor(physics, sigma)
    if not (sigmas == sigmas[0]).all():
        raise InputError("sigma differs between sensors: the papers' bound is for equal noise. Give one number.")
    return physics, float(sigmas[0])


def _assumptions(setting: LineSetting, line: HeatLine, radius: float, longest: float) -> tuple[Assumption, ...]:
    T, k = setting.T, setting.k
    gap, needed = setting.smallest_gap, math.sqrt(2 * T)
    sides = setting.sensors_on_each_side
    return (
        Assumption(
            "sensors are evenly spaced",
            setting.even,
            f"spacing {setting.spacing * line.length:.4g}" if setting.even else "the gaps between sensors differ",
        ),
        Assumption(
            "sensors are dense: the nearest ones lie within sqrt(T/2) of a source",
            setting.pairs >= 1,
            f"spacing {setting.spacing:.3g} of the length, sqrt(T/2) is {math.sqrt(T / 2):.3g} of it",
        ),
        Assumption(
            "the heat has not spread over the whole line: sqrt(2T) < 1",
            needed < 1,
            f"sqrt(2T) is {needed:.3g} of the length",
        ),
        Assumption(
            "sources are more than sqrt(2T) apart",
            k == 1 or gap > needed,
            "there is one source"
            if k == 1
            else f"the nearest are {gap:.3g} of the length apart, sqrt(2T) is {needed:.3g}",
        ),
        Assumption(
            "there are floor(sqrt(T/2) m) sensors on both sides of each source",
            sides >= max(setting.pairs, 1),
            f"one has only {sides}, needed are {max(setting.pairs, 1)}"
            if sides < max(setting.pairs, 1)
            else f"{sides} or more, needed are {setting.pairs}",
        ),
        Assumption(
            "the noise is no longer than the radius",
            longest <= radius * OUTWARD,
            f"the radius is {radius:.4g}, and the noise stays below {longest:.4g} with the probability asked for",
        ),
    )


def _value(c: Constants, k: int) -> float:
    short = min(1.0, c.B / c.C4)
    if short >= 1 or c.C5 <= 0:
        return 1.0
    outside = min(float(k), c.B / c.C3) if c.C3 > 0 else float(k)
    near = math.sqrt(c.B / (c.C5 * k * (1 - short)))
    return min(1.0, (near + k * short / (1 - short) + outside / (k * (1 - short))) * OUTWARD)
