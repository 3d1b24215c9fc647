"""The simulated flat: where people are at any time, and what a sensor there would measure."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloakwork.collect.api import Truth
from cloakwork.demo.recorded import Position
from cloakwork.demo.walks import Movement
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan
from cloakwork.site import Site


def unix_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, eq=False)
class World:
    """People in the rooms of a site. It begins at Unix millisecond `began`; nothing is simulated before."""

    site: Site
    movement: Movement
    began: int
    clock: Callable[[], int] = unix_ms

    def __post_init__(self) -> None:
        self.flat  # noqa: B018 - another kind of site is refused now

    @cached_property
    def flat(self) -> FloorPlan:
        """The model of the flat."""
        if not isinstance(self.site.physics, FloorPlan):
            raise InputError(f"{self.site.name}: people walk about on a floor plan only.")
        return self.site.physics

    def people(self, time: int) -> tuple[Position, ...]:
        """Where everyone is at a time, (x, y) in metres each."""
        return self.movement.at(max(0, time - self.began))

    def reading(self, sensor: int) -> float:
        """What the sensor of this row of the model measures now, in the site's unit, without noise."""
        cells = [self.flat.rooms.cell_at(*at) for at in self.people(self.clock())]
        return float(self.flat.matrix[sensor, np.array(cells, dtype=np.int64)].sum() + self.site.baselines[sensor])

    def truth(self, site: str, time: int | None) -> Truth | None:
        """What the collector may show beside its results: where people were at a time, or are now."""
        now = self.clock()
        when = now if time is None else time
        if site != self.site.name or not self.began <= when <= now:
            return None
        return Truth(when, self.people(when))
