"""The steepest slope of a large network: edge by edge where heat stays near, with a random sketch where it does not."""

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled
from cloakwork.physics.near_columns import Jumps, NearColumns, near_columns, near_slopes
from cloakwork.physics.network_kernel import BLOCK, NetworkKernel

MAX_JUMPS = 60.0  # expected jumps of a walker; with more, no edge is local
MAX_TOUCHED = 1.5e10  # entries that all edges together may touch, about a minute of work on two cores
SAMPLED = 64  # edges whose cost is measured first
CLOSE = 1.005  # a bound this near to the steepest edge is not refined
SKETCHES = (64, 128, 256, 512)  # random readings, more if the bound is loose; see `sketched`
TIGHT = 1.5  # times the true slope: a bound that needs no more of them
SKETCH_ERROR = 2e-4  # of the Chebyshev sum for a sketch, at most
SKETCH_SHARE = 0.02  # of the steepest slope that this error may have
SKETCH_DOUBT = 1e-11  # probability that a sketch understates the slope
ROUNDING = 1e-12  # of a sum of squares
NORM_BLOCKS = 2  # blocks of random readings for the norms of columns alone
NEAR_DROP, SHARPEST_DROP = 3e-3, 1e-4  # heat left out as the near part of a column spreads: at first, and at least
NEAR_MIN = 0.01  # of the largest entry of a column, for an entry of its near part
NEAR_TOUCHED, NEAR_WORK = 30_000, 1e10  # entries that the near part of one column, and that of all, may touch
NEAR_JUMPS = 500.0  # expected jumps of its heat; with more, there is no near part
FEW_EDGES = 4  # of which the steepest sets the error of the Chebyshev sum, where there is no near part
STEEP = 0.5  # of the steepest slope: columns at such edges are computed more sharply
HUB = 2.0  # times the median rate: the near part does not follow heat through faster nodes


