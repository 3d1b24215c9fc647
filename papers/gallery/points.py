"""Point sources anywhere on a line: the model that the mixture fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import Metric
from cloakwork.recovery import Problem, Solution, Status
from papers.experiment import Progress

FINE = 4  # candidates from one place to the next
STEP = 1e-5  # of the length of the line, for the slope of a column
PIECE = 200  # frames that are fitted at once


@dataclass(frozen=True, eq=False)
class Points:
    """Sets of point sources, one a frame and all of the same size: positions and weights, shape (frames, k)."""

    at: FloatArray
    weight: FloatArray

    @classmethod
    def none(cls, frames: int, room: int) -> "Points":
        """Empty sets with room for some sources, which have weight 0."""
        return cls(np.zeros((frames, room)), np.zeros((frames, room)))

    @classmethod
    def joined(cls, parts: "Sequence[Points]") -> "Points":
        """Concatenate sets."""
        return cls(np.concatenate([part.at for part in parts]), np.concatenate([part.weight for part in parts]))

    @property
    def number(self) -> int:
        """The number of sources in each set, k."""
        return int(self.at.shape[1])

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, frames: Any) -> "Points":
        return Points(self.at[frames], self.weight[frames])

    def padded(self, room: int) -> "Points":
        """The same sets in rows of `room`; added sources have weight 0."""
        wider = ((0, 0), (0, room - self.number))
        return Points(np.pad(self.at, wider), np.pad(self.weight, wider))

    def replaced(self, frames: Any, new: "Points") -> "Points":
        """Replace the sets of some frames."""
        at, weight = self.at.copy(), self.weight.copy()
        at[frames], weight[frames] = new.at, new.weight
        return Points(at, weight)

    def better(self, other: "Points", where: NDArray[np.bool_]) -> "Points":
        """Take `other` in the frames where it is better."""
        return self.replaced(where, other[where])

    def with_one_more(self, at: FloatArray, weight: FloatArray) -> "Points":
        """Add one source to each set."""
        return Points(np.column_stack([self.at, at]), np.column_stack([self.weight, weight]))


@dataclass(frozen=True, eq=False)
class PointModel:
    """Whitened readings of point sources on a line, in the basis of the range."""

    problem: Problem

    def __post_init__(self) -> None:
        space = self.problem.physics.space
        if space.metric is not Metric.LINE or len(space) < 2:
            raise self._refusal()
        self.columns(self.ends)

    def _refusal(self) -> InputError:
        name = type(self.problem.physics).__name__
        return InputError(
            f"{name}: this estimator moves sources along a line, off the places. "
            "Use it with HeatLine, or take PointSources.",
            physics=name,
        )

    @cached_property
    def ends(self) -> FloatArray:
        """The first and the last place; sources are between them."""
        along = self.problem.physics.space.places[:, 0]
        return np.array([along.min(), along.max()])

    @cached_property
    def candidates(self) -> FloatArray:
        """Positions at which a new source is tried, shape (c,)."""
        first, last = self.ends.tolist()
        return np.linspace(first, last, FINE * (self.problem.physics.places - 1) + 1)

    @cached_property
    def table(self) -> FloatArray:
        """Readings of a unit source at each candidate, shape (c, rank)."""
        return self.columns(self.candidates)

    def columns(self, at: FloatArray) -> FloatArray:
        """Readings of unit sources, shape (...) to (..., rank)."""
        problem = self.problem
        columns = problem.physics.columns_at(at.reshape(-1, 1))
        if columns is None:
            raise self._refusal()
        scaled = columns if problem.weights is None else columns * problem.weights[:, None]
        return np.asarray((scaled.T @ problem.range.basis / problem.noise).reshape(*at.shape, problem.range.rank))

    def slopes(self, at: FloatArray) -> FloatArray:
        """Change of the readings per unit of distance, shape (...) to (..., rank)."""
        step = STEP * float(np.ptp(self.ends))
        return np.asarray((self.columns(at + step) - self.columns(at - step)) / (2 * step))

    def data(self, readings: FloatArray) -> FloatArray:
        """Whitened readings in the basis of the range, shape (frames, rank)."""
        return self.problem.project(readings) / self.problem.noise

    def left(self, data: FloatArray, points: Points) -> FloatArray:
        """The residual of the sources, shape (frames, rank)."""
        return np.asarray(data - np.einsum("fk,fkr->fr", points.weight, self.columns(points.at)))

    def misfit(self, data: FloatArray, points: Points) -> FloatArray:
        """Squared misfit in units of the noise: twice the negative logarithm of the likelihood, shape (frames,)."""
        return np.asarray((self.left(data, points) ** 2).sum(axis=1))

    def on_places(self, points: Points) -> FloatArray:
        """Maps (frames, n): each weight is split between the two nearest places, which preserves its position."""
        along = self.problem.physics.space.places[:, 0]
        order = np.argsort(along)
        steps = np.interp(points.at, along[order], np.arange(len(along)))
        before = np.minimum(steps.astype(np.int64), max(len(along) - 2, 0))
        after = np.minimum(before + 1, len(along) - 1)
        maps = np.zeros((len(points), len(along)))
        frames = np.arange(len(points))[:, None]
        np.add.at(maps, (frames, order[before]), points.weight * (1 - (steps - before)))
        np.add.at(maps, (frames, order[after]), points.weight * (steps - before))
        return maps


def in_pieces(fit: Callable[[slice], Points], frames: int, progress: Progress | None) -> Points:
    """Fit frames piece by piece and report progress."""
    parts = []
    for start in range(0, frames, PIECE):
        end = min(start + PIECE, frames)
        parts.append(fit(slice(start, end)))
        if progress is not None:
            progress(end, frames)
    room = max((part.number for part in parts), default=0)
    return Points.joined([Points.none(0, room), *(part.padded(room) for part in parts)])


def answer(model: PointModel, data: FloatArray, points: Points) -> Solution:
    """Put sources back on the map.

    A local search proves nothing: the gap is the whole misfit, since the least possible misfit is at least 0.
    """
    noise = model.problem.noise
    misfit = noise * np.sqrt(model.misfit(data, points))
    maps = model.on_places(points)
    status = tuple(Status.STOPPED if found.any() else Status.EMPTY for found in maps)
    unbounded = np.full(len(data), np.nan)
    return Solution(maps, status, misfit, np.zeros(len(data)), unbounded)
