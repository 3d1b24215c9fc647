"""Devices to audit: an honest one, and one that hides its input in the low bits of several reports together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloakwork.privacy import largest_mu

IntReports = NDArray[np.int64]
STEPS = 64  # of the noise's grid in the distance between the two inputs


def _noise(epsilon: float, size: int, rng: np.random.Generator) -> IntReports:
    """Whole numbers that hide a shift by `STEPS` with (epsilon, 1e-3), and a little more."""
    return np.round(rng.normal(scale=1.1 * STEPS / largest_mu(epsilon, 1e-3), size=size)).astype(np.int64)


@dataclass(frozen=True)
class HonestDevice:
    """An honest device."""

    epsilon: float

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> IntReports:
        return database * STEPS + _noise(self.epsilon, size, rng)


@dataclass(frozen=True)
class ParityLeak:
    """A device whose input is the parity of one bit of `reports` reports that are `lag` apart.

    One report of each group is drawn again until the parity is right, so that each report alone has the honest law up
    to e^-2000: every parity is equally likely. The groups start at report `begin` of a call; a `share` of them leaks.
    """

    reports: int = 2
    lag: int = 1
    begin: int = 0
    bit: int = 0
    share: float = 1.0
    epsilon: float = 1.0
    unit: float = 0.0

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> NDArray[np.generic]:
        honest = HonestDevice(self.epsilon)
        values = honest(database, size, rng)
        places = np.arange(self.begin, self.begin + (size - self.begin) // self._group * self._group)
        groups = places.reshape(-1, self.reports, self.lag)
        leaks = rng.random((len(groups), self.lag)) < self.share
        while True:
            wrong = leaks & (np.bitwise_xor.reduce(values[groups] >> self.bit & 1, axis=1) != database)
            if not wrong.any():
                return values * self.unit if self.unit else values
            values[groups[:, -1][wrong]] = honest(database, int(wrong.sum()), rng)

    @property
    def _group(self) -> int:
        return self.reports * self.lag
