"""The simulated flat: the positions of people over time, and the readings of its sensors."""

from collections.abc import Callable, Iterator
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
                for cell, share in self._shares(at):
                    weights[cell] += share
            return np.asarray(self.flat.matrix @ weights + self.site.baselines)

        return readings

    @cached_property
    def _linked(self) -> frozenset[tuple[int, int]]:
        pairs = self.flat.rooms.pairs.tolist()
        return frozenset((a, b) for pair in pairs for a, b in (pair, pair[::-1]))

    def _shares(self, at: Position) -> Iterator[tuple[int, float]]:
        """The cells that a person at a point covers, each by its share, as the claim assumes.

        A person as wide as a cell covers up to four. Warmth then changes by little with each small step, where a jump
        from cell to cell would tell a step of 2 cm from none.
        """
        rooms = self.flat.rooms
        own = rooms.cell_at(*at)
        rows, columns = rooms.grid.shape
        off = [coordinate / rooms.cell - 0.5 for coordinate in at]
        column, row = min(int(at[0] // rooms.cell), columns - 1), min(int(at[1] // rooms.cell), rows - 1)
        right, up = off[0] - column, off[1] - row

        def beside(start: int, across: int, along: int) -> int:
            """The cell so far from the person's own if no wall is between it and `start`, else `start`."""
            if not (0 <= row + along < rows and 0 <= column + across < columns):
                return start
            cell = int(rooms.grid[row + along, column + across])
            return cell if (start, cell) in self._linked else start

        side, ahead = (1 if right > 0 else -1), (1 if up > 0 else -1)
        sideways, forward = beside(own, side, 0), beside(own, 0, ahead)
        corner = forward if sideways == own else beside(sideways, side, ahead)
        yield own, (1 - abs(right)) * (1 - abs(up))
        yield sideways, abs(right) * (1 - abs(up))
        yield forward, (1 - abs(right)) * abs(up)
        yield corner, abs(right) * abs(up)

    def truth(self, site: str, time: int | None) -> Truth | None:
        """The positions that the collector may show beside its results: at a time, or now."""
        now = self.clock()
        when = now if time is None else time
        if site != self.site.name or not self.began <= when <= now:
            return None
        return Truth(when, self.people(when))
