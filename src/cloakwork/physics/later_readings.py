"""A pulse that is read at the model's time and at any later time: the steepest slopes over all of them, certified."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from cloakwork._checks import FloatArray
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.moves import OUTWARD, Slope, shortest

if TYPE_CHECKING:
    from cloakwork.physics.base import Physics

EXCESS = 1e-3  # by which a certified slope may exceed the steepest that was evaluated
NEGLIGIBLE = 1e-9  # of the largest possible slope: an excess this small is accepted as well
MAX_KEPT = 10_000_000  # numbers in memory for the matrices of later times


@dataclass(frozen=True, eq=False)
class SlopeBounds:
    """Bounds on the slopes of each sensor from the model's diffusion time tau on, each of shape (m,).

    `height` bounds the slopes, and `bend` tau^2 times their second derivatives by the time.
    """

    height: FloatArray
    bend: FloatArray

    @classmethod
    def of_diffusion(cls, model: "Physics", L: sparse.csr_array, tau: float, position: float) -> "SlopeBounds":
        """Bounds for the diffusion over a graph, with sensors within `position` of theirs.

        Notes
        -----
        A row of the matrix is r exp(-tau L) and its second derivative r exp(-tau L) L^2. Later ones are these times
        exp(-s L), whose columns are probabilities. So the range of their entries never grows, and a difference of two
        entries is at most the range.
        """
        rows, choices = CertifiedRows(model.matrix, model.error), [np.array([k]) for k in range(model.sensors)]
        if position > 0:
            nearby = model.nearby_places(position)
            places = np.unique(np.concatenate(nearby))
            rows, choices = model.rows(places), [np.searchsorted(places, cells) for cells in nearby]
        least = shortest(model.space)
        norm = math.sqrt(float(abs(L).sum(axis=0).max()) * float(abs(L).sum(axis=1).max()))
        height = (np.ptp(rows.values, axis=1) + 2 * rows.error) / least
        bend = tau**2 * (np.ptp((L.T @ (L.T @ rows.values.T)).T, axis=1) + 2 * norm**2 * rows.error) / least
        return cls(*(np.array([each[choice].max() for choice in choices]) * (1 + 1e-9) for each in (height, bend)))


@dataclass(frozen=True, eq=False)
class LaterMoves:
    """The moves of a pulse at its diffusion time and at all later times, for sensors within `position` of theirs."""

    model: "Physics"
    position: float
    _models: dict[float, tuple["Physics", SlopeBounds]] = field(default_factory=dict, init=False)

    @cached_property
    def each(self) -> FloatArray:
        return self._largest(lambda model: model.steps(self.position).each, lambda bounds: bounds)

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        value = self._largest(
            lambda model: np.array(model.steps(self.position).steepest(weights).value),
            lambda bounds: np.array(np.linalg.norm(bounds if weights is None else bounds * weights)),
        )
        return Slope(float(value), self.model.steps(self.position).steepest(weights).pair)

    def rows(self) -> Iterator[Any]:
        return self.model.steps(self.position).rows()

    def _largest(
        self, slope: Callable[["Physics"], FloatArray], combine: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """The largest `slope` over all times, rounded up; `combine` takes the same norm of bounds (m,) on all slopes.

        Notes
        -----
        Between two times a and b each slope is within (b - a)^2 / 8 times its largest second derivative of a linear
        interpolation, so a norm of the slopes is at most the larger of its values at a and b, plus the norm of that
        error. Steps are halved until this is within `EXCESS` of the steepest slope found, up to the time after which
        the bound on all slopes is below it.
        """

        def height(time: float) -> FloatArray:
            return combine(self._at(time)[1].height)

        here = best = slope(self.model)
        negligible, last = NEGLIGIBLE * height(1.0).max(), 1.0
        while (height(last) > np.maximum(best, negligible)).any():
            last *= 2
            best = np.maximum(best, slope(self._at(last)[0]))
        certified = height(last)
        start = step = 1.0  # times are in units of the model's
        while start < last:
            end = min(start + step, last)
            there = slope(self._at(end)[0])
            best = np.maximum(best, there)
            error = (end / start - 1) ** 2 / 8 * combine(self._at(start)[1].bend)
            between = np.maximum(here, there) + error
            if (between > np.maximum(best * (1 + EXCESS), negligible)).any():
                step = (end - start) / 2
                continue
            certified = np.maximum(certified, between)
            start, here, step = end, there, 2 * (end - start)
        return np.asarray(np.maximum(certified, best) * OUTWARD)

    def _at(self, time: float) -> tuple["Physics", SlopeBounds]:
        if time not in self._models:
            if len(self._models) * self.model.matrix.size > MAX_KEPT:
                self._models.clear()
            model = self.model.with_spread(time) if time > 1 else self.model
            bounds = model.slope_bounds(self.position)
            assert bounds is not None  # noqa: S101 - the same kind of model as the first
            self._models[time] = (model, bounds)
        return self._models[time]
