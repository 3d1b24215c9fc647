"""How fast readings change as a source moves: the one question that privacy asks of a physics."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics.space import Space

CHUNK = 2_000_000  # numbers in memory at once while moves are compared
MAX_KEPT = 10_000_000  # numbers in memory for slopes within regions
DISTANCES = np.geomspace(1 / 8, 512, 49)  # of two paths, in ways that a source travels, at which bounds are evaluated
OUTWARD = 1 + 1e-12


@dataclass(frozen=True)
class Slope:
    """The steepest change of the readings per unit of distance that a unit source moves, rounded up.

    `pair` holds the two places between which it occurs, or the two nearest ones if sources may be anywhere.
    """

    value: float
    pair: tuple[int, int]


class Moves(Protocol):
    """The ways in which a unit source can move, as slopes: one row per move, one column per sensor."""

    @property
    def each(self) -> FloatArray:
        """The steepest change of each sensor's own reading, shape (m,), rounded up."""

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        """Return the largest norm ||w D_e|| over all moves e, rounded up; w (m,) are 1 by default."""

    def rows(self) -> Iterator[Any]:
        """Yield the slopes in pieces of shape (moves, m), dense or sparse, not rounded up."""


class Steps(Moves, Protocol):
    """Moves from one place to a neighbour."""

    def norms(self, weights: FloatArray | None = None) -> FloatArray:
        """Return the norm ||w D_e|| of each move, shape (moves,), not rounded."""


@dataclass(frozen=True, eq=False)
class RowMoves:
    """Moves that can be listed.

    Parameters
    ----------
    pieces, sensors
        Makes the slopes, in pieces of shape (moves, m), dense or sparse; and m.
    each_error, row_error
        Bounds on the error of one entry, and on the l2 norm of another error of one row; both count.
    together
        Bound on the l2 norm of all errors of one row, where that is sharper.
    pairs
        The two places of each move, shape (moves, 2), if it is a step between neighbours.
    alone
        The steepest slope of each sensor's own reading (m,), where it is known better than from the rows.
    size
        Numbers in memory as long as these moves are kept.
    """

    pieces: Callable[[], Iterator[Any]]
    sensors: int
    each_error: float = 0.0
    row_error: float = 0.0
    together: float = math.inf
    pairs: IntArray | None = None
    alone: FloatArray | None = None
    size: int = 0

    @classmethod
    def of(cls, table: Any, **known: Any) -> "RowMoves":
        """Moves from a table of slopes (moves, m), dense or sparse."""
        return cls(partial(iter, (table,)), table.shape[1], size=table.size, **known)

    @classmethod
    def between_neighbours(cls, matrix: FloatArray, space: Space, error: float) -> "RowMoves":
        """The steps between neighbours; `error` bounds the l2 norm of the error of M_i - M_j."""
        return cls(
            partial(_neighbour_steps, matrix, space), len(matrix), row_error=error / shortest(space), pairs=space.pairs
        )

    @cached_property
    def each(self) -> FloatArray:
        if self.alone is not None:
            return self.alone
        slopes = np.max([largest_of_each(abs(piece)) for piece in self.rows()], axis=0)
        return np.asarray((slopes + self.each_error + self.row_error) * OUTWARD)

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        norms, factors = self.norms(weights), np.ones(self.sensors) if weights is None else weights
        norm, top = float(np.linalg.norm(factors)), float(factors.max(initial=0.0))
        slack = min(self.each_error * norm + self.row_error * top, self.together * top)
        best = int(np.argmax(norms)) if len(norms) else 0
        pair = (0, 0) if self.pairs is None or not len(self.pairs) else self.pairs[best]
        return Slope(float((norms.max(initial=0.0) + slack) * OUTWARD), (int(pair[0]), int(pair[1])))

    def norms(self, weights: FloatArray | None = None) -> FloatArray:
        """The norm ||w D_e|| of each move, shape (moves,), not rounded."""
        squares = np.ones(self.sensors) if weights is None else weights**2
        return np.asarray(np.sqrt(np.concatenate([(piece * piece) @ squares for piece in self.rows()])))

    def rows(self) -> Iterator[Any]:
        return self.pieces()


