"""Diffusion over a network."""

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, frozen, not_negative, positive
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.diffusion import CertifiedRows, laplacian, pulse, unit_rows
from cloakwork.physics.space import Metric, Space
from cloakwork.physics.spectrum import Side, SpectralBound

if TYPE_CHECKING:
    import networkx as nx

DENSE_SPECTRUM = 2_000  # most nodes for which `describe` computes the full spectrum of L


@dataclass(frozen=True, eq=False, init=False)
class Graph(Physics):
    """A rumour, heat or a load that spreads over the edges of a connected, undirected graph.

    Parameters
    ----------
    graph
        A NetworkX graph (edge attributes `weight` and `length`, 1 by default) or a symmetric sparse adjacency matrix of
        weights. A larger weight spreads faster; a length is a distance. The two are independent.
    tau
        Diffusion time.
    sensors
        Nodes with a sensor, by name (by number for an adjacency matrix); all nodes by default.
    lengths
        With an adjacency matrix: a sparse matrix of edge lengths with the same pattern; 1 by default.
    gain
        Reading per unit of heat: the strength of a unit source.

    Notes
    -----
    M = gain exp(-tau L), L = D - W, rows of the sensors only (Gilbert and McMillan, section 5). Distance is the
    shortest path along edge lengths. Weight is conserved; with tau = 0 nothing spreads.

    >>> import networkx as nx
    >>> star = Graph(nx.star_graph(9), tau=0.5)
    >>> float((star.joint_slope().value ** 2).__round__(6))  # 10/9 exp(-10) + 8/9 exp(-1)
    0.327054
    """

    graph: Any
    tau: float
    sensors_at: Sequence[Hashable] | None
    lengths: Any
    gain: float

    def __init__(
        self, graph: Any, tau: float, sensors: Sequence[Hashable] | None = None, lengths: Any = None, gain: float = 1.0
    ) -> None:
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "tau", not_negative("tau", tau, error=PhysicsError))
        object.__setattr__(self, "sensors_at", sensors)
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "gain", positive("gain", gain, error=PhysicsError))
        _refuse_disconnected(self.space)
        if not len(self.sensor_places):
            raise PhysicsError("sensors is empty: name a node, or leave it out for all nodes.", sensors=sensors)

    @cached_property
    def _edges(self) -> "_Edges":
        return _read(self.graph, self.lengths)

    @cached_property
    def space(self) -> Space:
        edges = self._edges
        return Space(np.empty((edges.n, 0)), edges.pairs, edges.lengths, Metric.PATH, edges.labels)

    @cached_property
    def sensor_places(self) -> IntArray:
        """Index of each sensor's node, shape (m,)."""
        if self.sensors_at is None:
            return np.arange(len(self.space))
        return np.array([self.space.index(node) for node in self.sensors_at], dtype=np.int64)

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """L, shape (n, n)."""
        return laplacian(len(self.space), self._edges.pairs, self._edges.weights)

    @property
    def diffusion_time(self) -> float:
        """The diffusion time tau, under the name that floor plans also use."""
        return self.tau

    @property
    def pulse(self) -> bool:
        return self.tau > 0

    @cached_property
    def _rows(self) -> CertifiedRows:
        return pulse(self.laplacian, self.tau, unit_rows(len(self.space), self.sensor_places))

    @cached_property
    def matrix(self) -> FloatArray:
        return frozen(self.gain * self._rows.values)

    @property
    def error(self) -> float:
        return self.gain * self._rows.error

    def with_spread(self, factor: float) -> Self:
        return type(self)(self.graph, self.tau * factor, self.sensors_at, self.lengths, self.gain)

    def rows(self, sensors: IntArray) -> CertifiedRows:
        spread = pulse(self.laplacian, self.tau, unit_rows(len(self.space), sensors))
        return CertifiedRows(self.gain * spread.values, self.gain * spread.error)

    def nearby_places(self, distance: float) -> list[IntArray]:
        return [np.flatnonzero(self.space.distances(int(k)) <= distance * (1 + 1e-9)) for k in self.sensor_places]

    def bounds(self) -> tuple[SpectralBound, ...]:
        """Certified upper bounds on the slope, from the edge weights and from the spectrum of L.

        Notes
        -----
        ||exp(-tau L)(e_i - e_j)|| <= 1 / sqrt(2 e tau w_ij) for every edge, and Gilbert and McMillan, Lemma 18 (with
        the exponent exp(-tau s_k) and a maximum over edges).
        """
        edges = self._edges
        if not len(edges.pairs):
            return ()
        bounds = []
        # several sensors at one node read the same
        gain = self.gain * float(np.sqrt(np.bincount(self.sensor_places).max()))
        if self.tau > 0:
            edgewise = np.minimum(np.sqrt(2), 1 / np.sqrt(2 * np.e * self.tau * edges.weights))
            value = gain * float((edgewise / edges.lengths).max())
            bounds.append(SpectralBound("edge weights", Side.UPPER, value))
        if len(self.space) <= DENSE_SPECTRUM:
            values, vectors = np.linalg.eigh(self.laplacian.toarray())
            i, j = edges.pairs.T
            # computed eigenvalues may be too large by a few roundings of ||L||
            safe = np.maximum(values - 1e-12 * values[-1], 0.0)
            sums = np.abs(vectors[i, 1:] - vectors[j, 1:]) @ np.exp(-self.tau * safe[1:])
            value = gain * float((sums / edges.lengths).max())
            bounds.append(SpectralBound("spectrum of the graph", Side.UPPER, value * (1 + 1e-9)))
        return tuple(bounds)


