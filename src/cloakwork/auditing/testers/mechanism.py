"""Querying the black box: so many answers on one input, counted by outcome."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, frozen
from cloakwork.errors import InputError

CHUNK = 1 << 18
MOST_QUERIES = 10**15

Mechanism: TypeAlias = Callable[[Any, int, np.random.Generator], ArrayLike]
"""Called with (database, size, rng); returns `size` independent outcomes, whole numbers from 0 to n-1."""


@dataclass(frozen=True, eq=False)
class Binned:
    """A mechanism with continuous outputs, as one with finitely many outcomes.

    Outcome k of 0..len(edges) is an output in [edges[k-1], edges[k]); the last, len(edges) + 1, is NaN. Choose the
    edges before sampling, never from the outputs that are then tested.

    Parameters
    ----------
    mechanism
        Called with (database, size, rng), returns `size` numbers.
    edges
        Increasing numbers between the bins.

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


def tally(mechanism: Mechanism, database: Any, size: int, n: int, rng: np.random.Generator) -> IntArray:
    """How often each of the n outcomes occurs among `size` answers on `database`.

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
