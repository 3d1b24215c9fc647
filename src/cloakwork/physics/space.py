"""The space of the sources: its places, which of them are neighbours, and how far apart they are."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from cloakwork._checks import FloatArray, IntArray, read_only
from cloakwork.errors import InputError, PhysicsError


class Metric(StrEnum):
    """How distance is measured."""

    LINE = "line"
    """Along a line."""
    PLANE = "plane"
    """In a straight line."""
    PATH = "path"
    """Along the shortest path from neighbour to neighbour, around walls."""


@dataclass(frozen=True, eq=False)
class Space:
    """Places, neighbours and a metric.

    `places` are coordinates (n, dimension), without columns for a graph; `pairs` (p, 2) are indices of neighbouring
    places and `lengths` (p,) the distances between them, above 0. With `Metric.PATH`, distance is the shortest path
    over `pairs`. `labels` are the names of the nodes of a graph.
    """

    places: FloatArray
    pairs: IntArray
    lengths: FloatArray
    metric: Metric
    labels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        places = np.array(self.places, dtype=np.float64)
        pairs = _whole_pairs(self.pairs)
        lengths = np.array(self.lengths, dtype=np.float64).reshape(-1)
        if places.ndim != 2 or len(places) == 0:
            raise PhysicsError(f"places has shape {places.shape}: give one row per place.", shape=places.shape)
        if len(lengths) != len(pairs):
            raise PhysicsError(f"{len(pairs)} pairs but {len(lengths)} lengths: give one per pair.", lengths=lengths)
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= len(places)):
            raise PhysicsError(f"a pair has an index outside 0..{len(places) - 1}.", pairs=(pairs.min(), pairs.max()))
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise PhysicsError("a pair has a length that is not a finite number above 0.", lengths=lengths)
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise PhysicsError("a pair joins a place to itself.", pairs=pairs)
        if self.metric is not Metric.PATH:
            _refuse_other_lengths(places, pairs, lengths)
        if self.metric is Metric.LINE:
            _refuse_gaps(places, pairs)
        if self.labels is not None and len(self.labels) != len(places):
            raise PhysicsError(f"{len(places)} places but {len(self.labels)} labels.", labels=len(self.labels))
        for name, array in (("places", places), ("pairs", pairs), ("lengths", lengths)):
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def line(cls, places: int | ArrayLike, *, length: float = 1.0) -> "Space":
        """Places on a line, each a neighbour of the next one: at these points, or at `length` i/n for n places.

        >>> Space.line([0.0, 2.0, 0.5]).lengths.tolist()
        [0.5, 1.5]
        """
        n = int(places) if isinstance(places, int | np.integer) else 0
        at = length * np.arange(1, n + 1) / n if n else np.asarray(places, dtype=np.float64).reshape(-1)
        order = np.argsort(at, kind="stable")
        pairs = np.stack([order[:-1], order[1:]], axis=1)
        return cls(at[:, None], pairs, np.full(n - 1, length / n) if n else np.diff(at[order]), Metric.LINE)

    @classmethod
    def plane(cls, places: ArrayLike) -> "Space":
        """Places at (x, y), shape (n, 2), with distance in a straight line: all pairs of places are neighbours."""
        at = np.asarray(places, dtype=np.float64)
        i, j = np.triu_indices(len(at), 1)
        return cls(at, np.stack([i, j], axis=1), np.sqrt(((at[i] - at[j]) ** 2).sum(axis=1)), Metric.PLANE)

    @classmethod
    def path(cls, pairs: ArrayLike, lengths: ArrayLike | None = None, *, places: int | None = None) -> "Space":
        """Places without coordinates, defined by their neighbour pairs; `lengths` are 1 by default."""
        array = _whole_pairs(pairs)
        n = int(places if places is not None else array.max(initial=0) + 1)
        distances = np.ones(len(array)) if lengths is None else np.asarray(lengths, dtype=np.float64)
        return cls(np.empty((n, 0)), array, distances, Metric.PATH)

    def __len__(self) -> int:
        return int(self.places.shape[0])

    def __repr__(self) -> str:
        return f"Space({len(self)} places, {len(self.pairs)} pairs, {self.metric})"

    @property
    def dimension(self) -> int:
        """Number of coordinates of a place; 1 for a graph without a layout."""
        return max(1, int(self.places.shape[1]))

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Symmetric sparse matrix of the lengths between neighbours; the shorter one if a pair occurs twice."""
        n = len(self)
        pairs = np.sort(self.pairs, axis=1)
        shortest_first = np.lexsort((self.lengths, pairs[:, 1], pairs[:, 0]))
        _, first = np.unique(pairs[shortest_first] @ np.array([n, 1]), return_index=True)
        kept = shortest_first[first]
        i, j = pairs[kept].T
        half = sparse.coo_array((self.lengths[kept], (i, j)), shape=(n, n)).tocsr()
        return half.maximum(half.T).tocsr()

    def components(self) -> IntArray:
        """The number of the connected part of each place, shape (n,)."""
        return np.asarray(csgraph.connected_components(self.adjacency, directed=False)[1], dtype=np.int64)

    def refuse_parts(self, what: str, remedy: str) -> None:
        """Refuse a space of which some places have no path to others."""
        parts = self.components()
        if parts.max() > 0:
            one, other = (self.name(int(np.argmax(parts == part))) for part in range(2))
            raise PhysicsError(
                f"the {what} has {parts.max() + 1} unconnected parts, such as those of ({one}) and ({other}): the "
                f"distance between them is undefined. {remedy}",
                places=[one, other],
            )

    def distances(self, place: int) -> FloatArray:
        """Distances from one place to all, shape (n,); infinite if no path exists."""
        if self.metric is Metric.PATH:
            distances = csgraph.dijkstra(self.adjacency, directed=False, indices=[place])[0]
            return np.asarray(distances, dtype=np.float64)
        offsets = self.places - self.places[place]
        return np.asarray(np.sqrt((offsets**2).sum(axis=1)), dtype=np.float64)

    @cached_property
    def distance_table(self) -> NDArray[np.float32]:
        """Distances between all places, shape (n, n); infinite if no path exists. 100 MB for 5,000 places."""
        if self.metric is Metric.PATH:
            table = csgraph.dijkstra(self.adjacency, directed=False)
        else:
            table = np.stack([self.distances(place) for place in range(len(self))])
        return np.asarray(table, dtype=np.float32)

    def indices(self, at: Sequence[object]) -> IntArray:
        """The places nearest to the given positions, or with the given labels, shape (len(at),)."""
        if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray):
            raise InputError(f"at={at!r}: give a list of positions, such as [{at!r}].", at=at)
        return np.array([self.index(position) for position in at], dtype=np.int64)

    def index(self, at: object) -> int:
        """The place nearest to a position, or with a label.

        >>> Space.line(100).index(0.24)
        23
        """
        if self.labels is not None:
            if at in self.labels:
                return self.labels.index(at)
            raise PhysicsError(f"{at!r} is not a node: the nodes are {_few(self.labels)}.", at=at)
        if self.places.shape[1] == 0:
            return self._numbered(at)
        return self._nearest(at)

    def _numbered(self, at: object) -> int:
        if isinstance(at, int | np.integer) and 0 <= at < len(self):
            return int(at)
        raise PhysicsError(f"{at!r} is not a place: give a number from 0 to {len(self) - 1}.", at=at)

    def _nearest(self, at: object) -> int:
        try:
            position = np.atleast_1d(np.asarray(at, dtype=np.float64))
        except (TypeError, ValueError):
            position = np.empty(0)
        if position.shape != (self.dimension,) or not np.isfinite(position).all():
            form = "one number" if self.dimension == 1 else "(x, y)"
            raise InputError(f"at={at!r}: give {form}.", at=at)
        squared = ((self.places - position) ** 2).sum(axis=1)
        place = int(np.argmin(squared))
        reach = self.lengths.max(initial=0.0)
        if squared[place] > self.dimension * reach**2 * (1 + 1e-9):
            low, high = self.places.min(axis=0).round(3), self.places.max(axis=0).round(3)
            raise PhysicsError(
                f"at={at!r} is outside the space: the nearest place is {np.sqrt(squared[place]):.3g} away. "
                f"Places range from {low.tolist()} to {high.tolist()}.",
                at=at,
            )
        return place

    def name(self, place: int) -> str:
        """A short text for a place: its label, its coordinates or its number."""
        if self.labels is not None:
            return str(self.labels[place])
        if self.places.shape[1] == 0:
            return str(place)
        return ", ".join(f"{value:.4g}" for value in self.places[place])


