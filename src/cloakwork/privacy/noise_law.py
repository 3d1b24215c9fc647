"""The law of the noise: Gaussian, or for single sensors Laplace."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError
from cloakwork.privacy.calibration import allowed_mu
from cloakwork.privacy.laplace import largest_shift
from cloakwork.privacy.laplace_table import laplace_table
from cloakwork.privacy.noise_table import DEVICE_TABLES, NoiseTable, noise_table, table_ratio
from cloakwork.privacy.observer import Scope

ROOT_2 = math.sqrt(2.0)  # the standard deviation of Laplace noise, in scales
_BASE, _COARSEST = 512, 16  # blocks with which all tables of a device stay below 56 kB


class NoiseLaw(StrEnum):
    """Which noise a device adds."""

    GAUSSIAN = "gaussian"
    """For every scope."""
    LAPLACE = "laplace"
    """For single sensors; it allows a delta of 0."""


@dataclass(frozen=True)
class WindowClaim:
    """The claim for the frames of a window, and how much of the noise a hidden move may be with either law."""

    epsilon: float
    delta: float
    readings: int
    scope: Scope
    sensors: int
    doubt: float

    def refuse_unknown(self, noise: NoiseLaw, *, noise_floor: bool, stay: bool) -> None:
        """Refuse Laplace noise where only Gaussian noise is calibrated."""
        if noise is NoiseLaw.GAUSSIAN:
            return
        if self.scope is Scope.NETWORK:
            raise CalibrationError(
                f'noise="{noise}" for several sensors together: a move shifts many readings a little, which Gaussian '
                'noise hides with less. Give scope="sensor", or leave noise out.',
                noise=str(noise),
            )
        gaussian = {
            "noise_floor": noise_floor,
            "a stay": stay,
            "a network too large for its matrix": self.doubt > 0,
        }
        for name, stated in gaussian.items():
            if stated:
                raise CalibrationError(
                    f'noise="{noise}" with {name}: only Gaussian noise is calibrated for that. Leave one of them out.',
                    noise=str(noise),
                    name=name,
                )

    def frame_mu(self, law: NoiseLaw) -> float:
        """The largest shift of a frame in standard deviations of this noise; 0 if it cannot meet the claim.

        The error of the noise tables is taken off delta. A delta of 0 is that of the law, without this error.
        """
        if law is NoiseLaw.LAPLACE:
            tables = 2 * math.exp(min(self.epsilon, 700.0)) * self.readings * DEVICE_TABLES.error
            if 0 < self.delta <= tables:
                raise CalibrationError(
                    f"epsilon={self.epsilon:g} with delta={self.delta:g}: the error of the noise table exceeds delta. "
                    "Use a smaller epsilon, a larger delta, or a delta of 0, which is that of the law of the noise.",
                    epsilon=self.epsilon,
                    delta=self.delta,
                )
            return largest_shift(self.epsilon, self.delta - tables, readings=self.readings) / ROOT_2 * (1 - 1e-15)
        draws = self.readings * (self.sensors if self.scope is Scope.NETWORK else 1)
        mu = allowed_mu(self.epsilon, self.delta, draws=draws, doubt=self.doubt)
        return mu / math.sqrt(self.readings)


@lru_cache(maxsize=64)
def law_table(law: NoiseLaw, ratio: float) -> NoiseTable:
    """The table of a device for noise with a standard deviation of `ratio` steps."""
    if law is NoiseLaw.GAUSSIAN:
        return noise_table(ratio)
    return replace(laplace_table(table_ratio(ratio / ROOT_2), base=_BASE, coarsest=_COARSEST), ratio=ratio)


def refuse_too_fine(steps: FloatArray, ratios: FloatArray) -> None:
    """Refuse steps in which the noise of a sensor is too large for its table."""
    largest = int(np.argmax(ratios))
    if ratios[largest] > DEVICE_TABLES.ratio:
        raise CalibrationError(
            f"step={steps[largest]:g}: the noise of sensor {largest} is {ratios[largest]:,.0f} steps, and tables go up "
            f"to {DEVICE_TABLES.ratio:,.0f}. Give a coarser step, or a coarser resolution.",
            step=float(steps[largest]),
        )
