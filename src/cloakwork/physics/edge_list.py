"""Edges of a network from files, arrays and the graphs of other libraries."""

import sys
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import PhysicsError


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges of an undirected graph with `n` nodes: pairs (p, 2), weights and lengths (p,), and names of the nodes.

    Each edge occurs once. A self-loop moves no heat and is left out.
    """

    n: int
    pairs: IntArray
    weights: FloatArray
    lengths: FloatArray
    labels: tuple[Hashable, ...] | None

    def __post_init__(self) -> None:
        bad = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights > 0)))
        if len(bad):
            u, v = (repr(self.name(int(k))) for k in self.pairs[bad[0]])
            raise PhysicsError(
                f"edge {u}-{v} has weight {self.weights[bad[0]]}: give finite weights above 0, or drop the edge.",
                edge=f"{u}-{v}",
            )

    def name(self, node: int) -> Hashable:
        """The name of a node, or its number."""
        return node if self.labels is None else self.labels[node]

    @classmethod
    def of(cls, graph: Any, lengths: Any = None) -> "EdgeList":
        """Read a NetworkX or igraph graph, or a symmetric adjacency matrix."""
        networkx = sys.modules.get("networkx")  # slow to load; whoever has one of its graphs has loaded it
        if isinstance(graph, EdgeList):
            return graph
        if networkx is not None and isinstance(graph, networkx.Graph):
            return _from_networkx(graph)
        if sparse.issparse(graph) or isinstance(graph, np.ndarray):
            matrix: Any = graph
            return _from_adjacency(sparse.coo_array(matrix), lengths)
        if all(hasattr(graph, name) for name in ("get_edgelist", "vs", "es", "is_directed")):
            return _from_igraph(graph)
        kind = type(graph).__name__
        raise PhysicsError(
            f"graph is a {kind}: give a NetworkX or igraph graph or a sparse adjacency matrix. Graph.from_edges reads "
            "files and lists of edges.",
            graph=kind,
        )

    @classmethod
    def read(cls, source: Any) -> "EdgeList":
        """Read a CSV or Parquet file with columns source, target and perhaps weight and length, or pairs of nodes."""
        if isinstance(source, str | Path):
            return _from_file(Path(source))
        try:
            pairs = np.asarray(source)
        except ValueError:
            pairs = np.empty(0)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iuUO":
            raise PhysicsError(
                "from_edges takes the path of a CSV or Parquet file, or pairs of nodes, shape (edges, 2).",
                source=type(source).__name__,
            )
        names, ends = np.unique(pairs, return_inverse=True)
        return _merged(names.tolist(), ends.reshape(-1, 2), np.ones(len(pairs)), np.ones(len(pairs)))


def _merged(names: list[Any], ends: NDArray[Any], weights: FloatArray, lengths: FloatArray) -> EdgeList:
    """Drop self-loops and repeated rows; rows that repeat an edge with other values are refused."""
    ends = np.sort(ends.astype(np.int64), axis=1)
    kept = np.flatnonzero(ends[:, 0] != ends[:, 1])
    keys = ends[kept, 0] * len(names) + ends[kept, 1]
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    chosen = kept[first]
    for values, what in ((weights, "weight"), (lengths, "length")):
        other = np.flatnonzero(values[kept] != values[chosen][number])
        other = other[~np.isnan(values[kept[other]])]  # refused as a weight or length, with its own message
        if len(other):
            row = kept[other[0]]
            u, v = (names[k] for k in ends[row])
            raise PhysicsError(
                f"edge {u!r}-{v!r} occurs twice with {what} {values[chosen[number[other[0]]]]:g} and "
                f"{values[row]:g}: give each edge once, or with the same values.",
                edge=f"{u!r}-{v!r}",
            )
    numbered = names == list(range(len(names)))
    return EdgeList(len(names), ends[chosen], weights[chosen], lengths[chosen], None if numbered else tuple(names))


def _from_networkx(graph: Any) -> EdgeList:
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
    return EdgeList(len(labels), pairs, weights, lengths, labels)


def _from_igraph(graph: Any) -> EdgeList:
    pairs = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    if graph.is_directed() or graph.has_multiple():
        raise PhysicsError("the graph is directed or has parallel edges: give an undirected simple graph.", graph=graph)
    n = int(graph.vcount())
    if n == 0:
        raise PhysicsError("the graph has no nodes: give at least one.", nodes=0)
    held = graph.es.attributes()
    try:
        weights, lengths = (
            np.array(graph.es[name], dtype=np.float64) if name in held else np.ones(len(pairs))
            for name in ("weight", "length")
        )
    except (TypeError, ValueError):
        raise PhysicsError("an edge has a weight or length that is not a number.", edges=len(pairs)) from None
    kept = pairs[:, 0] != pairs[:, 1]
    labels = tuple(graph.vs["name"]) if "name" in graph.vs.attributes() else None
    return EdgeList(n, pairs[kept], weights[kept], lengths[kept], labels)


def _from_adjacency(adjacency: sparse.coo_array, lengths: Any) -> EdgeList:
    rows, columns = adjacency.shape
    if rows != columns or rows == 0:
        raise PhysicsError(f"adjacency has shape {rows} x {columns}: give a square one.", shape=(rows, columns))
    difference = abs(adjacency - adjacency.T)
    if difference.nnz and difference.max() > 0:
        raise PhysicsError("the adjacency matrix is not symmetric: the graph must be undirected.", graph=adjacency)
    upper = sparse.triu(adjacency, k=1).tocsr().tocoo()  # sums duplicate entries
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    distances = np.ones(len(pairs))
    if lengths is not None:
        table = sparse.csr_array(lengths)
        distances = np.asarray(table[pairs[:, 0], pairs[:, 1]], dtype=np.float64).ravel()
    return EdgeList(rows, pairs, np.asarray(upper.data, dtype=np.float64), distances, None)


def _from_file(path: Path) -> EdgeList:
    import pyarrow as pa  # noqa: PLC0415 - slow to load, and only files need it

    try:
        batches = [_columns(path, batch) for batch in _batches(path)]
    except FileNotFoundError:
        raise PhysicsError(f"{path} does not exist.", source=str(path)) from None
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as broken:
        reason = str(broken).splitlines()[0]
        raise PhysicsError(f"{path} cannot be read as a list of edges: {reason}", source=str(path)) from None
    if not sum(len(batch["source"]) for batch in batches):
        raise PhysicsError(f"{path} has no edges.", source=str(path))
    columns = [batch[end] for end in ("source", "target") for batch in batches]
    if any(column.null_count or pa.types.is_null(column.type) for column in columns):
        raise PhysicsError(f"{path} has an edge without a source or target.", source=str(path))
    if len({column.type for column in columns}) > 1:
        columns = [column.cast(pa.string()) for column in columns]
    ends = pa.chunked_array(columns)
    encoded = ends.combine_chunks().dictionary_encode()
    names, numbers = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(names.to_numpy(zero_copy_only=False), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    weights, lengths = (np.concatenate([batch[name] for batch in batches]) for name in ("weight", "length"))
    return _merged(names.take(order).to_pylist(), rank[numbers].reshape(2, -1).T, weights, lengths)


def _batches(path: Path) -> Iterator[Any]:
    """The rows of a file, a few megabytes at a time."""
    import pyarrow.csv  # noqa: PLC0415 - slow to load, and only files need it
    import pyarrow.parquet  # noqa: PLC0415

    if path.suffix == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from file.iter_batches()
        return
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            raise PhysicsError(f"{path} is empty: give one edge a line, below the column names.", source=str(path))
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            raise PhysicsError(
                f"{path} ends in the middle of a line: its last edge may be cut short. Copy the file again; if it is "
                "complete, end it with a line break.",
                source=str(path),
            )
    with pyarrow.csv.open_csv(path) as reader:
        yield from reader


def _columns(path: Path, batch: Any) -> dict[str, Any]:
    missing = {"source", "target"} - set(batch.schema.names)
    if missing:
        raise PhysicsError(
            f"{path} has the columns {', '.join(batch.schema.names)}: name those of the two nodes source and target, "
            "and perhaps others weight and length.",
            columns=tuple(batch.schema.names),
        )
    columns = {name: batch.column(name) for name in ("source", "target")}
    for name in ("weight", "length"):
        columns[name] = np.ones(batch.num_rows)
        if name in batch.schema.names:
            try:
                columns[name] = np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
            except (TypeError, ValueError):
                raise PhysicsError(f"{path} has a {name} that is not a number.", source=str(path)) from None
    return columns
