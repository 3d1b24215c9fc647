"""Where experiments take place, and who is there."""

from enum import StrEnum
from functools import cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import FloorPlan, HeatLine, Rooms, Steady
from cloakwork.privacy import Calibration, Cloak


class Strengths(StrEnum):
    """How strong sources are."""

    UNIT = "strength 1, known"
    FREE = "strength uniform in [0, 1], free"

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Strengths of so many sources."""
        return np.ones(count) if self is Strengths.UNIT else rng.uniform(0.0, 1.0, count)

    @property
    def short(self) -> str:
        """One word for it."""
        return "unit" if self is Strengths.UNIT else "free"

    @property
    def told(self) -> float | tuple[float, float]:
        """What an estimator that takes strengths is told."""
        return 1.0 if self is Strengths.UNIT else (0.0, 1.0)


@cache
def line() -> HeatLine:
    """The line of the papers' first figures: 100 places, 50 sensors, T = 0.05."""
    return HeatLine(n=100, m=50, T=0.05)


@cache
def line_cloak(calibration: Calibration = Calibration.EXACT) -> Cloak:
    """That line with a move by one place hidden at (1, 0.1)."""
    return Cloak(line(), epsilon=1.0, delta=0.1, alpha=0.01, calibration=calibration)


@cache
def flat() -> FloorPlan:
    """Three rooms of 10 m x 10 m in 400 cells, 100 sensors, people with 1 m reach and a 0.5 m footprint."""
    walls = [((5, 0), (5, 10)), ((0, 5), (5, 5))]
    doors = [((5, 4), (5, 6)), ((2, 5), (3, 5))]
    rooms = Rooms.from_walls((10, 10), cell=0.5, walls=walls, doors=doors)
    along = np.arange(0.5, 10, 1.0)
    return FloorPlan(rooms, [(x, y) for x in along for y in along], Steady(1.0), footprint=0.5)


@cache
def flat_cloak() -> Cloak:
    """Those rooms with a move by 0.3 m hidden at (4, 1e-5)."""
    return Cloak(flat(), epsilon=4.0, delta=1e-5, alpha=0.3)
