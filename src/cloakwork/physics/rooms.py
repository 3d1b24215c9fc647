"""The geometry of a floor plan: square cells, walls between them, and doors in the walls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cloakwork._checks import FloatArray, IntArray, positive, read_only
from cloakwork.errors import PhysicsError
from cloakwork.physics.space import Metric, Space

MAX_CELLS = 1_000_000
Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Rooms:
    """The cells of one floor, from `from_text` or `from_walls`.

    x grows to the right and y upwards, in metres from the bottom left corner of the drawing. `grid` holds the number of
    the cell at each (row, column), rows from the bottom, -1 without floor; `cell` is the side of a cell in metres.
    `pairs` (p, 2) are neighbouring cells without a wall between them, and `door` (p,) their door, -1 for none.
    """

    grid: IntArray
    cell: float
    pairs: IntArray
    door: IntArray

    @classmethod
    def from_text(cls, drawing: str, *, cell: float) -> "Rooms":
        """Read a drawing with one character per cell.

        `#` is wall, `.` floor, `+` a door (floor that may be shut) and a blank outside.

        >>> rooms = Rooms.from_text('''
        ... #########
        ... #...#...#
        ... #...+...#
        ... #...#...#
        ... #########
        ... ''', cell=0.5)
        >>> len(rooms.space), rooms.doors
        (19, 1)
        """
        marks = _characters(drawing)
        floor = (marks == ".") | (marks == "+")
        if not floor.any():
            raise PhysicsError("the drawing has no floor: draw at least one '.'.", drawing=drawing)
        grid = np.full(marks.shape, -1, dtype=np.int64)
        grid[floor] = np.arange(int(floor.sum()))
        door_of_cell = (ndimage.label(marks == "+")[0] - 1)[floor]
        pairs = _neighbours(grid)
        door = np.maximum(door_of_cell[pairs[:, 0]], door_of_cell[pairs[:, 1]]).astype(np.int64)
        return _connected(cls(grid, cell, pairs, door))

    @classmethod
    def from_walls(
        cls, size: tuple[float, float], *, cell: float, walls: Iterable[Segment] = (), doors: Iterable[Segment] = ()
    ) -> "Rooms":
        """Make a rectangle of floor with walls; a door is an opening in a wall.

        `size` and the ends of the segments are in metres.

        >>> rooms = Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 1), (2, 2))])
        >>> len(rooms.space), rooms.doors
        (48, 1)
        """
        positive("cell", cell, error=PhysicsError)
        columns, rows = (_whole(positive("size", side, error=PhysicsError), cell) for side in size)
        _check_size(columns, rows)
        grid = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
        pairs = _neighbours(grid)
        numbers, upwards = np.arange(len(pairs)), rows * (columns - 1)
        steps = (numbers[:upwards].reshape(rows, columns - 1), numbers[upwards:].reshape(rows - 1, columns))
        ends = _centres(grid, cell)[pairs]
        cut = np.zeros(len(pairs), dtype=bool)
        for wall in walls:
            cut[_crossing(wall, steps, ends, cell)] = True
        door = np.full(len(pairs), -1, dtype=np.int64)
        for number, opening in enumerate(doors):
            through = _crossing(opening, steps, ends, cell)
            if not cut[through].any():
                raise PhysicsError(f"door {number} at {opening!r} is in no wall. Give two points of one.", key="doors")
            door[through] = number
        open_pairs = ~cut | (door >= 0)
        door[~cut] = -1
        return _connected(cls(grid, cell, pairs[open_pairs], door[open_pairs]))

    def __post_init__(self) -> None:
        positive("cell", self.cell, error=PhysicsError)
        for name in ("grid", "pairs", "door"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name))))

    def __repr__(self) -> str:
        width, height = self.size
        return f"Rooms({width:g} m x {height:g} m, {len(self.space)} cells of {self.cell:g} m, {self.doors} doors)"

    @property
    def doors(self) -> int:
        return int(self.door.max(initial=-1)) + 1

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing, in metres."""
        rows, columns = self.grid.shape
        return columns * self.cell, rows * self.cell

    @cached_property
    def space(self) -> Space:
        """Cells as places; distance is walking distance from cell to cell."""
        lengths = np.full(len(self.pairs), self.cell)
        return Space(_centres(self.grid, self.cell), self.pairs, lengths, Metric.PATH)

    @cached_property
    def grid_positions(self) -> IntArray:
        """Row and column of each cell in `grid`, shape (n, 2)."""
        positions = np.argwhere(self.grid >= 0)
        return read_only(positions[np.argsort(self.grid[self.grid >= 0])])

    def shut(self, doors: Sequence[int]) -> "Rooms":
        """The same rooms with some doors shut; cells that become unreachable stay places."""
        open_pairs = ~np.isin(self.door, doors)
        return replace(self, pairs=self.pairs[open_pairs], door=self.door[open_pairs])

    def cell_at(self, x: float, y: float) -> int:
        """The cell of a point on the floor."""
        rows, columns = self.grid.shape
        column, row = (min(int(v // self.cell), k - 1) if v >= 0 else -1 for v, k in ((x, columns), (y, rows)))
        inside = 0 <= x <= columns * self.cell and 0 <= y <= rows * self.cell
        if not inside or self.grid[row, column] < 0:
            raise PhysicsError(
                f"({x:g}, {y:g}) is not on the floor: it lies in a wall or outside the "
                f"{self.size[0]:g} m x {self.size[1]:g} m plan (y grows upwards).",
                at=(x, y),
            )
        return int(self.grid[row, column])

    def shares(self, x: float, y: float) -> list[tuple[int, float]]:
        """The cells that a person at a point of the floor covers, each with its share; the shares add up to 1.

        A person as wide as a cell covers up to four, none of them behind a wall. Warmth then changes by little with
        each small step, as the claim assumes, where a jump from cell to cell would tell a step of 2 cm from none.
        """
        own = self.cell_at(x, y)
        row, column = self.grid_positions[own].tolist()
        right, up = x / self.cell - 0.5 - column, y / self.cell - 0.5 - row

        def beside(start: int, across: int, along: int) -> int:
            """The cell so far from the person's own if no wall is between it and `start`, else `start`."""
            if not (0 <= row + along < self.grid.shape[0] and 0 <= column + across < self.grid.shape[1]):
                return start
            cell = int(self.grid[row + along, column + across])
            return cell if (start, cell) in self._linked else start

        side, ahead = (1 if right > 0 else -1), (1 if up > 0 else -1)
        sideways, forward = beside(own, side, 0), beside(own, 0, ahead)
        corner = forward if sideways == own else beside(sideways, side, ahead)
        return [
            (own, (1 - abs(right)) * (1 - abs(up))),
            (sideways, abs(right) * (1 - abs(up))),
            (forward, (1 - abs(right)) * abs(up)),
            (corner, abs(right) * abs(up)),
        ]

    @cached_property
    def _linked(self) -> frozenset[tuple[int, int]]:
        return frozenset((a, b) for pair in self.pairs.tolist() for a, b in (pair, pair[::-1]))


def _connected(rooms: Rooms) -> Rooms:
    rooms.space.refuse_parts("floor", "Draw a door, or make one site for each.")
    return rooms


def _characters(drawing: str) -> NDArray[np.str_]:
    lines = [line.rstrip() for line in drawing.strip("\r\n").splitlines()]
    if not any(lines):
        raise PhysicsError("the drawing is empty: draw one character per cell.", drawing=drawing)
    width = max(len(line) for line in lines)
    _check_size(width, len(lines))
    for number, line in enumerate(lines, start=1):
        for column, mark in enumerate(line, start=1):
            if mark not in "#.+ ":
                raise PhysicsError(
                    f"drawing, line {number}, column {column}: {mark!r} is unknown. Use '#' for wall, "
                    "'.' for floor, '+' for a door and a blank for outside.",
                    line=number,
                    column=column,
                )
    return np.array([list(line.ljust(width)) for line in reversed(lines)])


def _check_size(columns: int, rows: int) -> None:
    cells = columns * rows
    if cells > MAX_CELLS:
        raise PhysicsError(f"{columns} x {rows} cells: use at most {MAX_CELLS:,} larger ones.", cells=cells)


def _neighbours(grid: IntArray) -> IntArray:
    sideways = np.stack([grid[:, :-1].ravel(), grid[:, 1:].ravel()], axis=1)
    upwards = np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1)
    pairs = np.concatenate([sideways, upwards])
    return np.asarray(pairs[(pairs >= 0).all(axis=1)])


def _centres(grid: IntArray, cell: float) -> FloatArray:
    rows, columns = np.nonzero(grid >= 0)
    order = np.argsort(grid[rows, columns])
    return np.asarray((np.stack([columns, rows], axis=1)[order] + 0.5) * cell, dtype=np.float64)


def _whole(side: float, cell: float) -> int:
    cells = round(side / cell)
    if cells < 1 or abs(cells * cell - side) > 1e-6 * side:
        raise PhysicsError(f"a side of {side:g} m is not a whole number of cells of {cell:g} m.", side=side, cell=cell)
    return cells


def _crossing(segment: Segment, steps: Sequence[IntArray], ends: FloatArray, cell: float) -> IntArray:
    """The numbers of the steps between neighbouring cells that cross a segment, of which only those near it are tried.

    `steps` are the numbers of those sideways and upwards, by row and column, and `ends` (p, 2, 2) where each leads.
    """
    try:
        wall = np.array(segment, dtype=np.float64)
    except (TypeError, ValueError):
        wall = np.empty(0)
    if wall.shape != (2, 2) or not np.isfinite(wall).all():
        raise PhysicsError(f"{segment!r} is not a wall: give ((x, y), (x, y)) in metres.", wall=segment)
    corners = np.floor(wall.min(axis=0) / cell) - 2, np.ceil(wall.max(axis=0) / cell) + 2
    (left, bottom), (right, top) = np.clip(corners, 0, MAX_CELLS).astype(np.int64)
    near = np.concatenate([part[bottom:top, left:right].ravel() for part in steps])
    return np.asarray(near[_crosses(ends[near, 0], ends[near, 1], *wall)])


def _crosses(start: FloatArray, end: FloatArray, a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Whether each line from `start` to `end` crosses the one from a to b."""

    def side(p: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        u, v = q - p, r - p
        return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    touches = side(start, end, a) * side(start, end, b) <= 1e-12
    # a centre on the wall counts as one side of it, so the wall cuts exactly once there too
    return np.asarray(touches & ((side(a, b, start) >= -1e-12) != (side(a, b, end) >= -1e-12)))
