"""Means with errors, shares, exponents, and what an exponent says about a printed rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from papers.result import Agreement

ALLOWED = 0.1  # how far a finite range may bend an exponent, and how large its error may be


@dataclass(frozen=True)
class Mean:
    """The mean of independent trials and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> "Mean":
        """The mean of at least two trials.

        >>> Mean.of(np.array([1.0, 3.0]))
        Mean(value=2.0, error=1.0)
        """
        return cls(float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))

    @classmethod
    def over(cls, values: FloatArray, group: IntArray) -> "Mean":
        """The mean of values and its error over groups, from 0 on: what lies in one group is alike.

        >>> Mean.over(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
        Mean(value=2.0, error=1.0)
        """
        value = float(values.mean())
        apart = np.bincount(group, values - value)
        groups = len(np.unique(group))
        return cls(value, math.sqrt(float((apart**2).sum()) * groups / max(groups - 1, 1)) / len(values))

    @classmethod
    def ratio(cls, over: FloatArray, under: FloatArray) -> "Mean":
        """One mean divided by another; trials that both have in common, from the first on, may be correlated.

        >>> Mean.ratio(np.array([2.0, 6.0]), np.array([1.0, 3.0]))
        Mean(value=2.0, error=0.0)
        """
        shared, most = sorted((len(over), len(under)))
        above, below = cls.of(over / over.mean()), cls.of(under / under.mean())
        common = float(np.cov(over[:shared], under[:shared])[0, 1] / over.mean() / under.mean()) / most
        value = float(over.mean() / under.mean())
        return cls(value, value * math.sqrt(max(above.error**2 + below.error**2 - 2 * common, 0.0)))

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


def share_error(share: float, count: int) -> float:
    """The standard error of a share; it is above 0 even for a share of 0 or 1 (Laplace's rule of succession)."""
    smooth = (share * count + 1) / (count + 2)
    return math.sqrt(smooth * (1 - smooth) / count)


@dataclass(frozen=True)
class Slope:
    """The exponent p of y proportional to x^p, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    def near(self, other: float, *, allowed: float = ALLOWED) -> bool:
        """Whether it equals another exponent, up to what a finite range can bend. Large errors never count as near.

        >>> Slope(0.9, 0.02).near(1.0), Slope(0.9, 0.2).near(1.0)
        (True, False)
        """
        return abs(self.value - other) <= allowed and self.error <= allowed


def fit_slope(x: Sequence[float], y: Sequence[float], errors: Sequence[float] | None = None) -> Slope:
    """Fit the slope of log y in log x by least squares; `errors` are the standard errors of y.

    The error of the slope is the larger of what the errors of y explain and what the scatter around the line shows.

    >>> str(fit_slope([1, 2, 4, 8], [3, 12, 48, 192]))
    '+2.00 ± 0.00'
    """
    across, up = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    spread = np.ones_like(up) if errors is None else np.maximum(np.asarray(errors, float) / np.asarray(y, float), 1e-9)
    weight = spread**-2
    centre = float((weight * across).sum() / weight.sum())
    square = float((weight * (across - centre) ** 2).sum())
    value = float((weight * (across - centre) * up).sum() / square)
    left = up - up @ weight / weight.sum() - value * (across - centre)
    scatter = float((weight * left**2).sum() / max(len(up) - 2, 1))
    explained = 0.0 if errors is None else 1.0
    return Slope(value, float(np.sqrt(max(scatter, explained) / square)))


def judge_upper(slope: Slope, claimed: float, *, growing: bool) -> Agreement:
    """Judge an upper bound O(x^claimed) by the exponent that was measured.

    The bound agrees if the exponent is near, and fails if the exponent is beyond by two more standard errors; between
    the two it is undecided. `growing` says that x grows; otherwise x goes to 0, where an error that falls more slowly
    than its bound breaks it.

    >>> str(judge_upper(Slope(-0.5, 0.02), 0.0, growing=True)), str(judge_upper(Slope(0.5, 0.02), 1.0, growing=False))
    ('holds, but is loose', 'wrong as printed')
    >>> str(judge_upper(Slope(0.0, 0.2), 0.1, growing=True))
    'undecided'
    """
    if slope.near(claimed):
        return Agreement.AGREES
    if not abs(slope.value - claimed) > ALLOWED + 2 * slope.error:
        return Agreement.UNDECIDED
    return Agreement.WRONG if (slope.value > claimed) is growing else Agreement.LOOSER


def judge_lower(slope: Slope, claimed: float, *, growing: bool) -> Agreement:
    """Judge a lower bound: it is loose where an upper bound would fail, and never more than consistent.

    >>> str(judge_lower(Slope(0.5, 0.02), 1.0, growing=False)), str(judge_lower(Slope(1.0, 0.0), 1.0, growing=False))
    ('holds, but is loose', 'consistent')
    """
    swapped = {
        Agreement.WRONG: Agreement.LOOSER,
        Agreement.LOOSER: Agreement.WRONG,
        Agreement.AGREES: Agreement.CONSISTENT,
    }
    verdict = judge_upper(slope, claimed, growing=growing)
    return swapped.get(verdict, verdict)
