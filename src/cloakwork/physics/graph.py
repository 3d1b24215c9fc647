"""Heat, a load or a rumour over a network; its matrix is formed only where it is small."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, frames, member_of, not_negative, positive, read_only, short_repr
from cloakwork._method_cache import memoize
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.diffusion import CertifiedRows, laplacian, unit_rows
from cloakwork.physics.edge_list import EdgeList
from cloakwork.physics.later_readings import SlopeBounds
from cloakwork.physics.moves import Moves, RowMoves, Slope, Steps
from cloakwork.physics.near_columns import NearColumns, near_columns
from cloakwork.physics.network_kernel import NetworkKernel
from cloakwork.physics.network_slope import EdgeSlopes, Network
from cloakwork.physics.space import Metric, Space

MAX_EXPLICIT = 4_000_000  # entries of M above which it is applied and never formed
SKETCH_ROOM = 100  # sketches that the doubt of a slope covers


class Laplacian(StrEnum):
    """How a unit source spreads over the edges."""

    COMBINATORIAL = "combinatorial"
    """Like heat: over each edge at the rate of its weight, so hubs pass on much more."""
    NORMALISED = "normalised"
    """Like a random walk: every node passes on at the rate 1, shared among its edges by their weights."""


@dataclass(frozen=True, eq=False, init=False)
class Graph(Physics):
    """A rumour, heat or a load that spreads over the edges of a connected, undirected graph.

    Parameters
    ----------
    graph
        A NetworkX graph (edge attributes `weight` and `length`, 1 by default) or a symmetric sparse adjacency
        matrix of weights. A larger weight spreads faster; a length is a distance. The two are independent.
    tau
        Diffusion time.
    sensors
        Nodes with a sensor, by name (by number for an adjacency matrix); all nodes by default.
    gain
        Reading per unit of heat: the strength of a unit source.
    laplacian
        `combinatorial` (heat, the default) or `normalised` (a random walk).

    Notes
    -----
    M = gain exp(-tau L), L = D - W, rows of the sensors only (Gilbert and McMillan, section 5). A random walk has
    L = I - W D^-1. Distance is the shortest path along edge lengths. Weight is conserved; with tau = 0 nothing spreads.
    Above 4 million entries M is never formed: `NetworkKernel` applies it, and `Network` bounds its slope.

    >>> import networkx as nx
    >>> star = Graph(nx.star_graph(9), tau=0.5)
    >>> float((star.moves().steepest().value ** 2).__round__(6))  # 10/9 exp(-10) + 8/9 exp(-1)
    0.327054
    """

    graph: Any
    tau: float
    sensors_at: Sequence[Hashable] | None
    gain: float
    kind: Laplacian
    only_listed = False

    __repr__ = short_repr

    def __init__(
        self,
        graph: Any,
        tau: float,
        sensors: Sequence[Hashable] | None = None,
        gain: float = 1.0,
        laplacian: Laplacian | str = Laplacian.COMBINATORIAL,
    ) -> None:
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "tau", not_negative("tau", tau, error=PhysicsError))
        object.__setattr__(self, "sensors_at", sensors)
        object.__setattr__(self, "gain", positive("gain", gain, error=PhysicsError))
        object.__setattr__(self, "kind", member_of("laplacian", laplacian, Laplacian, error=PhysicsError))
        self.space.refuse_parts("graph", "Connect them, or make one model for each.")
        if not len(self.sensor_places):
            raise PhysicsError("sensors is empty: name a node, or leave it out for all nodes.", sensors=sensors)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        tau: float,
        sensors: Sequence[Hashable] | None = None,
        gain: float = 1.0,
        laplacian: Laplacian | str = Laplacian.COMBINATORIAL,
    ) -> Self:
        """Read the edges from a CSV or Parquet file, or from pairs of nodes, shape (edges, 2).

        A file has the columns source and target, and perhaps weight and length. A CSV file without these names has them
        in this order. Self-loops are left out. A repeated edge, in either direction, counts once; it is refused if its
        values differ.

        >>> Graph.from_edges([("hall", "attic"), ("hall", "shed")], tau=1.0).places
        3
        """
        return cls(EdgeList.read(edges), tau, sensors, gain, laplacian)

    @cached_property
    def _edges(self) -> EdgeList:
        return EdgeList.of(self.graph)

    @cached_property
    def space(self) -> Space:
        edges = self._edges
        return Space(np.empty((edges.n, 0)), edges.pairs, edges.lengths, Metric.PATH, edges.labels)

    @cached_property
    def sensor_places(self) -> IntArray:
        if self.sensors_at is None:
            return np.arange(len(self.space))
        number = {label: k for k, label in enumerate(self.space.labels or ())}
        places = [number[node] if node in number else self.space.index(node) for node in self.sensors_at]
        return np.array(places, dtype=np.int64)

    @property
    def sensors(self) -> int:
        return len(self.sensor_places)

    @property
    def explicit(self) -> bool:
        return self.places * self.sensors <= MAX_EXPLICIT

    @property
    def peak(self) -> float:
        return super().peak if self.explicit else self.gain

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """L, shape (n, n)."""
        L = laplacian(len(self.space), self._edges.pairs, self._edges.weights)
        return L if self.kind is Laplacian.COMBINATORIAL else sparse.csr_array(L @ sparse.diags_array(self._root**2))

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """W, the symmetric matrix of the edge weights, shape (n, n)."""
        i, j = self._edges.pairs.T
        half = sparse.coo_array((self._edges.weights, (i, j)), shape=(self.places, self.places)).tocsr()
        return sparse.csr_array(half + half.T)

    @cached_property
    def kernel(self) -> NetworkKernel:
        """K, with M = gain S diag(1/root) K diag(root) for the rows S of the sensors; root is 1 for heat."""
        make = NetworkKernel.heat if self.kind is Laplacian.COMBINATORIAL else NetworkKernel.walk
        return make(self.adjacency, self.tau)

    @cached_property
    def _root(self) -> FloatArray:
        """1 for heat and 1 / sqrt(degree) for a random walk, shape (n,)."""
        if self.kind is Laplacian.COMBINATORIAL:
            return np.ones(self.places)
        degrees = np.asarray(self.adjacency.sum(axis=1)).ravel()
        return np.asarray(1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))

    @property
    def pulse(self) -> bool:
        return self.tau > 0

    @cached_property
    def _rows(self) -> CertifiedRows:
        return self.rows(self.sensor_places)

    @cached_property
    def matrix(self) -> FloatArray:
        return read_only(self._rows.values)

    @property
    def error(self) -> float:
        return self._rows.error if self.explicit else self._error_of(self.sensor_places)

    def with_spread(self, factor: float) -> Self:
        return type(self)(self.graph, self.tau * factor, self.sensors_at, self.gain, self.kind)

    def apply(self, sources: ArrayLike) -> FloatArray:
        if self.explicit:
            return super().apply(sources)
        values = frames("sources", sources, self.places)
        spread = self.kernel.apply((values.reshape(-1, self.places) * self._root).T).T / self._root
        return np.asarray(self.gain * spread[:, self.sensor_places]).reshape(*values.shape[:-1], self.sensors)

    def adjoint(self, readings: ArrayLike) -> FloatArray:
        if self.explicit:
            return super().adjoint(readings)
        values = frames("readings", readings, self.sensors)
        flat = values.reshape(-1, self.sensors)
        placed = np.zeros((len(flat), self.places))
        for row, reading in zip(placed, flat, strict=True):
            np.add.at(row, self.sensor_places, reading)
        spread = self.kernel.apply((placed / self._root).T).T * self._root
        return np.asarray(self.gain * spread).reshape(*values.shape[:-1], self.places)

    def rows(self, sensors: IntArray) -> CertifiedRows:
        columns = unit_rows(len(self.space), sensors).T / self._root[:, None]
        spread = self.kernel.apply(columns) * self._root[:, None]
        return CertifiedRows(np.ascontiguousarray(self.gain * spread.T), self._error_of(sensors))

    def _error_of(self, sensors: IntArray) -> float:
        """Bound on the error of rows in the spectral norm; several sensors at one node add up."""
        basis = float(self._root.max() / self._root.min())
        return self.gain * self.kernel.error * basis * float(np.sqrt(np.bincount(sensors).max(initial=1)))

    def steps(self, position: float = 0.0) -> Steps:
        return super().steps(position) if self.explicit or position > 0 else EdgeMoves(self)

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        if self.explicit or position or travel or not self.fades:
            return super().later_moves(position=position, travel=travel)
        return EdgeMoves(self, fades=True)

    def slope_bounds(self, position: float) -> SlopeBounds | None:
        return SlopeBounds.of_diffusion(self, self.laplacian, self.tau, position) if self.pulse else None

    def edge_slopes(self, weights: FloatArray | None = None) -> EdgeSlopes:
        """Slopes of all edges without the matrix, with their upper bounds; kept for each `weights`."""
        key = None if weights is None else weights.tobytes()
        if key not in self._edge_slopes:
            if len(self._edge_slopes) >= SKETCH_ROOM:
                raise PhysicsError(
                    f"the slope of this graph was computed for {SKETCH_ROOM} kinds of noise: make a new graph.",
                    slopes=SKETCH_ROOM,
                )
            self._edge_slopes[key] = self._network(weights).slopes()
        return self._edge_slopes[key]

    @memoize(1)
    def column_norms(self, weights: FloatArray | None = None, /) -> FloatArray:
        """||diag(weights) M_v|| of each node without the matrix, to three digits or, with hubs, estimated; (n,)."""
        known = self._edge_slopes.get(None if weights is None else weights.tobytes())
        norms = self._network(weights).norms() if known is None or known.norms is None else known.norms
        return read_only(norms)

    def near_columns(self, sources: IntArray, drop: float) -> NearColumns:
        """Columns of M / gain of some nodes, on the nodes near them; heat below `drop` is left out as it spreads."""
        return near_columns(self._unweighted.jumps, sources, drop)

    @cached_property
    def _unweighted(self) -> Network:
        return self._network(None)

    def _network(self, weights: FloatArray | None) -> Network:
        squares = np.ones(self.sensors) if weights is None else weights**2
        seen = self.gain * np.sqrt(np.bincount(self.sensor_places, weights=squares, minlength=self.places))
        W, edges = self.adjacency, self._edges
        csr = (W.indptr.astype(np.uint64), W.indices.astype(np.uint32), W.data)
        return Network(self.kernel, csr, self._root**2, seen, edges.pairs, edges.lengths)

    def looseness(self) -> float:
        if self.explicit:
            return 1.0
        steepest = self.edge_slopes().steepest
        return max(1.0, self.moves().steepest().value / steepest) if steepest > 0 else math.inf

    @cached_property
    def _edge_slopes(self) -> dict[bytes | None, EdgeSlopes]:
        return {}

    @cached_property
    def fades(self) -> bool:
        """Whether the joint slope falls with time: heat on nodes with one sensor each only ever evens out."""
        return self.kind is Laplacian.COMBINATORIAL and np.array_equal(
            np.sort(self.sensor_places), np.arange(self.places)
        )

    @property
    def doubt(self) -> float:
        return 0.0 if self.explicit else SKETCH_ROOM * self.edge_slopes().doubt

    def nearby_places(self, distance: float) -> list[IntArray]:
        return [np.flatnonzero(self.space.distances(int(k)) <= distance * (1 + 1e-9)) for k in self.sensor_places]


@dataclass(frozen=True, eq=False)
class EdgeMoves:
    """The steps over the edges of a network whose matrix is never formed.

    If it `fades`, at the model's time and at any later time: heat then only evens out, so that at equal noise no slope
    grows, and other noise is at least as good as its least.
    """

    graph: Graph
    fades: bool = False

    @property
    def each(self) -> FloatArray:
        """The steepest slope of all readings together, which bounds that of each."""
        return np.full(self.graph.sensors, self.steepest().value)

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        if self.fades and weights is not None:
            equal = self.steepest()
            return Slope(equal.value * float(weights.max()), equal.pair)
        upper = self.graph.edge_slopes(weights).upper
        if not len(upper):
            return Slope(0.0, (0, 0))
        u, v = (int(k) for k in self.graph.space.pairs[int(np.argmax(upper))])
        return Slope(float(upper.max()), (u, v))

    def norms(self, weights: FloatArray | None = None) -> FloatArray:
        """The slope of each edge, shape (edges,), not rounded."""
        return self.graph.edge_slopes(weights).values

    def rows(self) -> Iterator[FloatArray]:
        return RowMoves.between_neighbours(self.graph.matrix, self.graph.space, 0.0).rows()
