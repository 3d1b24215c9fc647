"""What drives the noise of a cloak, in plain sentences."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cloakwork._checks import FloatArray, rounded_up
from cloakwork.physics import Family, Graph, Physics
from cloakwork.privacy.calibration import Allowance
from cloakwork.privacy.observer import Scope
from cloakwork.privacy.shared import SharedNoise

SHOWN_SENSORS = 3


class DrivenCloak(Protocol):
    """The attributes of a `Cloak` that this reads."""

    physics: Physics
    family: Family
    allowance: Allowance
    scope: Scope
    shared: SharedNoise | None

    @property
    def sigmas(self) -> FloatArray: ...


def drivers(cloak: DrivenCloak, names: Sequence[str]) -> tuple[str, ...]:
    """The moves and the sensors that set the noise; `names` are the names of the sensors."""
    if cloak.scope is Scope.SENSOR:
        slopes = cloak.family.sensor_slopes()
        worst = int(np.argmax(slopes / cloak.sigmas))
        share = _share(slopes)
        return (f"Sensor {names[worst]} is the most exposed. The median sensor has {share} times the largest slope.",)
    weights = cloak.allowance.weights(cloak.sigmas)
    pair = cloak.family.joint_slope(weights).pair
    name = cloak.physics.space.name
    steepest = (
        f"Moves between the places ({name(pair[0])}) and ({name(pair[1])}) set the noise. The median pair of "
        f"neighbours has {_share(cloak.physics.pair_slopes(weights))} times the largest slope."
    )
    if cloak.shared is not None:
        return (steepest,)
    move = np.zeros(cloak.physics.places)
    move[list(pair)] = 1, -1
    shifts = cloak.physics.apply(move) * weights
    shares = shifts**2 / max(float((shifts**2).sum()), 1e-300)
    top = np.argsort(shares)[::-1][:SHOWN_SENSORS]
    lines = [
        steepest,
        f"Sensors {', '.join(names[int(s)] for s in top)} see {100 * float(shares[top].sum()):.0f} % of that move.",
    ]
    if isinstance(cloak.physics, Graph) and not cloak.physics.explicit:
        loose = cloak.physics.looseness()
        if math.isfinite(loose):
            lines.append(
                f"The noise is at most {rounded_up(loose, 3)} times what the steepest pair of neighbours would need."
            )
        return tuple(lines)
    kept = weights.copy()
    kept[top] = 0.0
    if len(top) < len(weights):
        saved = 1 - cloak.family.frame_slope(kept) / cloak.family.frame_slope(weights)
        if saved >= 0.01:
            lines.append(f"Without these sensors, the others would need {100 * saved:.0f} % less noise.")
    return tuple(lines)


def _share(slopes: FloatArray) -> str:
    largest = float(slopes.max(initial=0.0))
    return f"{float(np.median(slopes)) / largest:.2f}" if largest > 0 else "0"
