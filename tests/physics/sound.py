"""A physics of one's own, complete: sound in an open room, next to a site file that says `kind = "sound.py:Sound"`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloakwork.physics import Physics, Space


@dataclass(frozen=True, eq=False)
class Sound(Physics):
    """Intensity 1/d^2 at microphones that hang `above` metres over the heads of people on a lattice of half metres."""

    microphones: Sequence[tuple[float, float]]
    size: tuple[float, float]
    above: float = 2.0
    gain: float = 1.0

    @cached_property
    def space(self) -> Space:
        x, y = (np.arange(0.25, side, 0.5) for side in self.size)
        return Space.plane([(a, b) for a in x for b in y])

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        apart = self.sensor_positions[:, None] - self.space.places
        return np.asarray(self.gain / (self.above**2 + (apart**2).sum(axis=2)))

    @cached_property
    def sensor_positions(self) -> NDArray[np.float64]:
        return np.array(self.microphones, dtype=np.float64)

    @property
    def extent(self) -> tuple[float, float]:
        return self.size

    @property
    def length_unit(self) -> str:
        return "m"

    @classmethod
    def from_site(cls, options: Mapping[str, Any], *, sensors_at: Sequence[Any], gain: float, folder: Path) -> Self:
        del folder  # it names no other file
        return cls(sensors_at, tuple(options["size"]), options.get("above", 2.0), gain)
