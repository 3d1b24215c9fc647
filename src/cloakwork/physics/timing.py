"""When the sensors of one frame measure, and how far sources travel meanwhile."""

import math
from dataclasses import dataclass
from typing import Literal

from cloakwork._checks import not_negative
from cloakwork.errors import PhysicsError


@dataclass(frozen=True)
class Timing:
    """How far apart in time the sensors of one frame measure, and how fast sources move.

    `spread` is the longest time between two readings of one frame, in seconds. `speed` is the top speed of a source in
    units of the space per second, in a straight line; 0 if sources stay where they are, and "any" for no limit.

    >>> Timing(spread=0.5, speed=1.5).travel
    0.75
    """

    spread: float = 0.0
    speed: float | Literal["any"] = 0.0

    def __post_init__(self) -> None:
        not_negative("spread", self.spread, error=PhysicsError)
        if self.speed != "any":
            not_negative("speed", self.speed, error=PhysicsError)

    @property
    def travel(self) -> float:
        """The longest way of a source while a frame is measured, infinite without a limit on its speed."""
        if self.speed == "any":
            return math.inf if self.spread else 0.0
        return self.speed * self.spread

    def sentence(self) -> str:
        """The assumption about time that the claim makes, in plain English."""
        if self.spread == 0:
            return "The claim assumes that all sensors of a frame measure at the same instant."
        within = f"all sensors of a frame measure within {self.spread:g} s"
        if self.speed == "any":
            return f"The claim assumes that {within}. Sources may move at any speed."
        if self.speed == 0:
            return f"The claim assumes that {within}, and that sources stay where they are meanwhile."
        return f"The claim assumes that {within}, and that no source moves faster than {self.speed:g} per second."


AT_ONCE = Timing()
