"""A cloak in plain sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloakwork._checks import FloatArray, rounded_up
from cloakwork.physics import FloorPlan, HeatLine, Metric, Physics, Placement
from cloakwork.privacy.design import Design
from cloakwork.privacy.gaussian import Profile
from cloakwork.privacy.sensitivity import Scope

if TYPE_CHECKING:
    from cloakwork.privacy.cloak import Cloak

SHOWN_SENSORS = 3


@dataclass(frozen=True)
class Explanation:
    """Sentences about a cloak, by subject."""

    hidden: tuple[str, ...]
    not_hidden: tuple[str, ...]
    cost: tuple[str, ...]
    drivers: tuple[str, ...]

    def __str__(self) -> str:
        parts = (
            ("What is hidden, and from whom", self.hidden),
            ("What is not hidden", self.not_hidden),
            ("What it costs", self.cost),
            ("What drives the noise", self.drivers),
        )
        return "\n".join(f"{title}\n" + "\n".join(f"  - {line}" for line in lines) for title, lines in parts)


def explain(cloak: "Cloak", names: Sequence[str]) -> Explanation:
    """Say what a cloak does."""
    return Explanation(_hidden(cloak), _not_hidden(cloak), _cost(cloak), _drivers(cloak, names))


def _hidden(cloak: "Cloak") -> tuple[str, ...]:
    k = cloak.readings_per_window
    window = "the one frame of a window" if k == 1 else f"all {k} frames of a window"
    who = "all sensors" if cloak.scope is Scope.NETWORK else "one sensor, but no more than one"
    lines = [
        f"Someone who sees {window} of {who} cannot tell well whether a unit source moved by up to {cloak.alpha:g}: "
        f"any event they wait for is at most e^{cloak.epsilon:g} = "
        f"{rounded_up(math.exp(min(cloak.epsilon, 700)), 3)} times "
        f"likelier for the one than for the other, plus {cloak.delta:g}.",
        f"The same holds for weight times distance: a source of weight 0.1 is hidden within {10 * cloak.alpha:g}, "
        f"one of weight 2 only within {cloak.alpha / 2:g}.",
        *_where(cloak.physics),
    ]
    declared = cloak.family.tolerance.sentences()
    lines.append(
        "The claim holds for the model as stated and for: " + "; ".join(declared) + "."
        if declared
        else "The claim holds for the model exactly as stated: declare a tolerance to cover errors of the model."
    )
    return tuple(lines)


def _where(model: Physics) -> tuple[str, ...]:
    """What the model takes a source to be."""
    if isinstance(model, FloorPlan):
        return (
            "Distance is walked along the axes of the grid: a diagonal step counts both its legs. A source fills a "
            f"cell of {model.rooms.cell:g} m: one that is smaller is not covered at the edge of a doorway.",
        )
    if isinstance(model, HeatLine) and model.placement is Placement.GRID:
        return ("Sources are taken to be on the grid of places; for sources anywhere use placement='anywhere'.",)
    if model.space.metric is Metric.PATH:
        return ("Distance is the shortest way from neighbour to neighbour.",)
    return ()


def _not_hidden(cloak: "Cloak") -> tuple[str, ...]:
    lines = [
        "That sources are present, how many there are, and how strong they are together.",
        f"Moves that add up to more than {cloak.alpha:g}: two sources that each move by it have moved twice as much.",
        "Anything outside the model"
        + (", and which side of a wall a source is on." if isinstance(cloak.physics, FloorPlan) else "."),
    ]
    window = Profile(cloak.frame_mu).times(cloak.readings_per_window)
    two, day = (rounded_up(window.times(k).epsilon(cloak.delta), 3) for k in (2, 24))
    lines.append(
        f"The same source over many windows: at delta {cloak.delta:g}, two windows together give epsilon {two}, and 24 "
        f"give {day}. A device counts every interval of the length of a window as one; release() counts one window "
        "after the other, so that an interval across the border of two may hold the frames of both."
    )
    if cloak.scope is Scope.SENSOR:
        lines.append("Anything from someone who combines several sensors.")
    return tuple(lines)


def _cost(cloak: "Cloak") -> tuple[str, ...]:
    low, high = float(cloak.sigmas.min()), float(cloak.sigmas.max())
    noise = rounded_up(high) if low == high else f"{rounded_up(low)} to {rounded_up(high)}, by sensor"
    lines = [
        f"Each reading carries noise of standard deviation {noise}; a hidden move shifts the readings by "
        f"at most {rounded_up(cloak.sensitivity)}.",
        f"Sending readings in steps of {float(cloak.steps.min()):.3g} costs "
        f"{100 * cloak.resolution_cost:.2g} % more noise.",
    ]
    if cloak.readings_per_window > 1:
        root = float(np.sqrt(cloak.readings_per_window))
        lines.append(
            f"Covering {cloak.readings_per_window} frames costs {rounded_up(root, 3)} times the noise of covering one."
        )
    if cloak.design is Design.LEAST_ERROR:
        lines.append(_designed(cloak))
    spread = cloak.alpha / (cloak.frame_mu * float(np.sqrt(cloak.readings_per_window)))
    lines.append(
        "Rule of thumb: from one window alone, the place of a unit source can be told with a standard deviation of "
        f"about {spread:.3g} at the best."
    )
    return tuple(lines)


def _designed(cloak: "Cloak") -> str:
    """What sharing the noise achieves."""
    seen = cloak.design_report
    equal = rounded_up(float(cloak.allowance.equal().sigma[0]))
    return (
        f"The noise is shared among the sensors such that a lone source is located best: {seen.carrying} of "
        f"{cloak.physics.sensors} carry 99 % of the information, the others hardly more than noise. One window tells "
        f"its place along an axis with a mean variance of {seen.variance:.3g} and a typical standard deviation of "
        f"{seen.vicinity:.3g}; the same noise for all ({equal}) would give {seen.equal_variance:.3g} and "
        f"{seen.equal_vicinity:.3g} at the same guarantee."
    )


def _drivers(cloak: "Cloak", names: Sequence[str]) -> tuple[str, ...]:
    if cloak.scope is Scope.SENSOR:
        slopes = cloak.family.sensor_slopes()
        worst = int(np.argmax(slopes / cloak.sigmas))
        return (f"Sensor {names[worst]} is the most exposed; the median sensor has {_share(slopes)} of its slope.",)
    weights = 1 / cloak.sigmas
    pair = cloak.family.joint_slope(weights).pair
    name = cloak.physics.space.name
    shifts = (cloak.physics.matrix[:, pair[0]] - cloak.physics.matrix[:, pair[1]]) * weights
    shares = shifts**2 / max(float((shifts**2).sum()), 1e-300)
    top = np.argsort(shares)[::-1][:SHOWN_SENSORS]
    slopes = cloak.physics.pair_slopes(weights)
    lines = [
        f"The noise is set by moves between the places ({name(pair[0])}) and ({name(pair[1])}); "
        f"the median pair of neighbours has {_share(slopes)} of their slope.",
        f"Sensors {', '.join(names[int(s)] for s in top)} see {100 * float(shares[top].sum()):.0f} % of that move.",
    ]
    kept = weights.copy()
    kept[top] = 0.0
    if len(top) < len(weights):
        saved = 1 - cloak.family.joint_slope(kept).value / cloak.family.joint_slope(weights).value
        if saved >= 0.01:
            lines.append(
                f"Leaving these sensors out would lower the noise of the others by {100 * max(saved, 0):.0f} %."
            )
    return tuple(lines)


def _share(slopes: FloatArray) -> str:
    largest = float(slopes.max(initial=0.0))
    return f"{float(np.median(slopes)) / largest:.2f}" if largest > 0 else "none"
