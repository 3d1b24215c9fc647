"""What tests of a privacy claim share: pairs of distributions, the plan of a test, and queries to a mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, not_negative, positive, read_only, rounded_down
from cloakwork.errors import InputError

Mechanism: TypeAlias = Callable[[Any, int, np.random.Generator], ArrayLike]
"""Called with (database, size, rng); returns `size` independent outcomes, whole numbers from 0 to n-1."""

CONFIDENCE = 2 / 3
LARGEST_EPSILON = 300.0
MIN_GAP = 1e-12
_CHUNK = 1 << 18
_MAX_QUERIES = 10**15
_ROUNDING = 1e-12


@dataclass(frozen=True)
class QueryPlan:
    """The cost of a test and the meaning of its answer, before the first query.

    A test makes `per_input` queries on each of two inputs (the mean, where the number is random), `total` in all.
    """

    per_input: int
    total: int
    confidence: float
    accepts_if: str
    rejects_if: str

    def __str__(self) -> str:
        least = rounded_down(self.confidence)
        return (
            f"{self.per_input:,} queries on each input, {self.total:,} in all. With probability at least {least} the "
            f"test accepts if {self.accepts_if}, and with probability at least {least} it rejects if "
            f"{self.rejects_if}. In between it may do either."
        )


@dataclass(frozen=True)
class Answer:
    """The answer of a test: it rejects when `statistic` is above `threshold`. Acceptance is never a proof."""

    accepts: bool
    statistic: float
    threshold: float
    queries: int

    def __str__(self) -> str:
        verdict = "accepts" if self.accepts else "rejects"
        seen = f"{self.statistic:.4g}, and {self.threshold:.4g} is allowed"
        return f"{verdict} after {self.queries:,} queries: the statistic is {seen}"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two distributions on the outcomes 0..n-1: those of a mechanism on inputs 0 and 1. It is a mechanism too.

    >>> coin = Pair([0.75, 0.25], [0.25, 0.75])
    >>> round(coin.epsilon, 4), round(coin.delta(0.5), 4)
    (1.0986, 0.3378)
    """

    zero: FloatArray = field(repr=False)
    one: FloatArray = field(repr=False)

    def __init__(self, zero: ArrayLike, one: ArrayLike) -> None:
        for name, values in (("zero", zero), ("one", one)):
            array = np.asarray(values, dtype=np.float64)
            if array.ndim != 1 or len(array) < 2 or not (array >= 0).all() or not abs(array.sum() - 1) < 1e-9:
                raise InputError(f"{name}: give 2 or more probabilities that sum to 1.", given=values)
            object.__setattr__(self, name, read_only(array / array.sum()))
        if len(self.zero) != len(self.one):
            raise InputError("zero and one: give both on the same outcomes.", zero=len(self.zero), one=len(self.one))

    @property
    def n(self) -> int:
        """Number of outcomes."""
        return len(self.zero)

    def deltas(self, epsilon: float) -> tuple[float, float]:
        """Return the least delta at `epsilon` in each direction: sum_i max(0, p_i - e^epsilon q_i) (equation 10.1)."""
        return positive_parts(self.zero, self.one, epsilon)

    def delta(self, epsilon: float) -> float:
        """Return the least delta at which the pair is (epsilon, delta)-private."""
        return max(self.deltas(epsilon))

    @property
    def epsilon(self) -> float:
        """The least epsilon at which the pair is purely private; infinite if one input alone has some outcome."""
        return max(largest_ratio(self.zero, self.one), 0.0)

    def is_private(self, epsilon: float, delta: float = 0.0) -> bool:
        """Return whether the claim holds for these two distributions, to within rounding."""
        if delta == 0:
            return self.epsilon <= checked_epsilon(epsilon) + _ROUNDING
        return self.delta(epsilon) <= delta + _ROUNDING * (1 + math.exp(epsilon))

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> IntArray:
        return rng.choice(self.n, size=size, p=self.one if database else self.zero)

    def counts(self, database: int, size: int, rng: np.random.Generator) -> IntArray:
        """Return how often each outcome occurs in `size` draws, in time that does not grow with `size`."""
        return rng.multinomial(size, self.one if database else self.zero)


