"""Readings of one pulse at the model's time and at any later time: the steepest slopes over all of them, certified."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics.base import Physics
from cloakwork.physics.continuum import steepest_kernel
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.floorplan import FloorPlan
from cloakwork.physics.graph import Graph
from cloakwork.physics.line import HeatLine

EXCESS = 1e-3  # by which a certified slope may exceed the steepest that was evaluated
NEGLIGIBLE = 1e-9  # of the largest possible slope: an excess this small is accepted as well
MAX_KEPT = 10_000_000  # numbers in memory for the matrices of later times
FIFTH = 5.784  # at least the largest |u^5 - 10 u^3 + 15 u| exp(-u^2/2)

Fading = Graph | FloorPlan | HeatLine


@dataclass(frozen=True, eq=False)
class LaterBounds:
    """Bounds on the slopes of each sensor from the model's diffusion time tau on, each of shape (m,).

    `height` bounds the slopes, and `bend` tau^2 times their second derivatives by the time.
    """

    height: FloatArray
    bend: FloatArray

    @classmethod
    def of(cls, model: Fading, displacement: float) -> "LaterBounds":
        """Bounds for sensors within `displacement` of their positions, which lines take to be 0.

        Notes
        -----
        On a line the slope is |g'|, and its second derivative by the time is the fifth by the place, at most
        `FIFTH` / (4 e^-1/2) times as large as the steepest slope, over T^2.

        A row of the matrix is r exp(-tau L) and its second derivative r exp(-tau L) L^2. Later ones are these times
        exp(-s L), whose columns are probabilities. So the range of their entries never grows, and a difference of two
        entries is at most the range.
        """
        if isinstance(model, HeatLine):
            height = np.full(model.sensors, model.gain * steepest_kernel(model.T) * (1 + 1e-9))
            return cls(height, FIFTH / 4 * math.exp(0.5) * height)
        rows, choices = CertifiedRows(model.matrix, model.error), [np.array([k]) for k in range(model.sensors)]
        if displacement > 0:
            nearby = model.nearby_places(displacement)
            positions = np.unique(np.concatenate(nearby))
            rows, choices = model.rows(positions), [np.searchsorted(positions, places) for places in nearby]
        L, shortest = model.laplacian, float(model.space.lengths.min(initial=np.inf))
        norm = math.sqrt(float(abs(L).sum(axis=0).max()) * float(abs(L).sum(axis=1).max()))
        height = (np.ptp(rows.values, axis=1) + 2 * rows.error) / shortest
        bent = np.ptp((L.T @ (L.T @ rows.values.T)).T, axis=1) + 2 * norm**2 * rows.error
        bend = model.diffusion_time**2 * bent / shortest
        return cls(*(np.array([each[choice].max() for choice in choices]) * (1 + 1e-9) for each in (height, bend)))


@dataclass(frozen=True, eq=False)
class LaterModels:
    """A model of a pulse at its diffusion time and at all later times, for sensors within `displacement`."""

    model: Fading
    displacement: float

    def steepest(
        self, slope: Callable[[Physics], FloatArray], combine: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """The largest `slope` over all times, rounded up.

        `slope` gives a number or one per sensor: a norm of the slopes of the sensors, which `combine` takes of bounds
        on them, shape (m,).

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
        return np.asarray(np.maximum(certified, best) * (1 + 1e-12))

    def _at(self, time: float) -> tuple[Fading, LaterBounds]:
        if time not in self._models:
            if len(self._models) * self.model.matrix.size > MAX_KEPT:
                self._models.clear()
            model = self.model.with_spread(time) if time > 1 else self.model
            self._models[time] = (model, LaterBounds.of(model, self.displacement))
        return self._models[time]

    @cached_property
    def _models(self) -> dict[float, tuple[Fading, LaterBounds]]:
        return {}
