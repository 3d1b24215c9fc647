"""Block models: people in groups, and how likely members of two groups meet."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, count, numbers, read_only, short_repr
from cloakwork.contacts.contact_pairs import random_pairs, symmetric
from cloakwork.errors import InputError

MAX_GROUPS = 1_000


@final
@dataclass(frozen=True, eq=False)
class Contacts:
    """A random network: the group of each person (n,), and who met whom, a symmetric sparse array (n, n) of 0 and 1.

    >>> office = Blocks([[0.9, 0.0], [0.0, 0.9]]).sample(10, rng=np.random.default_rng(1))
    >>> office.labels.tolist(), office.met.nnz // 2
    ([1, 1, 0, 1, 0, 0, 1, 0, 1, 0], 20)
    """

    labels: IntArray
    met: sparse.csr_array

    __repr__ = short_repr


@final
class Blocks:
    """A network of groups, in which two people meet with a probability that depends on their groups alone.

    Parameters
    ----------
    matrix
        Probability that members of two groups meet, symmetric, shape (k, k).
    shares
        Share of the people in each group, shape (k,); equal by default. They are scaled to a sum of 1.

    Notes
    -----
    A k-block graphon (McMillan, Definition 4.2), also called a stochastic block model.

    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]])
    >>> office.k, round(office.density, 4), office.sample(10, rng=np.random.default_rng(1)).labels.tolist()
    (2, 0.0255, [1, 1, 0, 1, 0, 0, 1, 0, 1, 0])
    """

    def __init__(self, matrix: ArrayLike, *, shares: ArrayLike | None = None) -> None:
        values = numbers("matrix", matrix)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or not 1 <= len(values) <= MAX_GROUPS:
            raise InputError(
                f"matrix has shape {values.shape}: give a row and a column for each of 1 to {MAX_GROUPS:,} groups.",
                shape=values.shape,
            )
        for bad, advice in (
            (~((values >= 0) & (values <= 1)), "is not a probability: give numbers from 0 to 1."),
            (values != values.T, "and its mirror differ: a contact has no direction, so give a symmetric matrix."),
        ):
            if bad.any():
                i, j = (int(place) for place in np.argwhere(bad)[0])
                raise InputError(f"matrix[{i}, {j}] {advice}", where=(i, j))
        parts = np.ones(len(values)) if shares is None else numbers("shares", shares)
        if parts.shape != (len(values),) or not (np.isfinite(parts) & (parts > 0)).all():
            raise InputError(f"shares: give a finite number above 0 for each of {len(values)} groups.", k=len(values))
        self.matrix: FloatArray = read_only(values.copy())
        self.shares: FloatArray = read_only(parts / parts.sum())

    def __repr__(self) -> str:
        return f"Blocks({self.k} groups, density={self.density:.3g})"

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(self.matrix)

    @property
    def density(self) -> float:
        """Probability that two people meet, both taken at random."""
        return float(self.shares @ self.matrix @ self.shares)

    def reported(self, lie: float) -> "Blocks":
        """Return the model of the ones that devices send, if a bit is wrong with the probability `lie`."""
        return Blocks(lie + (1 - 2 * lie) * self.matrix, shares=self.shares)

    def sample(self, n: int, *, rng: np.random.Generator) -> Contacts:
        """Draw n people: independent groups, then independent contacts (McMillan, Definition 4.1).

        Memory grows with the number of contacts, not of pairs.
        """
        labels = rng.choice(self.k, size=count("n", n, minimum=2), p=self.shares)
        members = [np.flatnonzero(labels == a) for a in range(self.k)]
        parts = [
            random_pairs(members[a], None if a == b else members[b], float(self.matrix[a, b]), rng)
            for a in range(self.k)
            for b in range(a, self.k)
        ]
        return Contacts(read_only(labels), symmetric(np.concatenate(parts), n))
