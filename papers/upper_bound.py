"""The papers' upper bound on the error of basis pursuit, with explicit constants and checked assumptions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, heat_kernel

OUTWARD = 1 + 1e-9
POINTS = 2001  # of the grid for an infimum
DOWN = 1 - 1e-9
LIKELY = 0.9  # the probability with which the bound holds


@dataclass(frozen=True)
class Constants:
    """The constants of the proof for a line of length 1: `B` rounded up, `C1`, `C3`, `C4`, `C5` rounded down.

    `pairs` is p, the number of sensors used on each side of a source; `margin` is A, infinite for one source.
    """

    B: float
    C1: float
    C2: float
    C3: float
    C4: float
    C5: float
    pairs: int
    margin: float


@dataclass(frozen=True, eq=False)
class LineSetting:
    """Sources, sensors and places of a line, sorted and scaled to length 1."""

    sources: FloatArray
    sensors: FloatArray
    places: FloatArray
    T: float

    @classmethod
    def from_line(cls, line: HeatLine, sources: FloatArray) -> "LineSetting":
        """Scale a line with sources at the given positions."""
        sensors = np.sort(line.sensor_positions[:, 0]) / line.length
        return cls(sources / line.length, sensors, line.space.places[:, 0] / line.length, line.T / line.length**2)

    @property
    def k(self) -> int:
        return len(self.sources)

    @property
    def spacing(self) -> float:
        """Mean distance between sensors; 1 for a single sensor."""
        m = len(self.sensors)
        return float((self.sensors[-1] - self.sensors[0]) / (m - 1)) if m > 1 else 1.0

    @property
    def even(self) -> bool:
        """Whether all gaps between sensors are equal."""
        gaps = np.diff(self.sensors)
        return len(gaps) == 0 or bool(np.abs(gaps - self.spacing).max() <= 1e-9 * self.spacing and self.spacing > 0)

    @property
    def pairs(self) -> int:
        """Number p of sensors used on each side of a source."""
        return int(math.sqrt(self.T / 2) / self.spacing) if self.spacing > 0 else 0

    @property
    def smallest_gap(self) -> float:
        """Distance between the two nearest sources; infinite for one source."""
        return float(np.diff(self.sources).min(initial=np.inf))

    @property
    def sensors_on_each_side(self) -> int:
        """The smallest number of sensors on one side of a source."""
        return min(min(len(side) for side in self._sides(x)) for x in self.sources.tolist())

    def around(self, source: float) -> tuple[FloatArray, FloatArray]:
        """The p sensors before a source and the p after it, paired by index."""
        before, after = self._sides(source)
        return before[len(before) - self.pairs :], after[: self.pairs]

    def _sides(self, source: float) -> tuple[FloatArray, FloatArray]:
        """All sensors before and after a source, without one at the source, which has no slope."""
        near = 1e-9 * self.spacing
        return self.sensors[self.sensors < source - near], self.sensors[self.sensors > source + near]


@dataclass(frozen=True, eq=False)
class Peaks:
    """W_j(z) = a_j g(z - left_j) + b_j g(right_j - z): a function that peaks at the source, per pair of sensors."""

    source: float
    left: FloatArray
    right: FloatArray
    T: float

    @property
    def heights(self) -> tuple[FloatArray, FloatArray]:
        """a_j = |g'(right_j - x)| and b_j = |g'(x - left_j)|."""
        x, T = self.source, self.T
        return slope(self.right - x, T), slope(x - self.left, T)

    def values(self, z: FloatArray) -> FloatArray:
        """W_j at points z, shape (p, len(z))."""
        a, b = self.heights
        g = [heat_kernel(np.abs(z - sensors[:, None]), self.T) for sensors in (self.left, self.right)]
        return np.asarray(a[:, None] * g[0] + b[:, None] * g[1])

    def curvatures(self) -> FloatArray:
        """Inf of -W_j''/2 over [right_j - sqrt(2T), left_j + sqrt(2T)], rounded down, shape (p,).

        On a grid that includes the ends, less the change between two points that a fourth derivative of at most
        3 (a + b) g(0) / (2T)^2 allows.
        """
        a, b = self.heights
        scale = math.sqrt(2 * self.T)
        steps = (self.left - self.right + 2 * scale) / (POINTS - 1)
        z = (self.right - scale)[:, None] + steps[:, None] * np.arange(POINTS)
        bend = a[:, None] * _bend(z - self.left[:, None], self.T) + b[:, None] * _bend(self.right[:, None] - z, self.T)
        sharpest = 3 / math.sqrt(4 * math.pi * self.T) / scale**4
        return np.asarray(np.maximum((bend.min(axis=1) - (a + b) * sharpest * steps**2 / 8) / 2, 0.0) * DOWN)


def slope(distance: FloatArray, T: float) -> FloatArray:
    """|g'| at a distance."""
    return np.asarray(np.abs(distance) / (2 * T) * heat_kernel(distance, T))