def _whole_pairs(values: ArrayLike) -> IntArray:
    pairs = np.asarray(values, dtype=np.float64).reshape(-1, 2)
    if not (pairs == np.rint(pairs)).all():
        raise PhysicsError("a pair has an index that is not a whole number.", pairs=values)
    return pairs.astype(np.int64)


def _refuse_other_lengths(places: FloatArray, pairs: IntArray, lengths: FloatArray) -> None:
    """On a line or plane, lengths follow from the places; a longer one would hide a slope."""
    apart = np.sqrt(((places[pairs[:, 0]] - places[pairs[:, 1]]) ** 2).sum(axis=1))
    wrong = np.flatnonzero(np.abs(lengths - apart) > 1e-9 * np.maximum(apart, lengths))
    if len(wrong):
        i, j = pairs[wrong[0]]
        raise PhysicsError(
            f"places {i} and {j} are {apart[wrong[0]]:g} apart but have length {lengths[wrong[0]]:g}: on a line or "
            "plane, lengths follow from the places. Use Metric.PATH for other lengths.",
            pair=(int(i), int(j)),
        )


def _refuse_gaps(places: FloatArray, pairs: IntArray) -> None:
    """Consecutive places on a line must be neighbours, or a move between them would be missed."""
    order = np.argsort(places[:, 0], kind="stable")
    joined = {(min(i, j), max(i, j)) for i, j in pairs.tolist()}
    for i, j in pairwise(order.tolist()):
        if (min(i, j), max(i, j)) not in joined:
            raise PhysicsError(f"places {i} and {j} are consecutive on the line but not neighbours.", pair=(i, j))


def _few(labels: Sequence[object]) -> str:
    shown = ", ".join(repr(label) for label in labels[:8])
    return shown + (f", ... ({len(labels)} in all)" if len(labels) > 8 else "")
