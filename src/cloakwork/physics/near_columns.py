"""Columns of a large network on the nodes near each source, where heat stays near."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled
from cloakwork.physics.network_slope import Network, spread_once


@dataclass(frozen=True, eq=False)
class NearColumns:
    """Entries of some columns of exp(-tau A), each at most the true one: those of column k are
    `nodes[starts[k]:starts[k + 1]]` and `values[...]`.

    `lost` is the heat of each column that they leave out, in the l1 norm. `touched` counts the steps of the work.
    """

    starts: IntArray
    nodes: IntArray
    values: FloatArray
    lost: FloatArray
    touched: float

    def sums(self, entries: FloatArray) -> FloatArray:
        """The sum over each column of one number for each entry."""
        return np.asarray(np.add.reduceat(entries, self.starts[:-1]))


def near_columns(network: Network, sources: IntArray, drop: float) -> NearColumns:
    """The columns of some sources; heat below `drop` is left out as it spreads.

    Notes
    -----
    As in `Network.local`, exp(-tau A) = sum_k Poisson(k; tau r) P^k, where P loses no heat. Leaving some out makes no
    entry larger, so what is left out of a column is 1 less the sum of its entries.
    """
    rate = float(network.kernel.diagonal.max(initial=0.0))
    jumps = network.kernel.tau * rate
    most = np.arange(int(2 * jumps + 60))
    shares = np.exp(special.xlogy(most, jumps) - jumps - special.gammaln(most + 1))
    shares = shares[: int(np.argmax(1 - np.cumsum(shares) < drop)) + 1]
    rates = (network.scale / rate, 1 - network.kernel.diagonal / rate)
    pieces = np.array_split(sources, min(len(sources), os.cpu_count() or 1))
    with ThreadPoolExecutor(len(pieces)) as pool:
        parts = list(pool.map(lambda piece: columns_near(network.csr, rates, shares, piece, drop), pieces))
    counts, nodes, values = (np.concatenate([part[k] for part in parts]) for k in range(3))
    starts = np.concatenate([[0], np.cumsum(counts)])
    rounding = 1e-13 * (1 + jumps)
    lost = np.maximum(1 - np.add.reduceat(values, starts[:-1]), 0.0) + rounding
    return NearColumns(starts, nodes, values, lost, float(sum(part[3] for part in parts)))


@compiled
def columns_near(csr: Any, rates: Any, shares: FloatArray, sources: IntArray, drop: float) -> Any:
    """Number of entries of each column, and all nodes and entries in order; and the number of entries touched."""
    n = len(csr[0]) - 1
    now, then, total = np.zeros(n), np.zeros(n), np.zeros(n)
    listed, lists, ever = np.zeros(n, np.int8), np.empty((2, n), np.uint32), np.empty(n, np.uint32)
    counts, nodes, values = np.empty(len(sources), np.int64), np.empty(1024, np.int32), np.empty(1024)
    used, work = 0, 0.0
    for p in range(len(sources)):
        node = sources[p]
        held, reached, left, last = 1, 1, 1.0 - shares[0], 0
        lists[0, 0], ever[0], listed[node] = node, node, 2
        now[node], total[node] = 1.0, shares[0]
        for step in range(1, len(shares)):
            weight = (shares[step], left, drop)
            held, reached, _, touched = spread_once(
                csr, rates, (now, then, total), (listed, lists, ever), held, reached, weight, step
            )
            work, left, last = work + touched, max(left - shares[step], 0.0), step
        for k in range(held):
            now[lists[last % 2, k]] = 0.0
        while used + reached > len(values):
            nodes, values = np.append(nodes, np.empty_like(nodes)), np.append(values, np.empty_like(values))
        for k in range(reached):
            j = ever[k]
            nodes[used + k], values[used + k] = j, total[j]
            total[j], listed[j] = 0.0, 0
        used += reached
        counts[p] = reached
    return counts, nodes[:used], values[:used], work
