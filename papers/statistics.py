"""Exponents, and what they say about a printed rate."""

from collections.abc import Sequence

import numpy as np

from papers.result import Agreement
from papers.rows import Mean

ALLOWED = 0.1  # how far a finite range may bend an exponent, and how large its error may be


def near(slope: Mean, other: float, *, allowed: float = ALLOWED) -> bool:
    """Whether an exponent equals another, up to what a finite range can bend. Large errors never count as near.

    >>> near(Mean(0.9, 0.02), 1.0), near(Mean(0.9, 0.2), 1.0)
    (True, False)
    """
    return abs(slope.value - other) <= allowed and slope.error <= allowed


def fit_slope(x: Sequence[float], y: Sequence[Mean | float]) -> Mean:
    """Fit the exponent p of y proportional to x^p, the slope of log y in log x, by least squares.

    Its error is the larger of what the errors of y explain and what the scatter around the line shows.

    >>> f"{fit_slope([1, 2, 4, 8], [3, 12, 48, 192]):+.2f}"
    '+2.00 ± 0.00'
    """
    means = [one for one in y if isinstance(one, Mean)]
    values = np.array([one.value for one in means] if means else y, dtype=np.float64)
    across, up = np.log(np.asarray(x, float)), np.log(values)
    spread = np.maximum([one.error for one in means] / values, 1e-9) if means else np.ones_like(up)
    weight = spread**-2
    centre = float((weight * across).sum() / weight.sum())
    square = float((weight * (across - centre) ** 2).sum())
    value = float((weight * (across - centre) * up).sum() / square)
    left = up - up @ weight / weight.sum() - value * (across - centre)
    scatter = float((weight * left**2).sum() / max(len(up) - 2, 1))
    explained = 1.0 if means else 0.0
    return Mean(value, float(np.sqrt(max(scatter, explained) / square)))


def judge_upper(slope: Mean, claimed: float, *, growing: bool) -> Agreement:
    """Judge an upper bound O(x^claimed) by the exponent that was measured.

    The bound agrees if the exponent is near, and fails if the exponent is beyond by two more standard errors; between
    the two it is undecided. `growing` says that x grows; otherwise x goes to 0, where an error that falls more slowly
    than its bound breaks it.

    >>> str(judge_upper(Mean(-0.5, 0.02), 0.0, growing=True)), str(judge_upper(Mean(0.5, 0.02), 1.0, growing=False))
    ('holds, but is loose', 'wrong as printed')
    >>> str(judge_upper(Mean(0.0, 0.2), 0.1, growing=True))
    'undecided'
    """
    if near(slope, claimed):
        return Agreement.AGREES
    if not abs(slope.value - claimed) > ALLOWED + 2 * slope.error:
        return Agreement.UNDECIDED
    return Agreement.WRONG if (slope.value > claimed) is growing else Agreement.LOOSER


def judge_lower(slope: Mean, claimed: float, *, growing: bool) -> Agreement:
    """Judge a lower bound: it is loose where an upper bound would fail, and never more than consistent.

    >>> str(judge_lower(Mean(0.5, 0.02), 1.0, growing=False)), str(judge_lower(Mean(1.0, 0.0), 1.0, growing=False))
    ('holds, but is loose', 'consistent')
    """
    swapped = {
        Agreement.WRONG: Agreement.LOOSER,
        Agreement.LOOSER: Agreement.WRONG,
        Agreement.AGREES: Agreement.CONSISTENT,
    }
    verdict = judge_upper(slope, claimed, growing=growing)
    return swapped.get(verdict, verdict)
