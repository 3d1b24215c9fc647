"""The noise floor: how much of a sensor's noise hides moves when hardware rounds a reading that is noisy already."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray

MIN_FLOOR = 0.2  # of a step; with a smaller noise floor a reading counts as rounded without any
_PARTS = 128  # noise floor is rounded down to this part of a step
_SPLITS = (0.5, 0.625, 0.75, 1.0, 1.5)  # steps of the noise floor to use up for the hardware's; the rest is left over
_TIMES = np.concatenate([0.05 * 1.15 ** np.arange(30), 3.3 * 1.4 ** np.arange(20)])  # variances, in squared steps
_CLOSE = 1e-4
_NOTHING = 1e-12  # squared steps, instead of 0
_TILTS = 40.0 * np.linspace(0, 1, 201) ** 2
_PHASES = np.arange(256) / 256
_NODES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(64))


class Charge(NamedTuple):
    """Noise and rounding of each sensor, as `Allowance.cost` takes them."""

    noise: FloatArray
    rounding: FloatArray


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Gaussian noise that sensors have before their hardware rounds, in the unit of the readings, shape (m,).

    `own` is a lower bound on its standard deviation, 0 where there is none. It pays for the hardware's step only, and
    hides no move.

    Notes
    -----
    Hardware reports h = q round((x + g)/q), g ~ N(0, s^2), and the device adds N(0, sigma^2). For readings d apart,
    what is sent is no easier to tell apart than N(0, 1) and N(d / effective, 1), with

    effective^2 = s^2 - a^2 + sum_i (t_i+1 - t_i) / V(a, t_i)^2,   0 < a <= s,   t_1 < t_2 < ... <= sigma^2

    where V(a, t) bounds how fast any quantile of h + N(0, t) moves with x (`quantile_speed`).
    `docs/science/mechanism.md` has the proof.
    """

    own: FloatArray
    resolution: FloatArray

    @property
    def helps(self) -> NDArray[np.bool_]:
        """Which sensors have enough of a noise floor to count."""
        return np.asarray(self.own >= MIN_FLOOR * self.resolution)

    def wobble(self, variance: FloatArray) -> FloatArray:
        """How far the step of the hardware can move any quantile of a reading plus N(0, variance), shape (m,).

        Notes
        -----
        A quantile of h + N(0, t) less the true reading x repeats itself with every step q of x, and rises with x by at
        most V(a, t) - 1 for each unit. So it varies by at most (V - 1) q. Where the noise floor does not help, it is q.
        """
        ratios, rest = self.own / self.resolution, self.resolution.copy()
        for ratio in np.unique(ratios[self.helps]):
            rows = ratios == ratio
            speed = _speed(_used(float(ratio)), variance[rows] / self.resolution[rows] ** 2)
            rest[rows] *= np.minimum(speed - 1, 1.0)
        return rest

    def charged(self, sigma: FloatArray, rounding: FloatArray) -> Charge:
        """The noise that hides moves, and the rounding to add to a move, for sensors that add noise of `sigma`.

        `rounding` is the sum of the steps of the hardware and of sending. Where the noise floor helps, only the step of
        sending is left of it.
        """
        noise, charge = sigma.copy(), rounding.copy()
        ratios = self.own / self.resolution
        for ratio in np.unique(ratios[self.helps]):
            rows = ratios == ratio
            hardware = self.resolution[rows]
            parts = _effective(float(ratio), (sigma[rows] / hardware) ** 2)
            moves, later = (hardware * np.sqrt(part) for part in parts)
            noise[rows] = np.minimum(moves, sigma[rows])
            charge[rows] = (rounding[rows] - hardware) * noise[rows] / np.minimum(later, sigma[rows])
        return Charge(noise, charge)