@dataclass(frozen=True, eq=False)
class EdgeSlopes:
    """Slopes of all edges, shape (p,), and an upper bound of each.

    `steepest` is at most the largest true slope. `doubt` is the probability that an upper bound is too small. Without
    doubt each slope is as near to the truth as to its bound. A sketch also estimates the norm of each column (n,).
    """

    values: FloatArray
    upper: FloatArray
    steepest: float
    doubt: float = 0.0
    norms: FloatArray | None = None


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

    @cached_property
    def jumps(self) -> Jumps:
        return Jumps(self.csr, self.scale, self.kernel.diagonal, self.kernel.tau)

    def slopes(self) -> EdgeSlopes:
        """Slopes of all edges, by the sharper of the two ways that is affordable."""
        return self.local() if self._is_local else self.sketched()

    def norms(self) -> FloatArray:
        """The norm of each column, shape (n,): to three digits near each node, or estimated by random readings."""
        if self._is_local:
            nodes = np.arange(len(self.seen))
            return self._near(np.stack([nodes, nodes], axis=1), 3e-3)[0]  # a pair of one node holds its heat alone
        kernel, more = self.kernel.rougher(SKETCH_ERROR), np.zeros(len(self.seen))
        for _ in range(NORM_BLOCKS):
            self._read_randomly(kernel, more)
        return self._sketched_norms(more / (NORM_BLOCKS * BLOCK))

    @cached_property
    def _is_local(self) -> bool:
        """Whether the heat of an edge stays near enough for all edges to be affordable."""
        if self.jumps.expected > MAX_JUMPS:
            return False
        chosen = np.random.default_rng(0).choice(len(self.pairs), min(SAMPLED, len(self.pairs)), replace=False)
        _, slack, touched = self._local(np.sort(chosen), 1e-4)
        return bool(np.isfinite(slack).all()) and touched * len(self.pairs) / len(chosen) <= MAX_TOUCHED

    def local(self) -> EdgeSlopes:
        """Slopes of all edges, each from the nodes near it; edges that may be the steepest are refined.

        Notes
        -----
        With the rate r at which heat leaves the busiest node, exp(-tau A) = sum_k Poisson(k; tau r) P^k, where P = 1 -
        A / r moves heat and loses none. So whatever is left out at any step, and the tail of the sum, bounds the error
        in the l1 norm, which is at least that in the l2 norm.
        """
        which, drop = np.arange(len(self.pairs)), 1e-4
        values, slack = np.empty(len(which)), np.empty(len(which))
        for turn in range(4):
            sharper, rest, _ = self._local(which, drop)
            far = np.isinf(rest)  # heat reaches too far
            if turn == 0 and far.any():
                return self.sketched()  # never later: whether chance is involved must not depend on the noise
            values[which[~far]], slack[which[~far]] = sharper[~far], rest[~far]
            steepest = float((values - slack).max(initial=0.0))
            which, drop = np.flatnonzero(values + slack > CLOSE * steepest), drop / 30
            if far.any() or not len(which) or float((slack[which] / values[which].clip(1e-300)).max()) < CLOSE - 1:
                break
        return EdgeSlopes(values, (values + slack) * (1 + 1e-12), steepest)

    def _local(self, which: IntArray, drop: float) -> tuple[FloatArray, FloatArray, float]:
        """Slopes of some edges, the bounds on their errors, and the number of entries touched."""
        values, slack, touched = self._near(self.pairs[which], drop)
        return values / self.lengths[which], slack / self.lengths[which], touched

    def _near(self, pairs: IntArray, drop: float) -> tuple[FloatArray, FloatArray, float]:
        shares = self.jumps.shares(drop / 10)
        tail = 2 * max(1 - float(shares.sum()), 0.0) + 1e-13
        values, slack, pieces = np.empty(len(pairs)), np.empty(len(pairs)), np.array_split(np.arange(len(pairs)), 64)

        def work(piece: IntArray) -> float:
            filled = [each[piece[0] : piece[-1] + 1] for each in (values, slack)]
            return near_slopes(self.csr, self.jumps.step, self.seen, shares, pairs[piece], drop / 30, tuple(filled))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            touched = sum(pool.map(work, [piece for piece in pieces if len(piece)]))
        return values, (slack + tail) * float(self.seen.max(initial=0.0)), touched

    def sketched(self) -> EdgeSlopes:
        """Slopes of all edges: their near part computed, and what is beside it bounded by random readings.

        Notes
        -----
        K, the near part, is a fixed matrix, e the direction of K b, and R = M - K, so that with a = <e, R b>
            ||M b||^2  =  ||K b||^2 + 2 ||K b|| a + ||R b||^2.
        With k rows Z of independent standard Gaussian numbers, ||Z R b||^2 / ||R b||^2 is chi-square with k degrees of
        freedom, and its quantile bounds ||R b||, and so a. Where k is large, a regression of Z R b on Z e bounds a more
        sharply: what R b has beside e is independent of Z e, so given Z e the residual is chi-square with k - 1 degrees
        of freedom, and the slope is Gaussian around a. ||Z M b||^2 bounds ||M b|| without K, which is better where K is
        poor. The smallest bound counts. All quantiles are at `SKETCH_DOUBT` over the number of edges, of quantiles and
        of the chances to stop. The numbers come from the operating system, and are unknown to whoever made the graph.
        """
        near = self._near_part.slopes(self.pairs)
        some = np.random.default_rng(0).integers(len(near), size=FEW_EDGES) if near.max() == 0 else [np.argmax(near)]
        true = max(self._slope(int(edge)) for edge in some)
        spread = float((self.seen / np.sqrt(self.scale)).max()) * np.sqrt(self.scale[self.pairs].sum(axis=1))
        error = SKETCH_SHARE / 2 * true / max(float((spread / self.lengths).max()), 1e-300)
        kernel = self.kernel.rougher(min(SKETCH_ERROR, error))
        sums, of_nodes = np.zeros((len(near), 3)), np.zeros(len(self.seen))
        upper, number = near, 0
        for before, number in pairwise((0, *SKETCHES)):
            for _ in range(before, number, BLOCK):
                self._read_randomly(kernel, of_nodes, sums)
            norms = norm_bounds(sums, near, number, SKETCH_DOUBT / (len(SKETCHES) * len(near)))
            upper = (norms + kernel.error * spread) / self.lengths * (1 + 1e-12)
            if float(upper.max()) > TIGHT * true:
                true = max(true, self._slope(int(np.argmax(upper))))
            if float(upper.max()) <= TIGHT * true:
                break
        values = np.sqrt(sums[:, 0] / number) / self.lengths
        return EdgeSlopes(values, upper, true, SKETCH_DOUBT, self._sketched_norms(of_nodes / number))

    @cached_property
    def _near_part(self) -> "_NearPart":
        """The largest entries of each column of the readings, as far as heat gets there past no hub.

        Columns at steep edges are computed again, more sharply.
        """
        nodes, neighbours = np.arange(len(self.seen)), np.diff(self.csr[0].astype(np.int64))
        slow = self.jumps.rates <= HUB * float(np.median(self.jumps.rates))
        through = slow & (neighbours <= 1 / NEAR_DROP)
        part = _NearPart(len(nodes))
        if not through.any():
            return part
        # heat at a fast node moves on at once; one with very many neighbours may hold its own
        jumps, seen = self.jumps.only_through(through), np.where(slow, self.seen, 0.0)
        if jumps.expected > NEAR_JUMPS or not _is_affordable(jumps, nodes, NEAR_DROP):
            return part
        part = part.with_columns(nodes, near_columns(jumps, nodes, NEAR_DROP, least=NEAR_MIN), seen)
        slopes = part.slopes(self.pairs)
        steep = np.unique(self.pairs[slopes > STEEP * slopes.max()])
        sharper = max(NEAR_MIN * float(slopes.max()), SHARPEST_DROP)
        if len(steep) and sharper < NEAR_DROP and _is_affordable(jumps, steep, sharper):
            part = part.with_columns(steep, near_columns(jumps, steep, sharper, least=NEAR_MIN), seen)
        return part

    def _slope(self, edge: int) -> float:
        """The slope of one edge, less what its error may be."""
        root, (u, v) = np.sqrt(self.scale), self.pairs[edge]
        move = np.zeros(len(root))
        move[u], move[v] = root[u], -root[v]
        error = self.kernel.error * float((self.seen / root).max() * np.hypot(root[u], root[v]))
        norm = float(np.linalg.norm(self.seen / root * self.kernel.apply(move)))
        return max(0.0, norm - error) / float(self.lengths[edge])

    def _read_randomly(self, kernel: NetworkKernel, of_nodes: FloatArray, of_edges: FloatArray | None = None) -> None:
        """Add `BLOCK` random readings: (Z M)^2 - (Z K)^2 of each node, and the products of M b and K b of each edge."""
        rows = np.random.default_rng(secrets.randbits(128)).standard_normal((len(self.seen), BLOCK))
        root, part = np.sqrt(self.scale)[:, None], self._near_part.products(rows)
        block = kernel.apply(rows * (self.seen[:, None] / root)) * root
        of_nodes += (block**2).sum(axis=1) - (part**2).sum(axis=1)
        if of_edges is not None:
            _share(len(of_edges), partial(multiply_edges, block, part, self.pairs, of_edges))

    def _sketched_norms(self, more: FloatArray) -> FloatArray:
        """The norm of each column, from that of its near part and an estimate of how much larger its square is."""
        near = self._near_part.squares()
        return np.sqrt(np.maximum(near + more, near / 2))


