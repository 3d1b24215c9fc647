"""A cloak in plain sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, more_noise, rounded_up
from cloakwork.accuracy import bayes_risk
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Metric, Nuisance, Physics, Placement
from cloakwork.privacy.design import Design
from cloakwork.privacy.long_stay import lingering
from cloakwork.privacy.noise_law import ROOT_2, NoiseLaw
from cloakwork.privacy.observer import Scope

if TYPE_CHECKING:
    from cloakwork.privacy.cloak import Cloak

LARGE_COST = 0.05  # of steps of the hardware, beyond which noise floor is worth measuring
SHOWN_SENSORS = 3
ONE_SENSOR = "one sensor, and no other,"


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
    """Explain a cloak; `names` are the names of its sensors."""
    return Explanation(_hidden(cloak), _not_hidden(cloak), _cost(cloak), _drivers(cloak, names))


def _hidden(cloak: "Cloak") -> tuple[str, ...]:
    k = cloak.readings_per_window
    window = "the one frame of a window" if k == 1 else f"all {k} frames of a window"
    sensors = "all sensors" if cloak.scope is Scope.NETWORK else ONE_SENSOR
    factor = rounded_up(math.exp(min(cloak.epsilon, 700)), 3)
    right = rounded_up(100 * cloak.compose(k).best_test_accuracy, 3)
    plus = f", plus {cloak.delta:g}" if cloak.delta else ""
    tolerated = cloak.family.tolerance.sentences()
    return (
        f"Whether a unit source moved by up to {cloak.alpha:g}, from an observer who sees {window} from {sensors} and "
        f"nothing else: any event they look for is at most e^{cloak.epsilon:g} = {factor} times as likely in one case "
        f"as in the other{plus}. The best test between the two is right in at most {right} % of cases; "
        "a coin is right in 50 %.",
        f"The guarantee is on weight times distance: a source of weight 0.1 is hidden within {10 * cloak.alpha:g}, "
        f"a source of weight 2 only within {cloak.alpha / 2:g}.",
        *_stays(cloak),
        *_tables(cloak),
        *_distance(cloak.physics),
        *((cloak.family.timing.sentence(_length(cloak.physics)),) if cloak.scope is not Scope.SENSOR else ()),
        *_memory(cloak),
        *_noise_floor(cloak),
        *_pulse(cloak),
        "The claim covers the model as stated and also: " + "; ".join(tolerated) + "."
        if tolerated
        else "The claim covers the model exactly as stated. Declare a tolerance to cover errors of the model.",
    )


def _tables(cloak: "Cloak") -> tuple[str, ...]:
    """The guarantees that a delta of 0 leaves out."""
    if cloak.delta:
        return ()
    return (
        "A delta of 0 is that of the law of the noise. A device draws it from tables that differ from this law by less "
        "than 1e-33 for each reading.",
    )


def _stays(cloak: "Cloak") -> tuple[str, ...]:
    """The claim for a source that stays."""
    stay = cloak.stay
    if stay is None:
        return ()
    factor = rounded_up(math.exp(min(stay.epsilon, 700)), 3)
    right = rounded_up(100 * float(special.ndtr(cloak.stay_mu(stay.readings) / 2)), 3)
    seen = "," if cloak.scope is Scope.NETWORK else f" of {ONE_SENSOR}"
    follow = "its readings follow it at once"
    if after := lingering(cloak.allowance):
        follow = f"its warmth no longer changes how readings round {after * stay.readings:,} frames after it has left"
    return (
        f"Where a unit source stays, within {cloak.alpha:g}, if it stays there for up to {stay.readings:,} consecutive "
        f"frames, from an observer who keeps all frames{seen} also those before and after: any event is at most "
        f"e^{stay.epsilon:g} = {factor} times as likely, plus {stay.delta:g}, and the best test is right in at most "
        f"{right} % of cases. The other sources may move; this one does not, and {follow}. A stay may begin and end "
        "at any frame. Several stays add up.",
    )


def _distance(model: Physics) -> tuple[str, ...]:
    """Where the model places sources, and how it measures distance."""
    if isinstance(model, FloorPlan):
        return (
            "Distance is measured along the axes of the grid: a diagonal step counts both of its legs. A source fills "
            f"a cell of {model.rooms.cell:g} m; a smaller source is not covered at the edge of a doorway.",
        )
    if isinstance(model, HeatLine) and model.placement is Placement.GRID:
        return ("Sources are assumed to be on the grid of places. For sources anywhere, use placement='anywhere'.",)
    path = (
        "Distance is the length of the shortest path from neighbour to neighbour. A source between two places counts "
        "as shared by both.",
    )
    return (*(path if model.space.metric is Metric.PATH else ()), *_listed_places(model))


def _listed_places(model: Physics) -> tuple[str, ...]:
    """What a model leaves open that has nothing but readings of some places."""
    if isinstance(model, HeatLine | HeatPlane | FloorPlan | Graph):
        return ()
    return (
        f"Sources are covered only at the {len(model.space):,} listed places, or shared between them: the model does "
        "not know how readings change on the way from one place to the next. Where they change more than in "
        "proportion, a shorter move is not hidden. A smooth map fitted to radio signals is such a case: they fade "
        "within centimetres, so compare the map with readings at near positions (measured_shifts).",
    )


def _length(model: Physics) -> str:
    """The unit of a model's distances."""
    return "m" if isinstance(model, FloorPlan) else "units of length"


