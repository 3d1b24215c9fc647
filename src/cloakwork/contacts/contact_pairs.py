"""Pairs of people: random ones without a list of all pairs, and the reports that their devices send."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from cloakwork._checks import IntArray, array_or_none, describe_argument, instance_of
from cloakwork.errors import InputError
from cloakwork.privacy import Flip

MAX_ONES = 50_000_000  # of a network: about 2 GB while it is built


def flip_of_bits(flip: Flip) -> Flip:
    """Return the flip of contacts; refuse anything else."""
    if instance_of("flip", flip, Flip, "the Flip that released the reports").values != 2:
        raise InputError("contacts are bits: give a flip with two values.", values=flip.values)
    return flip


def simulate_contacts(met: Any, flip: Flip, *, rng: np.random.Generator) -> sparse.csr_array:
    """Simulate what a network of devices sends, a sparse symmetric array (n, n) of ones.

    `met` (n, n) says who met whom: symmetric, 0 and 1, dense or sparse. One device of each pair flips the pair's bit
    and sends only ones; no report stands for 0. The simulation never lists all pairs. It is reproducible and so not
    private: a device uses `Flip.release`.

    >>> flip = Flip(epsilon=20.0, readings_per_window=1)
    >>> simulate_contacts([[0, 1], [1, 0]], flip, rng=np.random.default_rng(1)).toarray().tolist()
    [[0, 1], [1, 0]]
    """
    table, flip = checked_network("met", met), flip_of_bits(flip)
    n = table.shape[0]
    true = np.stack(sparse.triu(table).tocoo().coords, axis=1).astype(np.int64)
    others = random_pairs(np.arange(n), None, flip.other, rng)
    known = np.isin(others[:, 0] * n + others[:, 1], true[:, 0] * n + true[:, 1])
    return symmetric(np.concatenate([true[rng.random(len(true)) < flip.truth], others[~known]]), n)


def random_pairs(first: IntArray, second: IntArray | None, chance: float, rng: np.random.Generator) -> IntArray:
    """Draw pairs (p, 2) with one of each group, or two of the first, each with the same chance and independently."""
    if second is not None:
        row, column = np.divmod(random_positions(len(first) * len(second), chance, rng), max(len(second), 1))
        return np.stack([first[row], second[column]], axis=1)
    positions = random_positions(len(first) * (len(first) - 1) // 2, chance, rng)
    high = ((1 + np.sqrt(8.0 * positions + 1)) / 2).astype(np.int64)  # of the list (0, 1), (0, 2), (1, 2), (0, 3), ...
    high -= high * (high - 1) // 2 > positions  # the root is rounded
    high += high * (high + 1) // 2 <= positions
    return np.stack([first[positions - high * (high - 1) // 2], first[high]], axis=1)


def random_positions(total: int, chance: float, rng: np.random.Generator) -> IntArray:
    """Draw the successes among `total` independent trials by the gaps between them, so that failures cost nothing."""
    if total * chance > MAX_ONES:
        raise InputError(
            f"about {total * chance:.2g} ones: give at most {MAX_ONES:,}. Take fewer people, or send fewer reports.",
            ones=total * chance,
        )
    parts, last = [np.empty(0, dtype=np.int64)], -1
    while chance > 0 and last < total - 1:
        mean = (total - 1 - last) * chance
        gaps = rng.geometric(chance, size=int(mean + 5 * math.sqrt(mean)) + 16)
        parts.append(last + np.cumsum(np.minimum(gaps, total + 1)))
        last = int(parts[-1][-1])
    positions = np.concatenate(parts)
    return positions[positions < total]


def symmetric(pairs: IntArray, n: int) -> sparse.csr_array:
    """Return the network (n, n) of pairs that are each given once."""
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)
    return sparse.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))


def checked_network(name: str, network: Any) -> sparse.csr_array:
    """Return a network as a sparse array of ones; errors never show an entry, which may be a true contact."""
    array: Any = network if sparse.issparse(network) else array_or_none(network)
    if array is None or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(f"{name}={describe_argument(network)}: give a square array of 0 and 1, dense or sparse.")
    if array.shape[0] != array.shape[1] or array.shape[0] < 2:
        raise InputError(
            f"{name} has shape {array.shape}: give a row and a column for each of at least 2 people.", shape=array.shape
        )
    table = sparse.csr_array(array, copy=True)
    table.sum_duplicates()
    for wrong, problem in (
        (((table.data != 0) & (table.data != 1)).any(), "holds other numbers than 0 and 1: give 1 for a contact."),
        (table.diagonal().any(), "has ones on its diagonal, but no one meets themselves: set it to 0."),
        (abs(table - table.T).nnz, "is not symmetric: give each contact in both directions."),
    ):
        if wrong:
            raise InputError(f"{name} {problem}")
    table = table.astype(np.int8)
    table.eliminate_zeros()
    return table