class _NearPart:
    """Some entries of each of n columns: those of column v are `nodes[first[v]:last[v]]` and `values[...]`."""

    def __init__(self, n: int) -> None:
        self.first, self.last = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.nodes, self.values = np.empty(0, np.int32), np.empty(0)

    def with_columns(self, which: IntArray, columns: NearColumns, seen: FloatArray) -> "_NearPart":
        """Replace some columns by columns of the readings."""
        part = _NearPart(len(self.first))
        part.first, part.last = self.first.copy(), self.last.copy()
        part.first[which], part.last[which] = (columns.starts[k : len(which) + k] + len(self.nodes) for k in (0, 1))
        part.nodes = np.append(self.nodes, columns.nodes)
        part.values = np.append(self.values, columns.values * seen[columns.nodes])
        return part

    @property
    def _entries(self) -> Any:
        return self.first, self.last, self.nodes, self.values

    def slopes(self, pairs: IntArray) -> FloatArray:
        """The norm of the difference of each pair of columns."""
        norms = np.empty(len(pairs))
        _share(len(pairs), partial(norm_differences, self._entries, pairs, norms))
        return norms

    def products(self, rows: FloatArray) -> FloatArray:
        """The product of each column with each of the dense columns `rows`."""
        products = np.empty((len(self.first), rows.shape[1]))
        _share(len(products), partial(multiply_columns, self._entries, rows, products))
        return products

    def squares(self) -> FloatArray:
        """The squared norm of each column."""
        sums = np.concatenate([[0.0], np.cumsum(self.values**2)])
        return np.asarray(sums[self.last] - sums[self.first])