def _bend(offset: FloatArray, T: float) -> FloatArray:
    """-g'': (1 - u^2 / 2T) g(u) / 2T."""
    return (1 - offset**2 / (2 * T)) * heat_kernel(offset, T) / (2 * T)


def proof_constants(setting: LineSetting, misfit: float) -> Constants:
    """Compute the constants, for a map whose readings differ from the true ones by at most `misfit` (l2 norm)."""
    T, k, p = setting.T, setting.k, setting.pairs
    peaks = [Peaks(x, *setting.around(x), T) for x in setting.sources.tolist()]
    totals = np.array([peak.values(np.array([peak.source])).sum() for peak in peaks])
    alike = totals.min() / totals  # equalises the totals of the sources
    curvatures = [peak.curvatures() for peak in peaks]
    falls = [_least_fall(peak, setting.places) for peak in peaks]
    margin = (setting.smallest_gap - math.sqrt(2 * T)) / 2
    interference = 2 * p * (k**2 - 1) * float(heat_kernel(np.array([margin]), T)[0]) if k > 1 else 0.0
    C2 = math.exp(-1 / 8) / (4 * math.sqrt(2 * math.pi) * T)
    return Constants(
        B=C2 * (math.sqrt(len(setting.sensors)) * misfit + interference) / DOWN,
        C1=float(min(each.min() for each in curvatures)),
        C2=C2,
        C3=float((alike * np.array(falls)).min() * DOWN),
        C4=float(totals.min() * DOWN),
        C5=float((alike * np.array([each.sum() for each in curvatures])).min() * DOWN),
        pairs=p,
        margin=margin,
    )


def _least_fall(peak: Peaks, places: FloatArray) -> float:
    """Least drop of the sum of all W_j from the source to a place farther than sqrt(T/2) from it."""
    outside = places[np.abs(places - peak.source) >= math.sqrt(peak.T / 2) * (1 - 1e-12)]
    top = peak.values(np.array([peak.source])).sum()
    return float((top - peak.values(outside).sum(axis=0)).min(initial=np.inf))


@dataclass(frozen=True)
class PapersBound:
    """An upper bound on the earth mover distance between the true map and that of basis pursuit.

    The distance is at most `value`, in units of the line, with a probability of at least `LIKELY` over the noise; that
    is infinite if an assumption fails, and the length of the line if the bound is vacuous. `radius` is that of basis
    pursuit, in units of the readings; `constants` are those of the proof, and `failed` the assumptions that fail.
    """

    value: float
    radius: float
    constants: Constants | None
    failed: tuple[str, ...] = ()


def papers_bound(line: HeatLine, at: Sequence[object], sigma: float) -> PapersBound:
    """Bound the error of basis pursuit for unit sources on a line from above, after the papers.

    `sigma` is the standard deviation of the noise of all sensors. The radius is the quantile of the length of the noise
    at `LIKELY`, so that the bound holds with this probability.

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
    >>> round(papers_bound(line, [0.5], sigma=1e-5).value, 5)
    0.01204
    >>> papers_bound(line, [0.05], sigma=1e-5).failed
    ('floor(sqrt(T/2) m) sensors lie on both sides of each source',)
    """
    radius = sigma * math.sqrt(2 * float(special.gammaincinv(line.sensors / 2, LIKELY))) * OUTWARD
    setting = LineSetting.from_line(line, np.sort(line.space.places[line.space.indices(at), 0]))
    assumptions = {
        "sensors are evenly spaced": setting.even,
        "sensors are dense: the nearest lie within sqrt(T/2) of a source": setting.pairs >= 1,
        "the heat has not spread over the whole line: sqrt(2T) < 1": 2 * setting.T < 1,
        "sources are more than sqrt(2T) apart": setting.k == 1 or setting.smallest_gap > math.sqrt(2 * setting.T),
        "floor(sqrt(T/2) m) sensors lie on both sides of each source": (
            setting.sensors_on_each_side >= max(setting.pairs, 1)
        ),
    }
    failed = tuple(text for text, holds in assumptions.items() if not holds)
    if failed:
        return PapersBound(math.inf, radius, None, failed)
    misfit = (2 * radius + 2 * setting.k * line.error) * line.length / line.gain
    constants = proof_constants(setting, misfit)
    return PapersBound(_value(constants, setting.k) * line.length, radius, constants)


def _value(c: Constants, k: int) -> float:
    short = min(1.0, c.B / c.C4)
    if short >= 1 or c.C5 <= 0:
        return 1.0
    outside = min(float(k), c.B / c.C3) if c.C3 > 0 else float(k)
    near = math.sqrt(c.B / (c.C5 * k * (1 - short)))
    return min(1.0, (near + k * short / (1 - short) + outside / (k * (1 - short))) * OUTWARD)
