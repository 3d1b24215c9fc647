"""What is assumed of point sources before the readings are seen, and draws from what is known after."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.lattice import Lattice


@dataclass(frozen=True)
class Law:
    """What is assumed before the readings are seen: counts uniform from `least` to `most`, strengths in [low, high]."""

    low: float
    high: float
    shared: bool
    least: int
    most: int

    @property
    def known(self) -> bool:
        """Whether all strengths are known."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class Draws:
    """Equally likely sets of sources: candidates (draws, most), strengths, counts (draws,) and squared misfits."""

    at: IntArray
    strength: FloatArray
    counts: IntArray
    misfit: FloatArray

    @classmethod
    def empty(cls, number: int, most: int) -> "Draws":
        """Room for draws."""
        at = np.zeros((number, most), dtype=np.int64)
        return cls(at, np.zeros((number, most)), np.zeros(number, dtype=np.int64), np.zeros(number))

    def half(self, second: int) -> "Draws":
        """The first (0) or second (1) half: two chains, or every other one of draws at evenly spaced quantiles."""
        middle = len(self.counts) // 2
        which = slice(middle, None) if second else slice(None, middle)
        return Draws(self.at[which], self.strength[which], self.counts[which], self.misfit[which])

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """All four."""
        return (self.at, self.strength, self.counts, self.misfit)

    @property
    def present(self) -> Any:
        """Which entries hold a source, shape (draws, most)."""
        return np.arange(self.at.shape[1]) < self.counts[:, None]

    @property
    def best(self) -> int:
        """The draw that fits best."""
        return int(np.argmin(self.misfit))


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a frame for the next one: draws, and the lattice that their candidates belong to."""

    lattice: Lattice
    draws: Draws