def norm_bounds(sums: FloatArray, near: FloatArray, number: int, doubt: float) -> FloatArray:
    """Upper bounds of ||M b||, from `number` random readings of M b and K b and from ||K b||; see `Network.sketched`.

    The columns of `sums` are the squares of the first, the products, and the squares of the second. Each bound is too
    small with at most the probability `doubt`, divided among four quantiles.
    """
    each = doubt / 4
    quantile, fewer = (2 * float(special.gammaincinv(k / 2, each)) for k in (number, number - 1))
    whole, product, square = sums.T
    bounds = np.sqrt(whole / quantile)
    known = np.flatnonzero(square > 0)
    whole, product, square, near = whole[known], product[known], square[known], near[known]
    rounding = ROUNDING * (whole + square)
    rest = np.sqrt((np.maximum(whole - 2 * product + square, 0.0) + rounding) / quantile)
    beside = np.sqrt((np.maximum(whole - product**2 / square, 0.0) + rounding) / fewer)
    along = near * (product / square - 1 - special.ndtri(each) * beside / np.sqrt(square))
    with_near = np.sqrt(np.maximum(near**2 + 2 * near * np.minimum(along, rest), 0.0) + rest**2)
    bounds[known] = np.minimum(bounds[known], with_near)
    return np.asarray(bounds)


def _is_affordable(jumps: Jumps, nodes: IntArray, drop: float) -> bool:
    """Whether these columns take less than a minute or so, by a few of them."""
    few = np.random.default_rng(0).choice(nodes, min(len(nodes), SAMPLED), replace=False)
    return near_columns(jumps, few, drop).touched <= len(few) * min(NEAR_TOUCHED, NEAR_WORK / len(nodes))


def _share(size: int, work: Callable[[int, int], object]) -> None:
    """Let each core work on its own range."""
    ends = np.linspace(0, size, (os.cpu_count() or 1) + 1).astype(int)
    with ThreadPoolExecutor(len(ends) - 1) as pool:
        list(pool.map(work, ends, ends[1:]))


@compiled
def norm_differences(entries: Any, pairs: IntArray, norms: FloatArray, low: int, high: int) -> None:
    """The norm of the difference of two sparse columns, for some pairs of columns."""
    first, last, nodes, values = entries
    difference = np.zeros(len(first))
    for e in range(low, high):
        u, v = pairs[e]
        for k in range(first[u], last[u]):
            difference[nodes[k]] = values[k]
        square = 0.0
        for k in range(first[v], last[v]):
            square += (difference[nodes[k]] - values[k]) ** 2
            difference[nodes[k]] = 0.0
        for k in range(first[u], last[u]):
            square += difference[nodes[k]] ** 2
            difference[nodes[k]] = 0.0
        norms[e] = np.sqrt(square)


@compiled
def multiply_columns(entries: Any, rows: FloatArray, products: FloatArray, low: int, high: int) -> None:
    """Products of some sparse columns with each of a block of dense ones."""
    first, last, nodes, values = entries
    for v in range(low, high):
        products[v] = 0.0
        for k in range(first[v], last[v]):
            for c in range(rows.shape[1]):
                products[v, c] += values[k] * rows[nodes[k], c]


@compiled
def multiply_edges(block: FloatArray, part: FloatArray, pairs: IntArray, sums: FloatArray, low: int, high: int) -> None:
    """Add for some edges: the squares of differences in a block, their products with those of its near part, and the
    squares of those.
    """
    for e in range(low, high):
        u, v = pairs[e]
        for k in range(block.shape[1]):
            all_of_it, near = block[u, k] - block[v, k], part[u, k] - part[v, k]
            sums[e, 0] += all_of_it**2
            sums[e, 1] += all_of_it * near
            sums[e, 2] += near**2
