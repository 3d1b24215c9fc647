"""Pairs of people: random ones without a list of all pairs, and what their devices send."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from cloakwork._checks import IntArray, array_or_none, as_number, describe_argument, instance_of
from cloakwork.errors import InputError
from cloakwork.privacy import Flip

MOST_PAIRS = 50_000_000  # ones of a network: about 2 GB while it is built


def simulate_contacts(met: Any, flip: Flip, *, rng: np.random.Generator, kept: float = 1.0) -> sparse.csr_array:
    """Simulate what a network of devices sends: the bit of each pair through a flip, as a sparse array (n, n) of ones.

    `met` says who truly met whom: symmetric, 0 and 1, dense or sparse. One device of each pair flips its bit; it sends
    ones only, and no report stands for 0. The result has the law of flipping all pairs, without a list of them. It is
    reproducible and so not private: a device uses `Flip.release`. A device may drop ones at random and send a share
    `kept`, which makes reports shorter and costs signal, but no privacy.

    >>> met, flip = [[0, 1], [1, 0]], Flip(epsilon=20.0, readings_per_window=1)
    >>> simulate_contacts(met, flip, rng=np.random.default_rng(1)).toarray().tolist()
    [[0, 1], [1, 0]]
    """
    table = checked_network("met", met)
    lie, truth = report_rates(flip, kept)
    n = table.shape[0]
    true = np.stack(sparse.triu(table).tocoo().coords, axis=1).astype(np.int64)
    others = random_pairs(np.arange(n), None, lie, rng)
    known = np.isin(others[:, 0] * n + others[:, 1], true[:, 0] * n + true[:, 1])
    return symmetric(np.concatenate([true[rng.random(len(true)) < truth], others[~known]]), n)


def report_rates(flip: Flip, kept: float) -> tuple[float, float]:
    """How often a device sends a one for a pair that did not meet, and for one that did."""
    if instance_of("flip", flip, Flip, "the Flip that released the reports").values != 2:
        raise InputError("contacts are bits: give a flip with two values.", values=flip.values)
    share = as_number("kept", kept)
    if not 0 < share <= 1:
        raise InputError(f"kept={kept!r}: give a share above 0 and up to 1.", kept=kept)
    return share * flip.other, share * flip.truth


def random_positions(total: int, chance: float, rng: np.random.Generator) -> IntArray:
    """The positions of the successes among `total` independent trials.

    It draws the gaps between successes, which have a geometric law, so that failures cost neither time nor memory.
    """
    if total * chance > MOST_PAIRS:
        raise InputError(
            f"about {total * chance:.2g} ones: give at most {MOST_PAIRS:,}. Take fewer people, or keep fewer reports.",
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


def random_pairs(first: IntArray, second: IntArray | None, chance: float, rng: np.random.Generator) -> IntArray:
    """Pairs (p, 2) with one of each group, or two of the first, each with the same chance and independently."""
    if second is not None:
        row, column = np.divmod(random_positions(len(first) * len(second), chance, rng), max(len(second), 1))
        return np.stack([first[row], second[column]], axis=1)
    positions = random_positions(len(first) * (len(first) - 1) // 2, chance, rng)
    high = ((1 + np.sqrt(8.0 * positions + 1)) / 2).astype(np.int64)  # of the list (0, 1), (0, 2), (1, 2), (0, 3), ...
    high -= high * (high - 1) // 2 > positions  # the root is rounded
    high += high * (high + 1) // 2 <= positions
    return np.stack([first[positions - high * (high - 1) // 2], first[high]], axis=1)


def symmetric(pairs: IntArray, n: int) -> sparse.csr_array:
    """A network of n people from its pairs, each given once."""
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)
    return sparse.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))


def checked_network(name: str, network: Any) -> sparse.csr_array:
    """A network as a sparse array of ones; errors never show an entry, which may be a true contact."""
    array: Any = network if sparse.issparse(network) else array_or_none(network)
    if array is None or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(f"{name}={describe_argument(network)}: give a square array of 0 and 1, dense or sparse.")
    rows, columns = array.shape
    if rows != columns or rows < 2:
        raise InputError(
            f"{name} has shape {rows} x {columns}: give a row and a column for each of at least 2 people.",
            shape=(rows, columns),
        )
    table = sparse.csr_array(array, copy=True)
    table.sum_duplicates()
    if not ((table.data == 0) | (table.data == 1)).all():
        raise InputError(f"{name} holds other numbers than 0 and 1: give 1 for a contact or a report of one, else 0.")
    table = table.astype(np.int8)
    table.eliminate_zeros()
    if table.diagonal().any():
        raise InputError(f"{name} has ones on its diagonal, but no one meets themselves: set it to 0.")
    if abs(table - table.T).nnz:
        raise InputError(f"{name} is not symmetric: give each contact in both directions.")
    return table