@dataclass(frozen=True, eq=False)
class _Edges:
    n: int
    pairs: IntArray
    weights: FloatArray
    lengths: FloatArray
    labels: tuple[Hashable, ...] | None


def _read(graph: Any, lengths: Any) -> _Edges:
    networkx = sys.modules.get("networkx")  # slow to load; whoever has one of its graphs has loaded it
    if networkx is not None and isinstance(graph, networkx.Graph):
        return _from_networkx(graph)
    if sparse.issparse(graph) or isinstance(graph, np.ndarray):
        matrix: Any = graph
        return _from_adjacency(sparse.coo_array(matrix), lengths)
    kind = type(graph).__name__
    raise PhysicsError(f"graph is a {kind}: give a NetworkX graph or a sparse adjacency matrix.", graph=kind)


def _from_networkx(graph: "nx.Graph[Any]") -> _Edges:
    if graph.is_directed() or graph.is_multigraph():
        raise PhysicsError("the graph is directed or has parallel edges: give an undirected simple graph.", graph=graph)
    if graph.number_of_nodes() == 0:
        raise PhysicsError("the graph has no nodes: give at least one.", nodes=0)
    labels = tuple(graph.nodes)
    number = {label: k for k, label in enumerate(labels)}
    edges = [(u, v, data) for u, v, data in graph.edges(data=True) if u != v]
    pairs = np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2)
    try:
        weights = np.array([data.get("weight", 1.0) for *_, data in edges], dtype=np.float64)
        lengths = np.array([data.get("length", 1.0) for *_, data in edges], dtype=np.float64)
    except (TypeError, ValueError):
        raise PhysicsError("an edge has a weight or length that is not a number.", edges=edges) from None
    _refuse_bad_weights(weights, [f"{u!r}-{v!r}" for u, v, _ in edges])
    return _Edges(len(labels), pairs, weights, lengths, labels)


def _from_adjacency(adjacency: sparse.coo_array, lengths: Any) -> _Edges:
    rows, columns = adjacency.shape
    if rows != columns or rows == 0:
        raise PhysicsError(f"adjacency has shape {rows} x {columns}: give a square one.", shape=(rows, columns))
    difference = abs(adjacency - adjacency.T)
    if difference.nnz and difference.max() > 0:
        raise PhysicsError("the adjacency matrix is not symmetric: the graph must be undirected.", graph=adjacency)
    upper = sparse.triu(adjacency, k=1).tocsr().tocoo()  # sums duplicate entries
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    weights = np.asarray(upper.data, dtype=np.float64)
    _refuse_bad_weights(weights, [f"{i}-{j}" for i, j in pairs])
    distances = np.ones(len(pairs))
    if lengths is not None:
        table = sparse.csr_array(lengths)
        distances = np.asarray(table[pairs[:, 0], pairs[:, 1]], dtype=np.float64).ravel()
    return _Edges(rows, pairs, weights, distances, None)


def _refuse_bad_weights(weights: FloatArray, names: list[str]) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(bad):
        raise PhysicsError(
            f"edge {names[bad[0]]} has weight {weights[bad[0]]}: give finite weights above 0, or drop the edge.",
            edge=names[bad[0]],
        )


def _refuse_disconnected(space: Space) -> None:
    parts = space.components()
    if parts.max() == 0:
        return
    samples = [space.name(int(np.flatnonzero(parts == part)[0])) for part in range(min(4, parts.max() + 1))]
    raise PhysicsError(
        f"the graph has {parts.max() + 1} unconnected parts (nodes {samples[0]} and {samples[1]} are in different "
        "ones): the distance between them is undefined. Connect them, or make one model for each.",
        nodes=samples,
    )
