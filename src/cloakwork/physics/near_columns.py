"""Columns of a large network, and slopes of its edges, on the nodes near each source, where heat stays near."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.physics.network_kernel import ONE

BoolArray = NDArray[np.bool_]

MAX_NODES = 20_000  # that the heat of one edge may reach
PIECE = 50_000  # columns of one task: some take much longer than others
NOW, NEXT, TOTAL, STATE = 0, 1, 2, 3  # of a row of heat, see `spread_once`
NEVER, EVER, LISTED = 0.0, 1.0, 2.0  # whether a node held heat, and is on the list of those that will


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


@dataclass(frozen=True, eq=False)
class Jumps:
    """Heat that leaves node j at the rate rates_j, to node i at the rate scale_j w_ij, for the time tau.

    Notes
    -----
    With the largest rate r, exp(-tau A) = sum_k Poisson(k; tau r) P^k, where P = 1 - A / r moves heat and makes none.
    """

    csr: Any
    scale: FloatArray
    rates: FloatArray
    tau: float

    @property
    def fastest(self) -> float:
        return float(self.rates.max(initial=0.0))

    @property
    def expected(self) -> float:
        """The mean number of jumps."""
        return self.tau * self.fastest

    @property
    def step(self) -> tuple[FloatArray, FloatArray]:
        """The weight that P moves from each node out of 1, and the weight that it leaves there."""
        return self.scale / self.fastest, 1 - self.rates / self.fastest

    def shares(self, tail: float) -> FloatArray:
        """Probabilities of 0, 1, ... jumps, up to a tail below `tail`."""
        numbers = np.arange(int(2 * self.expected + 60))
        shares = np.exp(special.xlogy(numbers, self.expected) - self.expected - special.gammaln(numbers + 1))
        return np.asarray(shares[: int(np.argmax(1 - np.cumsum(shares) < tail)) + 1])

    def only_through(self, nodes: BoolArray) -> "Jumps":
        """The same, but heat that leaves any other node is lost.

        Entries at nodes that are faster than all of these are too large, and not to be used.
        """
        starts, near, weights = self.csr
        counts = np.diff(starts.astype(np.int64))
        kept = np.repeat(nodes, counts)
        ends = np.cumsum(np.where(nodes, counts, 0), dtype=np.uint64)
        csr = (np.concatenate([np.zeros(1, np.uint64), ends]), near[kept], weights[kept])
        return Jumps(csr, self.scale, np.minimum(self.rates, self.rates[nodes].max()), self.tau)


def near_columns(jumps: Jumps, sources: IntArray, drop: float, *, least: float = 0.0) -> NearColumns:
    """The columns of some sources; heat below `drop` is left out as it spreads.

    So are entries below `least` times the largest of their column. Leaving some out makes no entry larger, so what is
    left out of a column is 1 less the sum of its entries.
    """
    shares, step = jumps.shares(drop), jumps.step
    cores = os.cpu_count() or 1
    pieces = np.array_split(sources, max(min(len(sources), cores), len(sources) // PIECE))
    with ThreadPoolExecutor(cores) as pool:
        parts = list(pool.map(lambda piece: columns_near(jumps.csr, step, shares, piece, drop, least), pieces))
    counts, nodes, values = (np.concatenate([part[k] for part in parts]) for k in range(3))
    starts = np.concatenate([[0], np.cumsum(counts)])
    rounding = 1e-13 * (1 + jumps.expected)
    lost = np.maximum(1 - np.add.reduceat(values, starts[:-1]), 0.0) + rounding
    return NearColumns(starts, nodes, values, lost, float(sum(part[3] for part in parts)))


@compiled_part
def spread_once(csr: Any, step: Any, heat: Any, lists: Any, held: int, reached: int, weight: Any, number: int) -> Any:
    """Move the heat of one source by one jump; returns the nodes that hold and that ever held some, and two sums.

    The sums are the heat left out and the number of entries touched. `weight` is the share of this jump and of all
    later ones, and the least heat that counts. A row of `heat` is what a node holds, will hold and held in all, and
    its `NEVER`, `EVER` or `LISTED`: side by side, so that a node far away in memory is fetched once.
    """
    starts, near, weights = csr
    scale, stay = step
    here, there, ever = lists[(number - 1) % 2], lists[number % 2], lists[2]
    count, lost, touched = 0, 0.0, np.uint64(0)
    for k in range(held):
        j = here[k]
        x = heat[j, NOW]
        heat[j, NOW] = 0.0
        if abs(x) * weight[1] < weight[2]:
            lost += abs(x) * weight[1]
            continue
        if heat[j, STATE] != LISTED:
            heat[j, STATE] = LISTED
            there[count] = j
            count += 1
        heat[j, NEXT] += stay[j] * x
        first, last = starts[j], starts[j + ONE]
        touched += last - first
        for e in range(first, last):
            i = near[e]
            if heat[i, STATE] != LISTED:
                if heat[i, STATE] == NEVER:
                    ever[reached] = i
                    reached += 1
                heat[i, STATE] = LISTED
                there[count] = i
                count += 1
            heat[i, NEXT] += weights[e] * scale[j] * x
    for k in range(count):
        j = there[k]
        x = heat[j, NEXT]
        heat[j, NOW], heat[j, NEXT], heat[j, STATE] = x, 0.0, EVER
        heat[j, TOTAL] += weight[0] * x
    return count, reached, lost, touched


@compiled_part
def spread(csr: Any, rates: Any, shares: FloatArray, heat: Any, lists: Any, held: int, drop: float, most: int) -> Any:
    """Spread the heat that the first `held` nodes of the lists hold: nodes reached, heat left out, entries touched.

    It stops, with infinite heat left out, where more than `most` nodes are reached.
    """
    reached, lost, left, work, last = held, 0.0, 1.0 - shares[0], 0.0, 0
    for step in range(1, len(shares)):
        weight = (shares[step], left, drop)
        held, reached, more, touched = spread_once(csr, rates, heat, lists, held, reached, weight, step)
        lost, work, left, last = lost + more, work + touched, max(left - shares[step], 0.0), step
        if reached > most:
            lost = np.inf
        if held == 0 or reached > most:
            break
    for k in range(held):
        heat[lists[last % 2, k], NOW] = 0.0
    return reached, lost, work


@compiled
def columns_near(csr: Any, rates: Any, shares: FloatArray, sources: IntArray, drop: float, least: float) -> Any:
    """Number of entries of each column, and all nodes and entries in order; and the number of entries touched."""
    n = len(csr[0]) - 1
    heat, lists = np.zeros((n, 4)), np.empty((3, n), np.uint32)
    ever = lists[2]
    counts, nodes, values = np.empty(len(sources), np.int64), np.empty(1024, np.int32), np.empty(1024)
    used, work = 0, 0.0
    for p in range(len(sources)):
        node = sources[p]
        lists[0, 0], ever[0] = node, node
        heat[node, NOW], heat[node, TOTAL], heat[node, STATE] = 1.0, shares[0], EVER
        reached, _, touched = spread(csr, rates, shares, heat, lists, 1, drop, n)
        work += touched
        while used + reached > len(values):
            nodes, values = np.append(nodes, np.empty_like(nodes)), np.append(values, np.empty_like(values))
        largest = 0.0
        for k in range(reached):
            largest = max(largest, heat[ever[k], TOTAL])
        first = used
        for k in range(reached):
            j = ever[k]
            if heat[j, TOTAL] >= least * largest:
                nodes[used], values[used] = j, heat[j, TOTAL]
                used += 1
            heat[j, TOTAL], heat[j, STATE] = 0.0, NEVER
        counts[p] = used - first
    return counts, nodes[:used], values[:used], work


@compiled
def near_slopes(
    csr: Any, rates: Any, seen: FloatArray, shares: FloatArray, pairs: IntArray, drop: float, filled: Any
) -> float:
    """Fill the norm of the readings of each pair and a bound on its error in the l1 norm; returns the entries touched.

    The error is infinite where heat reaches more than `MAX_NODES` nodes.
    """
    norms, slack = filled
    n = len(seen)
    heat, lists = np.zeros((n, 4)), np.empty((3, n), np.uint32)
    ever, work = lists[2], 0.0
    for p in range(len(pairs)):
        for k in range(2):
            node = pairs[p, k]
            lists[0, k], ever[k] = node, node
            heat[node, NOW], heat[node, STATE] = 1.0 - 2.0 * k, EVER
            heat[node, TOTAL] = shares[0] * heat[node, NOW]
        reached, lost, touched = spread(csr, rates, shares, heat, lists, 2, drop, MAX_NODES)
        work, square = work + touched, 0.0
        for k in range(reached):
            j = ever[k]
            square += (seen[j] * heat[j, TOTAL]) ** 2
            heat[j, TOTAL], heat[j, STATE] = 0.0, NEVER
        norms[p], slack[p] = np.sqrt(square), lost
    return work
