"""The simulated flat: the positions of people over time, and the readings of its sensors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect import Truth
from cloakwork.demo.recorded import Position
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan
from cloakwork.site import Site


class Inhabitants(Protocol):
    """People who move; `origin` says how."""

    @property
    def origin(self) -> str: ...

    def at(self, elapsed_ms: int) -> tuple[Position, ...]:
        """The positions of everyone, so many milliseconds after the beginning."""


@dataclass(frozen=True, eq=False)
class SimulatedFlat:
    """People in the rooms of a site, from Unix millisecond `began` on."""

    site: Site
    movement: Inhabitants
    began: int
    clock: Callable[[], int]

    def __post_init__(self) -> None:
        self.flat  # noqa: B018 - refuses another kind of site now

    @cached_property
    def flat(self) -> FloorPlan:
        """The model of the flat."""
        if not isinstance(self.site.physics, FloorPlan):
            raise InputError(f"{self.site.name}: people need a floor plan to walk on.")
        return self.site.physics

    def people(self, time: int) -> tuple[Position, ...]:
        """The positions of all people at a time, (x, y) in metres."""
        return self.movement.at(max(0, time - self.began))

    def reading(self, sensor: int) -> float:
        """The present reading of the sensor in this row of the model, in the site's unit, without noise."""
        return float(self._readings(self.clock())[sensor])

    @cached_property
    def _readings(self) -> Callable[[int], FloatArray]:
        """The readings of all sensors at a time; sensors that measure together ask for the same time."""

        @lru_cache(maxsize=1)
        def readings(time: int) -> FloatArray:
            weights = np.zeros(self.flat.places)
            for at in self.people(time):
                for cell, share in self.flat.rooms.shares(*at):
                    weights[cell] += share
            return np.asarray(self.flat.matrix @ weights + self.site.baselines)

        return readings

    def truth(self, site: str, time: int | None) -> Truth | None:
        """The positions that the collector may show beside its results: at a time, or now."""
        now = self.clock()
        when = now if time is None else time
        if site != self.site.name or not self.began <= when <= now:
            return None
        return Truth(when, self.people(when))
