"""Edges of a network from files, arrays and the graphs of other libraries."""

import csv
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork._extras import optional_parts
from cloakwork.errors import PhysicsError

EDGE_COLUMNS = ("source", "target", "weight", "length")
_ALIASES = {"from": "source", "to": "target"}
_WHOLE = "^(0|-?[1-9][0-9]{0,17})$"


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
    def of(cls, graph: Any) -> "EdgeList":
        """Read a NetworkX graph or a symmetric adjacency matrix."""
        networkx = sys.modules.get("networkx")  # slow to load; whoever has one of its graphs has loaded it
        if isinstance(graph, EdgeList):
            return graph
        if networkx is not None and isinstance(graph, networkx.Graph):
            return _from_networkx(graph)
        if sparse.issparse(graph) or isinstance(graph, np.ndarray):
            matrix: Any = graph
            return _from_adjacency(sparse.coo_array(matrix))
        kind = type(graph).__name__
        raise PhysicsError(
            f"graph is a {kind}: give a NetworkX graph or a sparse adjacency matrix. Graph.from_edges reads "
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
    """Read the edges of a graph, without self-loops."""
    if graph.is_directed() or graph.is_multigraph():
        raise PhysicsError("the graph is directed or has parallel edges: give an undirected simple graph.", graph=graph)
    labels = tuple(graph.nodes)
    if not labels:
        raise PhysicsError("the graph has no nodes: give at least one.", nodes=0)
    number = {label: k for k, label in enumerate(labels)}
    edges = [(u, v, data) for u, v, data in graph.edges(data=True) if u != v]
    pairs = np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2)
    try:
        weights, lengths = (
            np.array([data.get(name, 1.0) for *_, data in edges], dtype=np.float64) for name in EDGE_COLUMNS[2:]
        )
    except (TypeError, ValueError):
        raise PhysicsError("an edge has a weight or length that is not a number.", edges=len(pairs)) from None
    return EdgeList(len(labels), pairs, weights, lengths, labels)


def _from_adjacency(adjacency: sparse.coo_array) -> EdgeList:
    rows, columns = adjacency.shape
    if rows != columns or rows == 0:
        raise PhysicsError(f"adjacency has shape {rows} x {columns}: give a square one.", shape=(rows, columns))
    difference = abs(adjacency - adjacency.T)
    if difference.nnz and difference.max() > 0:
        raise PhysicsError("the adjacency matrix is not symmetric: the graph must be undirected.", graph=adjacency)
    upper = sparse.triu(adjacency, k=1).tocsr().tocoo()  # sums duplicate entries
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    return EdgeList(rows, pairs, np.asarray(upper.data, dtype=np.float64), np.ones(len(pairs)), None)


def edge_columns(cells: Sequence[str]) -> list[str] | None:
    """Names of the columns if this first row of a table of edges is a header; None if it is an edge itself."""
    names = [_ALIASES.get(cell.lower(), cell.lower()) for cell in cells]
    if {"source", "target"} <= set(names):
        return names
    if 2 <= len(cells) <= len(EDGE_COLUMNS) and all(map(_is_number, cells[2:])):
        return None
    raise PhysicsError(
        f"the columns of the edges are {', '.join(cells)}: name those of the two nodes source and target, and perhaps "
        "others weight and length. Without names, they are source, target, weight and length.",
        columns=tuple(cells),
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_file(path: Path) -> EdgeList:
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - slow to load, and only files need it

    try:
        parquet = _is_parquet(path)
        table = (_parquet_table if parquet else _csv_table)(path)
        if not len(table):
            raise PhysicsError(f"{path} has no edges.", source=str(path))
        names, ends = _numbered([table["source"], table["target"]], typed=parquet)
        weights, lengths = (
            np.array(table[name].cast(pa.float64())) if name in table.column_names else np.ones(len(table))
            for name in EDGE_COLUMNS[2:]
        )
    except FileNotFoundError:
        raise PhysicsError(f"{path} does not exist.", source=str(path)) from None
    except (pa.ArrowException, OSError) as broken:
        reason = str(broken).splitlines()[0]
        raise PhysicsError(f"{path} cannot be read as a list of edges: {reason}", source=str(path)) from None
    if None in names or "" in names:
        raise PhysicsError(f"{path} has an edge without a source or target.", source=str(path))
    return _merged(names, ends, weights, lengths)


def _numbered(columns: list[Any], *, typed: bool) -> tuple[list[Any], IntArray]:
    """The names of all nodes in order, and the numbers of the ends of each edge, shape (edges, 2)."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute as pc  # noqa: PLC0415

    columns = [pc.dictionary_decode(one) if pa.types.is_dictionary(one.type) else one for one in columns]
    numeric = all(pa.types.is_integer(one.type) or pa.types.is_floating(one.type) for one in columns)
    columns = [one.cast(pa.int64()) if numeric else pc.utf8_trim_whitespace(one.cast(pa.string())) for one in columns]
    chunks = [chunk for one in columns for chunk in one.chunks]
    encoded = pa.chunked_array(chunks).combine_chunks().dictionary_encode("encode")
    names = encoded.dictionary
    if not typed and pc.all(pc.match_substring_regex(names, _WHOLE)).as_py():
        names = names.cast(pa.int64())
    order = pc.sort_indices(names).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    numbers = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return names.take(pa.array(order)).to_pylist(), numbers.reshape(2, -1).T


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix.lower() == ".parquet" or file.read(4) == b"PAR1"


def _parquet_table(path: Path) -> Any:
    import pyarrow.parquet  # noqa: PLC0415

    table = pyarrow.parquet.read_table(path)
    return table.rename_columns(edge_columns(table.column_names) or list(EDGE_COLUMNS[: table.num_columns]))


def _csv_table(path: Path) -> Any:
    """The columns of a CSV file. Nodes are texts, so that 007 and 7 stay two nodes."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute as pc  # noqa: PLC0415
    from pyarrow import csv as arrow_csv  # noqa: PLC0415

    skipped, first = _first_line(path)
    delimiter = next((mark for mark in "\t;," if mark in first), " ")
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    header = edge_columns(cells)
    names = list(EDGE_COLUMNS[: len(cells)]) if header is None else header
    types = dict(zip(EDGE_COLUMNS, (pa.string(), pa.string(), pa.float64(), pa.float64()), strict=True))
    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(skip_rows=skipped + (header is not None), column_names=names),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=[name for name in EDGE_COLUMNS if name in names]
        ),
    )
    return table.filter(pc.invert(pc.starts_with(table["source"], "#")))


def _first_line(path: Path) -> tuple[int, str]:
    """How many lines come before the first that is no comment, and that line."""
    with path.open("rb") as file:
        lines = (line.decode("utf-8-sig", "replace").strip() for line in file)
        found = next(((k, line) for k, line in enumerate(lines) if line and not line.startswith("#")), None)
        if found is None:
            raise PhysicsError(f"{path} has no edges.", source=str(path))
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            raise PhysicsError(
                f"{path} ends in the middle of a line: its last edge may be cut short. Copy the file again; if it is "
                "complete, end it with a line break.",
                source=str(path),
            )
    return found