def _memory(cloak: "Cloak") -> tuple[str, ...]:
    """State the claim's assumption about rooms that remember."""
    if cloak.family.tolerance.memory or not cloak.memory_cost:
        return ()
    further = (
        f"up to {100 * cloak.memory_cost:.0f} % further than the claim allows. A tolerance with memory covers that."
    )
    if math.isnan(cloak.memory_cost):
        further = "further than the claim allows. How far is not computed for a floor this large."
    return (
        "The claim assumes readings that follow the sources at once. Where warmth lingers, moves in the past add up: "
        f"they can shift a frame {further}",
    )


def _noise_floor(cloak: "Cloak") -> tuple[str, ...]:
    """State what the claim assumes of the sensors' noise floor."""
    if not cloak.rests_on_noise_floor:
        return ()
    return (
        "The claim assumes that each sensor has the stated noise floor before its hardware rounds: Gaussian, at least "
        "as large, independent from reading to reading and from the other sensors; and that the hardware rounds in "
        "equal steps within its range.",
    )


def _pulse(cloak: "Cloak") -> tuple[str, ...]:
    """State the claim's assumption about the time at which a pulse is read."""
    if not cloak.physics.pulse:
        return ()
    when = "not before" if cloak.family.tolerance.later else "exactly at"
    return (
        "The claim assumes that all sensors of a frame read a pulse at the same time after its emission, and "
        f"{when} the time that the model states.",
    )


def _not_hidden(cloak: "Cloak") -> tuple[str, ...]:
    window = cloak.compose(cloak.readings_per_window)
    two, day = (rounded_up(window.compose(k).epsilon(cloak.delta), 3) for k in (2, 24))
    wall = ", and which side of a wall a source is on" if isinstance(cloak.physics, FloorPlan) else ""
    lines = [
        "The presence of sources, their number and their total strength.",
        f"Moves that add up to more than {cloak.alpha:g}: if two sources each move that far, they have moved twice as "
        "far together.",
        f"Anything outside the model{wall}.",
        f"The same source over many windows: at delta {cloak.delta:g}, two windows together give epsilon {two}, and 24 "
        f"windows give {day}. A device limits every interval as long as a window. A Python program that "
        "releases whole frames limits consecutive windows, so an interval across the border of two windows may hold "
        "the frames of both.",
        *_found(cloak),
    ]
    if cloak.slow is not None:
        lines.append(
            "From someone who has taken a device: its present slow offset. The claim for a stay that goes on then "
            "rests on the other devices; the claim for a window does not change."
        )
    if cloak.scope is Scope.SENSOR:
        lines.append("Anything from an observer who combines several sensors.")
    return tuple(lines)


def _steps(cloak: "Cloak") -> str:
    sent, more = f"{float(cloak.steps.min()):.3g}", more_noise(cloak.resolution_cost)
    if cloak.resolution is None:
        return f"Readings count as exact before they are sent. Sending them in steps of {sent} takes {more}."
    hardware = f"{float(np.max(cloak.resolution)):.3g}"
    alone = more_noise(cloak.resolution_cost_without_noise_floor)
    if cloak.rests_on_noise_floor:
        own = f"{float(np.min(cloak.noise_floor)):.3g}"
        return (
            f"Hardware that reads in steps of {hardware}, with a noise floor of at least {own} before it rounds, and "
            f"sending readings in steps of {sent}, take {more}. Without the noise floor, the same noise levels would "
            f"take {alone}."
        )
    remedy = " State noise_floor, the noise of the sensors before they round: half a step makes the step almost free."
    return (
        f"Hardware that reads in steps of {hardware}, and sending readings in steps of {sent}, take {more}."
        f"{remedy if cloak.resolution_cost > LARGE_COST and cloak.noise is NoiseLaw.GAUSSIAN else ''}"
    )