def binned(mechanism: Mechanism, edges: ArrayLike) -> Mechanism:
    """Return a mechanism of numbers as one of len(edges) + 2 outcomes: the bins between rising edges, and NaN.

    Choose the edges before sampling, never from the outputs that are then tested.
    """
    cuts = np.asarray(edges, dtype=np.float64)
    if cuts.ndim != 1 or not len(cuts) or not (np.diff(cuts) > 0).all() or np.isnan(cuts).any():
        raise InputError("edges: give at least one number, in rising order.", given=edges)

    def outcomes(database: Any, size: int, rng: np.random.Generator) -> IntArray:
        outputs = np.asarray(mechanism(database, size, rng), dtype=np.float64)
        return np.where(np.isnan(outputs), len(cuts) + 1, np.searchsorted(cuts, outputs, side="right"))

    return outcomes


def count_outcomes(mechanism: Mechanism, database: Any, size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Count each of the n outcomes among `size` answers; a method `counts` is asked for all at once."""
    if size > _MAX_QUERIES:
        raise InputError(f"{size:,} queries are needed, which cannot be made. Ask for a larger alpha.", size=size)
    at_once = getattr(mechanism, "counts", None)
    if callable(at_once):
        return np.asarray(at_once(database, size, rng), dtype=np.int64)
    total = np.zeros(n, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = min(_CHUNK, size - start)
        outcomes = np.asarray(mechanism(database, part, rng))
        if outcomes.shape != (part,) or outcomes.dtype.kind not in "biu" or outcomes.min() < 0 or outcomes.max() >= n:
            raise InputError(
                f"the mechanism returned {outcomes.dtype} of shape {outcomes.shape}: return {part} whole numbers from "
                f"0 to {n - 1}. Bin other outputs first, for example with `binned`.",
                shape=outcomes.shape,
                n=n,
            )
        total += np.bincount(outcomes.astype(np.int64), minlength=n)
    return total


def unnoticed_mass(queries: int, *, confidence: float = CONFIDENCE) -> float:
    """Return the probability of a total leak that still passes any test of `queries` on the input that leaks.

    A mechanism that shows its input outright with this probability has an infinite epsilon: why pure privacy cannot be
    verified without knowing the mechanism.

    Notes
    -----
    1 - (2 - 2 confidence)^(1/queries): until the leak is seen the two samples are the same (McMillan, Proposition 10.9
    and Theorem 10.5; the pair in the proof of the latter is not used).

    Examples
    --------
    >>> print(f"{unnoticed_mass(1_000_000):.2g}")
    4.1e-07
    """
    return -math.expm1(math.log(2 - 2 * checked_confidence(confidence)) / count("queries", queries))


def checked_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a float from 0 to 300, above which e^epsilon leaves no room to compute in."""
    if not_negative("epsilon", epsilon) > LARGEST_EPSILON:
        raise InputError(f"epsilon={epsilon!r}: above 300 there is nothing to test. Give less.", epsilon=epsilon)
    return float(epsilon)


def checked_gap(delta: float, alpha: float) -> float:
    """Return `alpha` as a float, refused unless 0 <= delta < delta + alpha < 1."""
    if not (0 <= delta < 1 and MIN_GAP <= alpha < 1 and delta + alpha < 1):
        raise InputError(
            f"delta={delta!r} with alpha={alpha!r}: give delta from 0 and alpha above 0 so that their sum is below 1.",
            delta=delta,
            alpha=alpha,
        )
    return float(alpha)


def checked_confidence(confidence: float) -> float:
    """Return `confidence` as a float above 1/2 and below 1."""
    if not 0.5 < positive("confidence", confidence) < 1:
        raise InputError(f"confidence={confidence!r}: give a probability above 1/2 and below 1.", confidence=confidence)
    return float(confidence)


def positive_parts(x: ArrayLike, y: ArrayLike, epsilon: float) -> tuple[float, float]:
    """Return sum_i max(0, x_i - e^epsilon y_i), and the same with x and y exchanged."""
    a, b, e = np.asarray(x), np.asarray(y), math.exp(checked_epsilon(epsilon))
    return float(np.maximum(a - e * b, 0).sum()), float(np.maximum(b - e * a, 0).sum())


def largest_ratio(p: FloatArray, q: FloatArray) -> float:
    """Return the largest |ln(p_i / q_i)|; infinite where one of them alone is 0."""
    if ((p > 0) != (q > 0)).any():
        return math.inf
    seen = q > 0
    return float(np.abs(np.log(p[seen]) - np.log(q[seen])).max())
