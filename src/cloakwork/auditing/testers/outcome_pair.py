"""The privacy of a pair of finite distributions, and its distance from a claim."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, frozen, not_negative, positive
from cloakwork.errors import InputError

LARGEST_EPSILON = 300.0
LEAST_GAP = 1e-12
SUMS_TO_ONE = 1e-9
ROUNDING = 1e-12


@dataclass(frozen=True)
class Deltas:
    """The least delta at one epsilon, for each direction; privacy needs the larger."""

    forward: float
    backward: float

    @property
    def largest(self) -> float:
        """The delta that holds in both directions."""
        return max(self.forward, self.backward)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two distributions on the outcomes 0..n-1: those of a mechanism on input 0 and on input 1.

    Both have at least 2 probabilities, which sum to 1 within 1e-9. The pair is a mechanism too: called with (database,
    size, rng) it draws outcomes, and its `counts` draws how often each occurs, in time that does not grow with `size`.

    Examples
    --------
    >>> coin = Pair([0.75, 0.25], [0.25, 0.75])
    >>> round(coin.epsilon, 4), round(coin.delta(0.5), 4)
    (1.0986, 0.3378)
    """

    zero: FloatArray = field(repr=False)
    one: FloatArray = field(repr=False)

    def __init__(self, zero: ArrayLike, one: ArrayLike) -> None:
        object.__setattr__(self, "zero", _distribution("zero", zero))
        object.__setattr__(self, "one", _distribution("one", one))
        if len(self.zero) != len(self.one):
            raise InputError(
                f"zero has {len(self.zero)} outcomes and one has {len(self.one)}: "
                "give both on the same outcomes, with probability 0 where one cannot occur.",
                zero=len(self.zero),
                one=len(self.one),
            )

    @property
    def n(self) -> int:
        """Number of outcomes."""
        return len(self.zero)

    def of(self, database: int) -> FloatArray:
        """The distribution on input 0 or 1."""
        if database not in (0, 1):
            raise InputError(f"database={database!r}: a pair answers on inputs 0 and 1 only.", database=database)
        return self.one if database else self.zero

    def deltas(self, epsilon: float) -> Deltas:
        """The least delta at `epsilon` in each direction.

        Notes
        -----
        sum_i max(0, p_i - e^epsilon q_i), the largest P(E) - e^epsilon Q(E) over events E (McMillan, equation 10.1).
        """
        factor = math.exp(checked_epsilon(epsilon))
        forward = np.maximum(self.zero - factor * self.one, 0).sum()
        backward = np.maximum(self.one - factor * self.zero, 0).sum()
        return Deltas(float(forward), float(backward))

    def delta(self, epsilon: float) -> float:
        """The least delta at which the pair is (epsilon, delta)-private, both directions."""
        return self.deltas(epsilon).largest

    @property
    def epsilon(self) -> float:
        """The least epsilon at which the pair is purely private; infinite if one input alone has some outcome.

        Notes
        -----
        max_i |ln(p_i / q_i)|, where an outcome that neither input has (0/0) says nothing.
        """
        one_sided = (self.zero > 0) != (self.one > 0)
        if one_sided.any():
            return math.inf
        seen = self.zero > 0
        return float(np.abs(np.log(self.zero[seen]) - np.log(self.one[seen])).max())

    def is_private(self, epsilon: float, delta: float = 0.0) -> bool:
        """Whether the claim holds for these two distributions, to within rounding (1e-12)."""
        not_negative("delta", delta)
        if delta == 0:
            return self.epsilon <= checked_epsilon(epsilon) + ROUNDING
        return self.delta(epsilon) <= delta + ROUNDING * (1 + math.exp(epsilon))

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> IntArray:
        return rng.choice(self.n, size=size, p=self.of(database))

    def counts(self, database: int, size: int, rng: np.random.Generator) -> IntArray:
        """Counts of each outcome among `size` draws."""
        return rng.multinomial(size, self.of(database))


def random_distance(excess: ArrayLike, weights: ArrayLike, *, gamma: float, scale: float) -> float:
    """The distance of a family of pairs from privacy on all but a share `gamma` of its pairs.

    `excess` is by how much each pair misses the claim (in epsilon, or in delta at the claimed epsilon): 0 if it holds,
    infinite if nothing helps. `weights` are how likely each pair is to be met; they sum to 1. A missed share is `scale`
    times worse than a missed parameter (lambda in the thesis).

    Notes
    -----
    min over x of max(x, scale (P(excess > x) - gamma)). McMillan's Table 9.2 prints a min in place of this max: then
    a claim with a huge epsilon and the same gamma is at distance 0 from everything, and nothing is ever far.

    Examples
    --------
    >>> random_distance([0.0, 0.5], [0.9, 0.1], gamma=0.05, scale=2.0)
    0.1
    """
    misses, chances = np.asarray(excess, dtype=np.float64), _distribution("weights", weights, least=1)
    if misses.shape != chances.shape or not (misses >= 0).all():
        raise InputError("excess: give one number, 0 or above, for each weight.", shape=misses.shape)
    if not 0 <= gamma <= 1:
        raise InputError(f"gamma={gamma!r}: give a share from 0 to 1.", gamma=gamma)
    positive("scale", scale)
    allowed = np.concatenate([[0.0], misses[np.isfinite(misses)]])
    missed = np.array([chances[misses > x].sum() for x in allowed])
    share = np.where(missed > gamma + ROUNDING, missed - gamma, 0.0)
    return round(float(np.maximum(allowed, scale * share).min()), 12)


def checked_epsilon(epsilon: float) -> float:
    """`epsilon` as a float from 0 to 300, above which e^epsilon leaves no room to compute in."""
    value = not_negative("epsilon", epsilon)
    if value > LARGEST_EPSILON:
        raise InputError(
            f"epsilon={epsilon!r}: a claim above {LARGEST_EPSILON:g} promises nothing that could be tested. "
            "Test a smaller one.",
            epsilon=epsilon,
        )
    return value


def checked_outcomes(n: int) -> int:
    """`n` as an int, at least 2: with one outcome there is nothing to tell apart."""
    if count("n", n) < 2:
        raise InputError(f"n={n!r}: give the number of outcomes, 2 or above.", n=n)
    return int(n)


def checked_confidence(confidence: float) -> float:
    """`confidence` as a float above 1/2 and below 1."""
    value = positive("confidence", confidence)
    if not 0.5 < value < 1:
        raise InputError(f"confidence={confidence!r}: give a probability above 1/2 and below 1.", confidence=confidence)
    return value


def _distribution(name: str, values: Any, *, least: int = 2) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: give a list of probabilities.", given=values) from None
    if array.ndim != 1 or len(array) < least or not (np.isfinite(array).all() and (array >= 0).all()):
        raise InputError(f"{name}: give at least {least} probabilities, finite numbers, 0 or above.", given=values)
    total = float(array.sum())
    if abs(total - 1) > SUMS_TO_ONE:
        raise InputError(f"{name} sums to {total:.12g}: probabilities must sum to 1.", total=total)
    return frozen(array / total)
