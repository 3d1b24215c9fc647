"""Block models: people in groups, and how likely members of two groups meet."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, count, frozen, numbers, positive
from cloakwork.contacts.contact_pairs import random_pairs, symmetric
from cloakwork.errors import InputError

MOST_BLOCKS = 1_000


@final
@dataclass(frozen=True, eq=False)
class Contacts:
    """A random network: the group of each person (n,), and who met whom, a symmetric sparse array (n, n) of 0 and 1.

    >>> import numpy as np
    >>> office = Blocks([[0.9, 0.0], [0.0, 0.9]]).sample(10, rng=np.random.default_rng(1))
    >>> office.labels.tolist(), office.met.nnz // 2
    ([1, 1, 0, 1, 0, 0, 1, 0, 1, 0], 20)
    """

    labels: IntArray
    met: sparse.csr_array


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
    >>> office.k, round(office.density, 4), office.scale(0.1).matrix[0].tolist()
    (2, 0.0255, [0.005000000000000001, 0.0001])
    """

    def __init__(self, matrix: ArrayLike, *, shares: ArrayLike | None = None) -> None:
        values = numbers("matrix", matrix)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or not 1 <= len(values) <= MOST_BLOCKS:
            raise InputError(
                f"matrix has shape {values.shape}: give a row and a column for each of 1 to {MOST_BLOCKS:,} groups.",
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
        self.matrix: FloatArray = frozen(values.copy())
        self.shares: FloatArray = frozen(parts / parts.sum())

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(self.matrix)

    @property
    def density(self) -> float:
        """Probability that two people meet, both taken at random."""
        return float(self.shares @ self.matrix @ self.shares)

    def scale(self, factor: float) -> "Blocks":
        """Multiply all probabilities, for a sparser or denser network with the same groups."""
        largest = float(self.matrix.max())
        if positive("factor", factor) * largest > 1:
            raise InputError(
                f"factor={factor:g}: a probability would be {factor * largest:g}. Give at most {1 / largest:g}.",
                factor=factor,
            )
        return Blocks(self.matrix * factor, shares=self.shares)

    def reported(self, lie: float, truth: float) -> "Blocks":
        """The model of what devices send: a one with probability `truth` for a contact, and `lie` for none."""
        return Blocks(lie + (truth - lie) * self.matrix, shares=self.shares)

    def sample(self, n: int, *, rng: np.random.Generator) -> Contacts:
        """Draw n people: independent groups, then independent contacts (McMillan, Definition 4.1).

        Memory grows with the number of contacts, not of pairs.
        """
        labels = rng.choice(self.k, size=count("n", n, least=2), p=self.shares)
        members = [np.flatnonzero(labels == a) for a in range(self.k)]
        parts = [
            random_pairs(members[a], None if a == b else members[b], float(self.matrix[a, b]), rng)
            for a in range(self.k)
            for b in range(a, self.k)
        ]
        return Contacts(frozen(labels), symmetric(np.concatenate(parts), n))