def _effective(own: float, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The effective variance, and its part without a noise floor, in squared steps, at its best split.

    The noise floor pays only for the hardware's step, also in a mean of k values: each of them has k
    times the variance of the device, and the effective variance then is at least variance / V^2.
    """
    whole = _used(own)
    splits = [*(split for split in _SPLITS if split < whole), whole]
    left = np.stack([_remaining(split, variance) for split in splits])
    total = left + (own**2 - np.square(splits))[:, None]
    total = np.minimum(total, np.maximum([variance / _speed(split, variance) ** 2 for split in splits], left))
    best, each = total.argmax(axis=0), np.arange(len(variance))
    return total[best, each], left[best, each]


def _used(own: float) -> float:
    """The noise floor that bounds are evaluated for, in steps: rounded down."""
    return min(math.floor(own * _PARTS) / _PARTS, _SPLITS[-1])


def _remaining(own: float, variance: FloatArray) -> FloatArray:
    """The sum over t of (t_i+1 - t_i) / V(own, t_i)^2 up to `variance`."""
    speeds = _speeds(own)
    sums = np.concatenate([[0.0], np.cumsum(np.diff(_TIMES) / speeds[:-1] ** 2)])
    beyond = np.maximum(variance - _TIMES[-1], 0.0) / speeds[-1] ** 2
    left: FloatArray = np.maximum(np.interp(variance, _TIMES, sums) + beyond, _NOTHING)
    return left * (1 - 1e-12)


def _speed(own: float, variance: FloatArray) -> FloatArray:
    """V(own, variance), rounded up to that of the next smaller variance in the table."""
    before = np.searchsorted(_TIMES, variance, side="right") - 1
    return np.where(before < 0, math.inf, _speeds(own)[before])


@lru_cache(maxsize=256)
def _speeds(own: float) -> FloatArray:
    return np.array([quantile_speed(own, float(variance)) for variance in _TIMES])


def quantile_speed(own: float, variance: float) -> float:
    """How fast any quantile of round(x + N(0, own^2)) + N(0, variance) can move with x, rounded up; in steps.

    Infinite where the bound fails. It never grows with `own` or `variance`.

    Notes
    -----
    With tau^2 = own^2 + variance, r = own^2/tau^2, w^2 = r variance and theta(m) = 1 + 2 sum_k e^(-2 pi^2 k^2 w^2)
    cos(2 pi k m), the speed is the largest, over all phases M and tilts l, of

    E theta(M + 1/2 - r c) / E theta(M + c - r c),   c in [-1/2, 1/2] with density ~ exp(-l c - c^2 / (2 tau^2))

    It is evaluated on a grid. Between its points both means change by at most (max - min of theta)/4 for each unit of
    l and max |theta'| for each unit of M; beyond the largest l their difference is below max |theta'| / (l - 1/(2
    tau^2)).
    """
    total = own**2 + variance
    share = own**2 / total
    width = share * variance
    k = np.arange(1, math.ceil(math.sqrt(2.2 / width)) + 1)  # later terms are below e^-42
    terms = np.exp(-2 * math.pi**2 * k**2 * width)
    flip = np.where(k % 2, -1.0, 1.0)
    most, least = 1 + 2 * float(terms.sum()), 1 + 2 * float(terms @ flip)
    if least > 0 and most / least < 1 + _CLOSE:
        return most / least * (1 + 1e-12)  # both means lie between these
    steepest = 4 * math.pi * float(k @ terms)
    law = np.exp(-np.outer(_TILTS, _NODES + 0.5) - _NODES**2 / (2 * total)) * _WEIGHTS
    law /= law.sum(axis=1, keepdims=True)
    waves = np.exp(2j * math.pi * np.outer(_PHASES, k)) * terms
    above = 1 + 2 * ((waves * flip) @ (law @ np.exp(-2j * math.pi * share * np.outer(_NODES, k))).T).real
    below = 1 + 2 * (waves @ (law @ np.exp(2j * math.pi * (1 - share) * np.outer(_NODES, k))).T).real
    gaps = np.diff(_TILTS, prepend=0.0, append=_TILTS[-1])
    between = np.maximum(gaps[:-1], gaps[1:]) / 2 * (most - least) / 4 + steepest / (2 * len(_PHASES)) + 1e-12
    if least <= 0 or (below <= between).any():
        return math.inf
    beyond = 1 + steepest / (_TILTS[-1] - 0.5 / total) / least
    return max(float(((above + between) / (below - between)).max()), float(beyond)) * (1 + 1e-12)
