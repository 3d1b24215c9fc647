"""The hardware of sensors: the steps in which it reads and sends, and the noise that it has."""

from dataclasses import dataclass

from numpy.typing import ArrayLike


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
