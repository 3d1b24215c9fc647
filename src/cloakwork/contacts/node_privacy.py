"""How much people meet, published by a trusted party who knows all contacts, so that each person is hidden."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from cloakwork._checks import count, positive
from cloakwork.contacts.contact_pairs import checked_network
from cloakwork.errors import CalibrationError
from cloakwork.privacy import laplace_table, noise_from_words, private_words, simulated_words, table_ratio


@final
@dataclass(frozen=True)
class PrivateDensity:
    """A private density: the share of pairs who met, with its standard deviation, and what it hides.

    The noise may take it below 0 or above 1. Contacts beyond `max_contacts` of a person do not count, and how many
    those are is not published.

    >>> isinstance(private_density(1 - np.eye(3), max_contacts=2, epsilon=1.0), PrivateDensity)
    True
    """

    density: float
    standard_deviation: float
    max_contacts: int
    epsilon: float


def private_density(
    met: Any, *, max_contacts: int, epsilon: float, rng: np.random.Generator | None = None
) -> PrivateDensity:
    """Publish the share of pairs who met, so that nobody can tell whom any one person met, nor whether anyone.

    Parameters
    ----------
    met
        Who met whom, the true contacts: symmetric, 0 and 1, shape (n, n), dense or sparse. n is public.
    max_contacts
        How many contacts of a person count. Choose it without the data: the noise grows with it, and contacts beyond
        it are lost.
    epsilon
        The guarantee for all contacts of one person, with a delta of 0. Each call spends it again.
    rng
        Draw reproducible noise instead, for experiments. The result is not private.

    Notes
    -----
    Twice the number of contacts is replaced by the largest flow F of whole numbers that a contact carries from i to j,
    at most 1 each way, where at most D = `max_contacts` leave and at most D reach each person (Kasiviswanathan, Nissim,
    Raskhodnikova and Smith). If nobody has more than D contacts, F counts them all. Remove all contacts of a person: F
    cannot grow, and falls by at most 2 D, since what remains of a flow is one, and at most D left and D reached the
    person. Two networks that differ in the contacts of one person are equal without them, so their F differ by at most
    2 D. F plus rounded Laplace noise of scale 2 D / epsilon hides that. Cutting each person's number of contacts to D
    would not: one person can change the numbers of all others.

    >>> met = 1 - np.eye(20, dtype=int)
    >>> found = private_density(met, max_contacts=19, epsilon=4.0, rng=np.random.default_rng(1))
    >>> abs(found.density - 1) < 4 * found.standard_deviation, round(found.standard_deviation, 3)
    (True, 0.035)
    """
    table = checked_network("met", met)
    n = table.shape[0]
    most = min(count("max_contacts", max_contacts), n - 1)
    epsilon = positive("epsilon", epsilon, error=CalibrationError)
    noise = laplace_table(table_ratio(2 * most / epsilon))  # its ratio is the scale, not a standard deviation
    words = private_words if rng is None else simulated_words(rng)
    drawn = int(noise_from_words(noise, words(len(noise.levels)).reshape(1, -1, 2))[0])
    ends = n * (n - 1)
    deviation = math.sqrt(2 * noise.ratio**2 + 1 / 12) / ends
    return PrivateDensity((clipped_contacts(table, most) + drawn) / ends, deviation, most, epsilon)


def clipped_contacts(met: sparse.csr_array, most: int) -> int:
    """Return the largest flow through contacts, at most 1 each way, with `most` from and to each person."""
    n, (first, second) = met.shape[0], met.nonzero()
    people, end = np.arange(1, n + 1), 2 * n + 1
    leaving = np.concatenate([np.zeros(n, dtype=np.int64), first + 1, people + n])
    reaching = np.concatenate([people, second + n + 1, np.full(n, end)])
    sizes = np.concatenate([np.full(n, most), np.ones(len(first)), np.full(n, most)]).astype(np.int32)
    network = sparse.csr_array((sizes, (leaving, reaching)), shape=(end + 1, end + 1))
    return int(maximum_flow(network, 0, end).flow_value)