@dataclass(frozen=True, eq=False)
class TravellingMoves:
    """Moves of sources that travel while a frame is measured, in a space where shortest paths may jump.

    `still` are the moves at one instant. `regions(diameter)` takes each sensor at its steepest within a region, such
    that any set of positions of this diameter lies within one. `stretch` is how much longer than a straight line a
    shortest path can be. `kept` has regions, perhaps of other moves too, as far as memory allows.

    Notes
    -----
    Let sources travel at most l while a frame is measured, and S(r) be the steepest slope over `regions(r)`. Neighbours
    are pairs of paths with weights w_k and distances D_k, sum w_k D_k <= alpha, so a bound on shift / D for one pair of
    unit weight at any distance D suffices. The points at the same share of the way from one path to the other lie
    within a region of diameter l + 2 D min(share, 1 - share). So the mean of S over the share is a bound that grows
    with D. The slope at one instant, plus what both paths add before and after it, S(l) l/D, is one that falls with D.
    For any D', the larger of the two at D' therefore holds for all D; the least over some D' counts.
    """

    still: Moves
    regions: Callable[[float], RowMoves]
    travel: float
    stretch: float
    kept: dict[tuple[int, float], RowMoves] = field(default_factory=dict)

    @property
    def each(self) -> FloatArray:
        return self.still.each

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        norms: dict[int, tuple[RowMoves, float]] = {}  # many diameters have the same regions

        def within(diameter: float) -> float:
            moves = self._within(diameter)
            if id(moves) not in norms:
                norms[id(moves)] = moves, moves.steepest(weights).value
            return norms[id(moves)][1]

        at_once = self.still.steepest(weights)
        later = self.stretch * self.travel * within(self.travel)
        least, area, before = math.inf, 0.0, 0.0
        for apart in (self.travel * DISTANCES).tolist():  # two paths
            area += (apart - before) * within(self.travel + apart)
            on_the_way, from_one_instant = area / apart, at_once.value + later / apart
            least = min(least, max(on_the_way, from_one_instant))
            if on_the_way >= from_one_instant:
                break
            before = apart
        return Slope(least * OUTWARD, at_once.pair)

    def rows(self) -> Iterator[Any]:
        return self._within(2 * self.travel).rows()  # which come closest to `steepest`

    def _within(self, diameter: float) -> RowMoves:
        key = (id(self.still), diameter)
        if key in self.kept:
            return self.kept[key]
        moves = self.regions(diameter)
        held = {id(each): each.size for each in (*self.kept.values(), moves)}
        if sum(held.values()) <= MAX_KEPT:
            self.kept[key] = moves
        return moves


def _neighbour_steps(matrix: FloatArray, space: Space) -> Iterator[FloatArray]:
    for which in pieces_of(len(space.pairs), len(matrix)):
        i, j = space.pairs[which].T
        yield ((matrix[:, i] - matrix[:, j]) / space.lengths[which]).T


def pieces_of(rows: int, width: int, most: int | None = None) -> Iterator[slice]:
    """Cut rows into pieces of at most so many numbers in memory, usually `CHUNK`."""
    step = max(1, (most or CHUNK) // max(1, width))
    return (slice(start, start + step) for start in range(0, max(1, rows), step))


def shortest(space: Space) -> float:
    """The least distance between neighbours."""
    return float(space.lengths.min(initial=math.inf))


def largest_of_each(rows: Any) -> FloatArray:
    """The largest of each column of numbers from 0 up, dense or sparse; 0 without rows."""
    if not rows.shape[0]:
        return np.zeros(rows.shape[1])
    largest = rows.max(axis=0)
    return np.asarray(largest if isinstance(largest, np.ndarray) else largest.toarray()).ravel()
