"""The steepest slope of a large network: edge by edge where heat stays near, by a random sketch where it does not."""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.physics.edge_list import Progress
from cloakwork.physics.network_kernel import BLOCK, ONE, NetworkKernel

MOST_JUMPS = 60.0  # expected jumps of a walker; with more, no edge is local
MOST_TOUCHED = 1.5e10  # entries that all edges together may touch, about a minute of work on two cores
MOST_NODES = 20_000  # that the heat of one edge may reach
SAMPLED = 64  # edges whose cost is measured first
CLOSE = 1.005  # a bound this near to the steepest edge is not refined
SKETCHES, MORE_SKETCHES = 384, 768  # random readings, and where each takes few terms; see `sketched`
FEW_TERMS = 20  # of a Chebyshev sum
SKETCH_ERROR = 1e-4  # of the Chebyshev sum for a sketch, at first
SKETCH_SHARE = 0.01  # of the steepest slope that this error may have
SKETCH_DOUBT = 1e-11  # probability that a sketch understates the slope


def _silent(done: int, total: int) -> None:
    """Report progress to no one."""


@dataclass(frozen=True, eq=False)
class EdgeSlopes:
    """Slopes of all edges, shape (p,), each within `slack` of the truth (p,), or times `factor` an upper bound.

    `doubt` is the probability that an upper bound is too small. A sketch also estimates the norm of each column (n,).
    """

    values: FloatArray
    slack: FloatArray
    factor: float = 1.0
    doubt: float = 0.0
    norms: FloatArray | None = None

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bound of each slope."""
        return np.asarray((self.values * self.factor + self.slack) * (1 + 1e-12))


@dataclass(frozen=True, eq=False)
class Network:
    """The readings diag(seen) exp(-tau A) of a network, where A moves heat from node j at the rates scale_j w_ij.

    `kernel` is exp(-tau A) up to a change of basis: exp(-tau A) = diag(1/root) kernel diag(root), with scale = root^2
    for a random walk and 1 for heat. `seen` (n,) is 0 at nodes without a sensor. `weights` are those of the edges.
    """

    kernel: NetworkKernel
    csr: Any
    scale: FloatArray
    seen: FloatArray
    pairs: IntArray
    lengths: FloatArray

    @property
    def _rates(self) -> FloatArray:
        """The rate at which heat leaves each node."""
        return self.kernel.diagonal

    def slopes(self, progress: Progress) -> EdgeSlopes:
        """Slopes of all edges, by the sharper of the two ways that is affordable."""
        return self.local(progress) if self._is_local else self.sketched(progress)

    def norms(self) -> FloatArray:
        """The norm of each column, shape (n,): to three digits near each node, or estimated by random readings."""
        if self._is_local:
            nodes = np.arange(len(self.seen))
            return self._near(np.stack([nodes, nodes], axis=1), 3e-3)[0]  # a pair of one node holds its heat alone
        kernel = self.kernel.rougher(SKETCH_ERROR)
        return np.sqrt((self._random_readings(kernel)[1] + self._random_readings(kernel)[1]) / (2 * BLOCK))

    @cached_property
    def _is_local(self) -> bool:
        """Whether the heat of an edge stays near enough for all edges to be affordable."""
        if self.kernel.tau * float(self._rates.max(initial=0.0)) > MOST_JUMPS:
            return False
        chosen = np.random.default_rng(0).choice(len(self.pairs), min(SAMPLED, len(self.pairs)), replace=False)
        _, slack, touched = self._local(np.sort(chosen), 1e-4)
        return bool(np.isfinite(slack).all()) and touched * len(self.pairs) / len(chosen) <= MOST_TOUCHED

    def local(self, progress: Progress) -> EdgeSlopes:
        """Slopes of all edges, each from the nodes near it; edges that may be the steepest are refined.

        Notes
        -----
        With the rate r at which heat leaves the busiest node, exp(-tau A) = sum_k Poisson(k; tau r) P^k, where P = 1 -
        A / r moves heat and loses none. So whatever is left out at any step, and the tail of the sum, bounds the error
        in the l1 norm, which is at least that in the l2 norm.
        """
        which, drop = np.arange(len(self.pairs)), 1e-4
        values, slack = np.empty(len(which)), np.empty(len(which))
        for _ in range(4):
            sharper, rest, _ = self._local(which, drop, progress)
            if np.isinf(rest).any():
                if len(which) == len(self.pairs):
                    return self.sketched(progress)
                break  # heat reaches too far to refine these edges; whether it does must not depend on the noise
            values[which], slack[which] = sharper, rest
            steepest = float((values - slack).max(initial=0.0))
            which, drop = np.flatnonzero(values + slack > CLOSE * steepest), drop / 30
            if not len(which) or float((slack[which] / values[which].clip(1e-300)).max()) < CLOSE - 1:
                break
        return EdgeSlopes(values, slack)

    def _local(
        self, which: IntArray, drop: float, progress: Progress = _silent
    ) -> tuple[FloatArray, FloatArray, float]:
        """Slopes of some edges, the bounds on their errors, and the number of entries touched."""
        values, slack, touched = self._near(self.pairs[which], drop, progress)
        return values / self.lengths[which], slack / self.lengths[which], touched

    def _near(self, pairs: IntArray, drop: float, progress: Progress = _silent) -> tuple[FloatArray, FloatArray, float]:
        rate = float(self._rates.max(initial=0.0))
        jumps, most = self.kernel.tau * rate, np.arange(int(self.kernel.tau * rate * 2 + 60))
        shares = np.exp(special.xlogy(most, jumps) - jumps - special.gammaln(most + 1))
        tails = 1 - np.cumsum(shares)
        shares = shares[: int(np.argmax(tails < drop / 10)) + 1]
        tail = 2 * max(1 - float(shares.sum()), 0.0) + 1e-13
        values, slack, pieces = np.empty(len(pairs)), np.empty(len(pairs)), np.array_split(np.arange(len(pairs)), 64)

        def work(piece: IntArray) -> float:
            rates = (self.scale / rate, 1 - self._rates / rate)
            return near_slopes(self.csr, rates, self.seen, shares, pairs[piece], drop / 30, piece, values, slack)

        touched = 0.0
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, more in enumerate(pool.map(work, [piece for piece in pieces if len(piece)])):
                touched += more
                progress(number + 1, len(pieces))
        return values, (slack + tail) * float(self.seen.max(initial=0.0)), touched

    def sketched(self, progress: Progress) -> EdgeSlopes:
        """Slopes of all edges from random readings, with a factor that makes them upper bounds.

        Notes
        -----
        With k rows Z of independent standard Gaussian numbers, ||Z M b||^2 / ||M b||^2 is chi-square with k degrees of
        freedom, so sqrt(k / q) ||Z M b|| / sqrt(k) is at least ||M b|| but with the probability of a chi-square below
        its quantile q. The quantile is taken at `SKETCH_DOUBT` over the number of edges. The numbers come from the
        operating system, and are unknown to whoever made the graph.
        """
        kernel = self.kernel.rougher(SKETCH_ERROR)
        # the pilot chooses the error, and is not used again
        pilot = float(np.sqrt(self._random_readings(kernel)[0] / BLOCK).max())
        if kernel.error > SKETCH_SHARE * pilot:
            kernel = kernel.rougher(SKETCH_SHARE * pilot / 2)
        number = MORE_SKETCHES if len(kernel.coefficients) <= FEW_TERMS else SKETCHES
        squares, column_squares = np.zeros(len(self.pairs)), np.zeros(len(self.seen))
        for done in range(0, number, BLOCK):
            progress(done, number)
            of_edges, of_nodes = self._random_readings(kernel)
            squares += of_edges
            column_squares += of_nodes
        u, v = self.pairs.T
        quantile = 2 * float(special.gammaincinv(number / 2, SKETCH_DOUBT / len(u)))
        spread = float((self.seen / np.sqrt(self.scale)).max()) * np.sqrt(self.scale[u] + self.scale[v])
        values = np.sqrt(squares / number) / self.lengths
        slack, factor = kernel.error * spread / self.lengths, float(np.sqrt(number / quantile))
        return EdgeSlopes(values, slack, factor, SKETCH_DOUBT, np.sqrt(column_squares / number))

    def _random_readings(self, kernel: NetworkKernel) -> tuple[FloatArray, FloatArray]:
        """Sums of squares of `BLOCK` random readings of each edge, shape (p,), and of each node, shape (n,)."""
        rng = np.random.default_rng(secrets.randbits(128))
        root, squares = np.sqrt(self.scale)[:, None], np.empty(len(self.pairs))
        block = kernel.apply(rng.standard_normal((len(root), BLOCK)) * (self.seen[:, None] / root)) * root
        ends = np.linspace(0, len(squares), (os.cpu_count() or 1) + 1).astype(int)
        with ThreadPoolExecutor(len(ends) - 1) as pool:
            list(pool.map(lambda low, high: square_edges(block, self.pairs, squares, low, high), ends, ends[1:]))
        return squares, (block**2).sum(axis=1)


@compiled
def square_edges(block: FloatArray, pairs: IntArray, squares: FloatArray, low: int, high: int) -> None:
    """Sums of the squared differences along some edges, over the columns of a block."""
    for e in range(low, high):
        u, v = pairs[e]
        total = 0.0
        for k in range(block.shape[1]):
            total += (block[u, k] - block[v, k]) ** 2
        squares[e] = total


@compiled_part
def spread_once(csr: Any, rates: Any, heat: Any, marks: Any, held: int, reached: int, weight: Any, step: int) -> Any:
    """Move the heat of one pair by one jump; returns the nodes that hold and that ever held some, and two sums.

    The sums are the heat left out and the number of entries touched. `weight` is the share of this jump and of all
    later ones, and the least heat that counts.
    """
    starts, near, weights = csr
    scale, stay = rates
    now, then, total = heat
    listed, lists, ever = marks
    here, there = lists[(step - 1) % 2], lists[step % 2]
    count, lost, touched = 0, 0.0, np.uint64(0)
    for k in range(held):
        j = here[k]
        x = now[j]
        now[j] = 0.0
        if abs(x) * weight[1] < weight[2]:
            lost += abs(x) * weight[1]
            continue
        if listed[j] & 1 == 0:
            listed[j] |= 1
            there[count] = j
            count += 1
        then[j] += stay[j] * x
        first, last = starts[j], starts[j + ONE]
        touched += last - first
        for e in range(first, last):
            i = near[e]
            if listed[i] & 1 == 0:
                if listed[i] == 0:
                    ever[reached] = i
                    reached += 1
                listed[i] = 3
                there[count] = i
                count += 1
            then[i] += weights[e] * scale[j] * x
    for k in range(count):
        j = there[k]
        now[j] = then[j]
        then[j] = 0.0
        listed[j] = 2
        total[j] += weight[0] * now[j]
    return count, reached, lost, touched


@compiled
def near_slopes(
    csr: Any,
    rates: Any,
    seen: FloatArray,
    shares: FloatArray,
    pairs: IntArray,
    drop: float,
    at: IntArray,
    values: FloatArray,
    slack: FloatArray,
) -> float:
    """Norm of the readings of each pair, and a bound on its error in the l1 norm; returns how many entries it touched.

    The error is infinite where heat reaches more than `MOST_NODES` nodes.
    """
    n = len(seen)
    now, then, total = np.zeros(n), np.zeros(n), np.zeros(n)
    listed, lists, ever = np.zeros(n, np.int8), np.empty((2, n), np.uint32), np.empty(n, np.uint32)
    work = 0.0
    for p in range(len(pairs)):
        held, reached, lost, left, last = 2, 2, 0.0, 1.0 - shares[0], 0
        for k in range(2):
            node = pairs[p, k]
            lists[0, k], ever[k] = node, node
            now[node] = 1.0 - 2.0 * k
            total[node] = shares[0] * now[node]
            listed[node] = 2
        for step in range(1, len(shares)):
            weight = (shares[step], left, drop)
            held, reached, more, touched = spread_once(
                csr, rates, (now, then, total), (listed, lists, ever), held, reached, weight, step
            )
            lost, work, left, last = lost + more, work + touched, max(left - shares[step], 0.0), step
            if reached > MOST_NODES:
                lost = np.inf
                break
        square = 0.0
        for k in range(reached):
            j = ever[k]
            square += (seen[j] * total[j]) ** 2
            total[j], listed[j] = 0.0, 0
        for k in range(held):
            now[lists[last % 2, k]] = 0.0
        values[at[p]], slack[at[p]] = np.sqrt(square), lost
    return work
