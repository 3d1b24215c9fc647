"""Do the readings fit the model at all? What an analyst must know before trusting a map."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray

DOUBTFUL = 0.005  # a fit this unlikely is reported
OUTLYING = 1e-4  # a sensor this unlikely, among all sensors, is set aside


@dataclass(frozen=True)
class Fit:
    """How well a frame fits the model.

    `p_value` is the probability of a misfit at least this bad if the model is right (the least of three tests, times
    three), `misfit` the squared misfit that follows a chi-square law with at most `degrees` of freedom, `set_aside` the
    sensors that were left out because nothing explains their readings, and `inflation` by how much the noise was
    multiplied to make the rest plausible.
    """

    p_value: float
    misfit: float
    degrees: int
    set_aside: tuple[int, ...] = ()
    inflation: float = 1.0

    @property
    def doubtful(self) -> bool:
        """Whether something about the model, or a sensor, is wrong."""
        return self.p_value < DOUBTFUL or bool(self.set_aside)

    def __str__(self) -> str:
        said = []
        if self.set_aside:
            names = ", ".join(str(sensor) for sensor in self.set_aside)
            one = len(self.set_aside) == 1
            which = (
                f"the reading of sensor {names}, which was" if one else f"the readings of sensors {names}, which were"
            )
            said.append(f"nothing explains {which} set aside")
        if self.p_value < DOUBTFUL:
            said.append(
                f"nothing explains the readings (p = {self.p_value:.1g}): sources are stronger, weaker, more or of "
                "another kind than stated, or the physics is off"
            )
        if self.inflation > 1:
            said.append(f"vicinities were widened as if the noise was {self.inflation:.2g} times larger")
        return "; ".join(said) or f"the readings fit the model (p = {self.p_value:.2g})"


def joint_p_value(fits: Iterable[Fit]) -> float:
    """The p-value of many frames taken together: shows what no single one does, such as a diffusion that is a bit off.

    Notes
    -----
    The sum of the misfits against a chi-square law with the sum of the degrees; sensors that were set aside do not
    count, and numbers that were fitted are not subtracted, so that it errs on the side of a good fit.
    """
    listed = list(fits)
    misfit, degrees = sum(fit.misfit for fit in listed), sum(fit.degrees for fit in listed)
    return float(special.gammaincc(degrees / 2, misfit / 2)) if degrees else 1.0


@dataclass(frozen=True, eq=False)
class Misfit:
    """What is left of whitened readings after the best fit.

    `rest` has one number a sensor, with `degrees` of freedom in all; `inside` is its squared norm within the range of
    the physics, which has `rank` dimensions of which the fit used up `fitted`.
    """

    rest: FloatArray
    degrees: int
    inside: float
    rank: int
    fitted: int = 0

    @cached_property
    def p_value(self) -> float:
        """Within the range, over all sensors, and for the worst sensor: the least of the three, times three."""
        total = special.gammaincc(max(1, self.degrees) / 2, float(self.rest @ self.rest) / 2)
        inside = special.gammaincc(self._inside_degrees / 2, self.inside / 2)
        return float(min(1.0, 3 * min(inside, total, self.worst_p_value)))

    @property
    def worst(self) -> int:
        """The sensor that is explained worst."""
        return int(np.argmax(np.abs(self.rest)))

    @property
    def worst_p_value(self) -> float:
        """The probability that any sensor is off by this much."""
        return float(min(1.0, 2 * len(self.rest) * special.ndtr(-np.abs(self.rest[self.worst]))))

    @property
    def excess(self) -> float:
        """By how much the noise would have to be multiplied for the misfit to be typical."""
        ratios = (self.inside / self._inside_degrees, float(self.rest @ self.rest) / max(1, self.degrees))
        return float(np.sqrt(max(*ratios, 1.0)))

    @property
    def _inside_degrees(self) -> int:
        return max(1, self.rank - self.fitted)