def _found(cloak: "Cloak") -> list[str]:
    """How often the best guess of someone with all readings names the place of a lone source that stays."""
    if cloak.physics.places < 2 or not cloak.physics.explicit or cloak.noise is NoiseLaw.LAPLACE:
        return []
    worth = (math.ceil(cloak.stay_worth(k * cloak.readings_per_window)) for k in (1, 24))
    one, day = (
        rounded_up(100 * bayes_risk(cloak.physics, cloak.claimed_sigmas, readings=readings).right_place, 3)
        for readings in worth
    )
    return [
        "The place of a lone unit source that stays where it is, from someone who keeps the readings of all sensors: "
        f"the best guess names the right one of {cloak.physics.places:,} places in up to {one} % of cases after one "
        f"window and {day} % after 24. Someone who knows its habits needs fewer."
    ]


def _cost(cloak: "Cloak") -> tuple[str, ...]:
    low, high = float(cloak.sigmas.min()), float(cloak.sigmas.max())
    noise = rounded_up(high) if low == high else f"{rounded_up(low)} to {rounded_up(high)}, depending on the sensor"
    root = float(np.sqrt(cloak.readings_per_window))
    lines = [
        f"Each reading carries {cloak.noise.title()} noise with a standard deviation of {noise}. A hidden "
        f"move shifts the readings by at most {rounded_up(cloak.sensitivity)}.",
        _steps(cloak),
    ]
    if cloak.slow is not None:
        share = float((cloak.slow.deviations(cloak.steps) / cloak.sigmas).max()) ** 2
        lines.append(
            f"Slow offsets hide stays: they give one reading {1 + share:.3g} times the variance, and the mean of a "
            f"window {1 + share * cloak.readings_per_window:.3g} times. Recovery knows how they change, and learns "
            "them."
        )
    if cloak.timing_cost:
        lines.append(
            "Sources can move while the sensors measure one after another. This takes "
            f"{100 * cloak.timing_cost:.0f} % more noise than measuring at the same instant would, at equal noise."
        )
    if cloak.readings_per_window > 1:
        lines.append(_frames(cloak, root))
    if cloak.design is Design.LEAST_ERROR:
        lines.append(_designed(cloak))
    else:
        without_steps = cloak.frame_mu / (1 + cloak.resolution_cost)
        if cloak.noise is NoiseLaw.LAPLACE:
            without_steps *= ROOT_2  # a reading with Laplace noise tells twice as much as its variance suggests
        lines.append(
            "Rule of thumb: from one window, an unbiased method locates a lone unit source with a standard deviation "
            f"of about {cloak.alpha / (without_steps * root):.3g} at best (Cramer-Rao). If that is large, a method "
            "that knows the extent of the space does better."
        )
    return tuple(lines)


def _frames(cloak: "Cloak", root: float) -> str:
    """The cost of covering several frames."""
    k = cloak.readings_per_window
    if cloak.noise is NoiseLaw.GAUSSIAN:
        return f"Covering {k} frames takes {rounded_up(root, 3)} times the noise of covering one."
    return f"Covering {k} frames takes up to about {k} times the noise of covering one: Laplace noise adds up so."


def _designed(cloak: "Cloak") -> str:
    report = cloak.design_report
    equal = rounded_up(float(cloak.allowance.equal().sigma[0]))
    rest = ", the others send little but noise" if report.carrying < cloak.physics.sensors else ""
    return (
        f"Noise differs between sensors so that a lone source is located best: {report.carrying} of "
        f"{cloak.physics.sensors} sensors carry 99 % of the information{rest}. From one window{_in_spite_of(cloak)} an "
        f"unbiased method locates the source along an axis with a mean variance of {report.variance:.3g} and a typical "
        f"standard deviation of {report.vicinity:.3g}. At the same guarantee, equal noise ({equal}) gives "
        f"{report.equal_variance:.3g} and {report.equal_vicinity:.3g}."
    )


def _in_spite_of(cloak: "Cloak") -> str:
    drift = cloak.allowance.drift
    if isinstance(drift, Nuisance):
        return ", with what earlier ones leave unknown of the stated drift,"
    return ", with the stated drift," if drift else ""


def _drivers(cloak: "Cloak", names: Sequence[str]) -> tuple[str, ...]:
    """The moves and the sensors that set the noise; `names` are the names of the sensors."""
    if cloak.scope is Scope.SENSOR:
        slopes = cloak.family.sensor_slopes()
        worst = int(np.argmax(slopes / cloak.sigmas))
        share = _share(slopes)
        return (f"Sensor {names[worst]} is the most exposed. The median sensor has {share} times the largest slope.",)
    weights = 1 / cloak.sigmas
    pair = cloak.family.joint_slope(weights).pair
    name = cloak.physics.space.name
    steepest = (
        f"Moves between the places ({name(pair[0])}) and ({name(pair[1])}) set the noise. The median pair of "
        f"neighbours has {_share(cloak.physics.pair_slopes(weights))} times the largest slope."
    )
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
