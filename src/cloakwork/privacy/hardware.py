"""The hardware of sensors: the steps in which it reads and sends, and the noise that it has."""

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, per_sensor, read_only
from cloakwork.errors import CalibrationError, HardwareStepWarning
from cloakwork.privacy.noise_floor import NoiseFloor

SENT_PARTS = 64  # a step of the hardware is sent in so many steps, so that means of up to 64 values stay exact
FINE_PARTS = 1024  # with a noise floor, where the step of sending is all that costs
MAX_FLOOR = 1e4  # steps; more is a mistake in the unit
_FINE = 1024  # grids finer than a step by this factor are not looked for
_ON_GRID = 2.0**-20  # of the grid: readings this near to it count as on it


class SensorSteps(NamedTuple):
    """The steps of each sensor, shape (m,), and its noise floor; None where the caller states none."""

    resolution: FloatArray | None
    sent: FloatArray | None
    floor: NoiseFloor | None


@dataclass(frozen=True, eq=False)
class Hardware:
    """The hardware of the sensors; each value is one for all, or one per sensor, in the unit of the readings.

    Parameters
    ----------
    resolution
        Step in which the hardware reads; a larger value is safe. If it is left out, readings count as exact.
    noise_floor
        Standard deviation, at least, of the white Gaussian noise that a sensor has before its hardware rounds; 0 states
        none. Half a step or more makes the step of the hardware almost free.
    step
        Step in which readings are sent: by default a 64th of `resolution` (a 1024th with a noise floor), or else the
        step that takes 1 % more noise.

    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.privacy import Cloak
    >>> thermometer = Hardware(resolution=0.0625, noise_floor=0.04)
    >>> cloak = Cloak(HeatLine(n=100, m=50, T=0.05), epsilon=1.0, delta=1e-6, alpha=0.01, hardware=thermometer)
    >>> round(cloak.sigma, 4), cloak.step
    (0.5772, 6.103515625e-05)
    """

    resolution: ArrayLike | None = None
    noise_floor: ArrayLike = 0.0
    step: ArrayLike | None = None

    def on(self, sensors: int) -> SensorSteps:
        """Return what is stated for each of so many sensors; refused if it cannot be meant."""
        floors = per_sensor("noise_floor", self.noise_floor, sensors, zero=True, error=CalibrationError)
        sent = None if self.step is None else per_sensor("step", self.step, sensors, error=CalibrationError)
        if self.resolution is None:
            if floors.any():
                raise CalibrationError(
                    "noise_floor without resolution: the noise floor covers the step of the hardware, so state that "
                    "step too, for example resolution=0.0625.",
                    noise_floor=self.noise_floor,
                )
            return SensorSteps(None, None if sent is None else read_only(sent), None)
        resolution = read_only(per_sensor("resolution", self.resolution, sensors, error=CalibrationError))
        if (floors > MAX_FLOOR * resolution).any():
            raise CalibrationError(
                f"noise_floor={float(floors.max()):g} is more than {MAX_FLOOR:,.0f} steps of the hardware. Check its "
                "unit: it is that of the readings, like resolution.",
                noise_floor=self.noise_floor,
            )
        floor = NoiseFloor(read_only(floors), resolution) if floors.any() else None
        if sent is None:
            sent = resolution / (SENT_PARTS if floor is None else np.where(floor.helps, FINE_PARTS, SENT_PARTS))
        return SensorSteps(resolution, read_only(sent), floor)


def warn_if_rounded(values: FloatArray, step: float) -> None:
    """Warn the caller of a release of readings that look rounded by hardware: all on one coarse decimal or binary grid.

    Zeros are on every grid.
    """
    finest = step / _FINE
    grids = [values / base ** math.floor(math.log(finest, base)) for base in (10.0, 2.0)]
    if any(bool((np.abs(counts - np.rint(counts)) <= _ON_GRID).all()) for counts in grids):
        warnings.warn(
            HardwareStepWarning(
                "all readings are round numbers, like those of hardware that reads in steps, and the noise of this "
                "cloak does not cover such steps. Make the cloak with the step of the hardware, for example "
                "Hardware(resolution=0.0625), or state that the readings are exact: release(readings, exact=True)."
            ),
            stacklevel=3,
        )
