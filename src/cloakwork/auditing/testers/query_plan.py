"""The promise of a tester before it samples, its answer after, and its queries in between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cloakwork._checks import FloatArray, IntArray, frozen, rounded_down
from cloakwork.errors import InputError

CONFIDENCE = 2 / 3
RARELY = 1e-6
CHUNK = 1 << 18
MOST_QUERIES = 10**15

Mechanism: TypeAlias = Callable[[Any, int, np.random.Generator], ArrayLike]
"""Called with (database, size, rng); returns `size` independent outcomes, whole numbers from 0 to n-1."""


@dataclass(frozen=True)
class Promise:
    """The pairs that must be accepted and rejected, as halves of a sentence, and a caveat."""

    private: str
    far: str
    caveat: str = ""

    def at(self, confidence: float) -> str:
        """The guarantee in words, for a probability of a right answer."""
        least = rounded_down(confidence)
        text = (
            f"With probability at least {least} it accepts if {self.private}, and with probability at least {least} it "
            f"rejects if {self.far}. In between it may do either."
        )
        return f"{text} {self.caveat}".rstrip()


@dataclass(frozen=True)
class QueryPlan:
    """The cost of a test and the meaning of its answer, known before the first query.

    There are `per_input` queries on each of the two inputs (where the number is drawn from a Poisson law, its mean; it
    exceeds `at_most` with a probability below 1e-6), and `total` in all; no test whatever with this confidence and this
    gap does with fewer than `lower` on each. `confidence` is the probability of a right answer, on a private pair and
    on one that is `alpha` away alike (the proximity parameter of McMillan, Definition 9.1). `why` says where the number
    of queries comes from.
    """

    tester: str
    per_input: int
    at_most: int
    total: int
    confidence: float
    alpha: float
    lower: int
    promise: Promise
    why: str

    @property
    def guarantee(self) -> str:
        """The meaning of an answer."""
        return self.promise.at(self.confidence)

    def __str__(self) -> str:
        return (
            f"{self.tester}: {self.per_input:,} queries on each input, {self.total:,} in all "
            f"(no test needs fewer than {self.lower:,} on each).\n{self.guarantee}\n{self.why}"
        )


@dataclass(frozen=True)
class Answer:
    """The answer of a test: it rejects when `statistic` is above `threshold`.

    Acceptance means no evidence against the claim, never a proof. `queries` counts both inputs together; `reason` is
    the deciding observation and `guarantee` the meaning of the answer, in words.
    """

    accepts: bool
    statistic: float
    threshold: float
    queries: int
    reason: str
    guarantee: str

    def __str__(self) -> str:
        return f"{'accepts' if self.accepts else 'rejects'} after {self.queries:,} queries: {self.reason}"


class Tester(Protocol):
    """Any test of two inputs: a plan, and an answer."""

    @property
    def plan(self) -> QueryPlan: ...

    def test(
        self,
        mechanism: Mechanism,
        rng: np.random.Generator,
        *,
        databases: tuple[Any, Any] = (0, 1),  # noqa: PT028 - not a pytest test
    ) -> Answer: ...


def seldom_above(mean: float) -> int:
    """A number that a Poisson draw of this mean exceeds with a probability below 1e-6."""
    if mean > 1e9:
        return int(np.ceil(mean + 5 * np.sqrt(mean) + 5))
    return int(stats.poisson.isf(RARELY / 2, mean))


def smallest(suffices: Callable[[float], bool], start: float = 1.0) -> float:
    """The smallest number, to within one part in 10^9 upwards, from which `suffices` holds; it must be monotone."""
    low, high = 0.0, start
    while not suffices(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def least_count(suffices: Callable[[int], bool], *, tolerance: float = 0.0) -> int:
    """A whole number, 1 or above, that suffices: the least one, or at most a share `tolerance` above one that fails."""
    low, high = 0, 1
    while not suffices(high):
        low, high = high, 2 * high
    while high - low > max(1, int(tolerance * high)):
        middle = (low + high + 1) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def most_failures(repetitions: int, chance: float) -> float:
    """Probability that at least half of an odd number of tests go wrong, each with this chance."""
    return float(stats.binom.sf(repetitions // 2, repetitions, chance))


def votes(chance: float, failure: float) -> int:
    """The smallest odd number of tests whose majority goes wrong with at most `failure`, each with `chance` < 1/2.

    Notes
    -----
    Exact binomial tail. Hoeffding's inequality gives ln(1/failure) / (2 (1/2 - chance)^2), which is 18 ln(1/failure)
    at chance 1/3.
    """
    return 2 * least_count(lambda k: most_failures(2 * k - 1, chance) <= failure) - 1


@dataclass(frozen=True, eq=False)
class Binned:
    """A mechanism with continuous outputs, as one with finitely many outcomes.

    Outcome k of 0..len(edges) is an output in [edges[k-1], edges[k]), for increasing `edges`; the last, len(edges) + 1,
    is NaN. Choose the edges before sampling, never from the outputs that are then tested.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = Binned(lambda database, size, rng: database + rng.laplace(size=size), edges=[-1, 0, 1, 2])
    >>> noisy.n, noisy(0, 3, np.random.default_rng(0)).tolist()
    (6, [2, 1, 0])
    """

    mechanism: Mechanism
    edges: FloatArray = field(repr=False)

    def __init__(self, mechanism: Mechanism, edges: ArrayLike) -> None:
        cuts = np.array(edges, dtype=np.float64)
        if cuts.ndim != 1 or not len(cuts) or np.isnan(cuts).any() or not (np.diff(cuts) > 0).all():
            raise InputError("edges: give at least one number, in increasing order.", given=edges)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "edges", frozen(cuts))

    @property
    def n(self) -> int:
        """Number of outcomes: the bins, and one for NaN."""
        return len(self.edges) + 2

    def __call__(self, database: Any, size: int, rng: np.random.Generator) -> IntArray:
        outputs = np.asarray(self.mechanism(database, size, rng), dtype=np.float64)
        bins = np.searchsorted(self.edges, outputs, side="right")
        return np.where(np.isnan(outputs), self.n - 1, bins).astype(np.int64)


def count_outcomes(mechanism: Mechanism, database: Any, size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Count each of the n outcomes among `size` answers on `database`.

    A mechanism with a method `counts(database, size, rng)` is asked for the counts at once; any other is called for
    at most 2^18 answers at a time, so that memory does not grow with `size`.
    """
    if size > MOST_QUERIES:
        raise InputError(
            f"{size:,} queries are needed: more than {MOST_QUERIES:,} cannot be made. "
            "Ask for less: a larger alpha, fewer outcomes, a smaller epsilon.",
            size=size,
        )
    at_once = getattr(mechanism, "counts", None)
    if callable(at_once):
        return _checked_counts(at_once(database, size, rng), size, n)
    total = np.zeros(n, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = min(CHUNK, size - start)
        total += np.bincount(_checked_outcomes(mechanism(database, part, rng), part, n), minlength=n)
    return total


def _checked_outcomes(answers: ArrayLike, size: int, n: int) -> NDArray[Any]:
    outcomes = np.asarray(answers)
    if outcomes.shape != (size,):
        raise InputError(
            f"The mechanism was asked for {size} outcomes and returned shape {outcomes.shape}: "
            "return one whole number for each.",
            size=size,
            shape=outcomes.shape,
        )
    if outcomes.dtype == np.bool_:
        outcomes = outcomes.astype(np.int64)
    if not np.issubdtype(outcomes.dtype, np.integer):
        raise InputError(
            f"The mechanism returned {outcomes.dtype} values: outcomes are whole numbers from 0 to {n - 1}. "
            "Bin other outputs first, for example with Binned.",
            dtype=str(outcomes.dtype),
        )
    low, high = int(outcomes.min()), int(outcomes.max())
    if low < 0 or high >= n:
        raise InputError(
            f"The mechanism returned outcome {low if low < 0 else high}: only 0 to {n - 1} are declared (n={n}). "
            "Declare more outcomes, or give the unexpected one a bin of its own.",
            outcome=low if low < 0 else high,
            n=n,
        )
    return outcomes.astype(np.int64)


def _checked_counts(counts: Any, size: int, n: int) -> IntArray:
    array = np.asarray(counts)
    good = array.shape == (n,) and np.issubdtype(array.dtype, np.integer)
    if not good or (array < 0).any() or int(array.sum()) != size:
        raise InputError(
            f"The mechanism's counts do not fit: give {n} whole numbers, 0 or above, that sum to {size}.",
            size=size,
            n=n,
        )
    return array.astype(np.int64)
