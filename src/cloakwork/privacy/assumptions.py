"""What the guarantee of a cloak assumes about the model, the clocks and the baseline."""

from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from cloakwork._checks import instance_of
from cloakwork.errors import CalibrationError
from cloakwork.physics import AT_ONCE, Drift, Family, Nuisance, Physics, Timing, Tolerance


@dataclass(frozen=True, eq=False)
class Assumptions:
    """What a cloak assumes.

    Parameters
    ----------
    tolerance
        How wrong the model may be; the claim then holds over the whole declared set.
    timing
        How far apart in time the sensors of a frame measure and how fast sources move, for scope `network`. By default
        all sensors measure at the same instant.
    drift
        How readings wander without any source, or what is unknown of it where a tracker learns it (`Nuisance.learnt`):
        `least-error` locates sources best in spite of it, at the same claim.
    map_error
        How far readings stray from the model beyond their noise: a standard deviation in the unit of the readings, one
        number or one per sensor. Recovery counts it as noise; the guarantee and the noise do not depend on it.

    >>> Assumptions(tolerance=Tolerance(gain=0.05)).tolerance.gain
    0.05
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    timing: Timing = AT_ONCE
    drift: Drift | Nuisance | None = None
    map_error: ArrayLike = 0.0

    def __post_init__(self) -> None:
        instance_of("tolerance", self.tolerance, Tolerance, "an object such as Tolerance(gain=0.05)")
        instance_of("timing", self.timing, Timing, "an object such as Timing(spread=0.3, speed=1.5)")
        if not isinstance(self.drift, Drift | Nuisance | None):
            raise CalibrationError(f"drift={self.drift!r}: give an object such as Drift(room=1.0).", drift=self.drift)

    def family(self, physics: Physics, readings: int) -> Family:
        """Return the models that the guarantee covers.

        Several frames may see one pulse at different times after its emission, so they cover all later times.
        """
        later = self.tolerance.later or (physics.pulse and readings > 1)
        return Family(physics, replace(self.tolerance, later=later), self.timing)
