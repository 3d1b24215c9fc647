"""What a guarantee says in words, with every bound rounded outward."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from cloakwork._checks import more_noise, rounded_down, rounded_up, spread_of
from cloakwork.physics import Metric, Physics
from cloakwork.privacy.claim import Scope
from cloakwork.privacy.design import Design
from cloakwork.privacy.distribution import NoiseLaw
from cloakwork.privacy.exposure import Exposure, exposures, flip_exposures
from cloakwork.privacy.long_stay import Stay, lingering

if TYPE_CHECKING:
    from cloakwork.privacy.cloak import Cloak
    from cloakwork.privacy.flip import Flip

LARGE_COST = 0.05  # of steps of the hardware, beyond which noise floor is worth measuring
SHOWN_SENSORS = 3
WINDOWS = {"one window": 1, "two windows": 2, "24 windows": 24}  # for those who ask about no other times


@dataclass(frozen=True)
class Explanation:
    """Sentences about a guarantee, by subject."""

    hidden: tuple[str, ...]
    not_hidden: tuple[str, ...]
    cost: tuple[str, ...]
    drivers: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (
            ("What is hidden, and from whom", self.hidden),
            ("What is not hidden", self.not_hidden),
            ("What it costs", self.cost),
            ("What drives the noise", self.drivers),
        )
        return "\n".join(f"{title}\n" + "\n".join(f"  - {line}" for line in lines) for title, lines in parts if lines)


@dataclass(frozen=True)
class Guarantee:
    """A guarantee in sentences, and what observers learn over longer times.

    `best_test` is how often the best test between two neighbours is right at most, in percent, and `stay_best_test` the
    same for a source that stays; empty without a claim for stays.

    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.privacy import Cloak
    >>> Guarantee.of(Cloak(HeatLine(n=100, m=50, T=0.05), epsilon=1.0, delta=1e-6, alpha=0.01)).best_test
    '54.8'
    """

    explanation: Explanation
    over_time: tuple[Exposure, ...]
    best_test: str
    stay_best_test: str = ""

    @classmethod
    def of(
        cls, cloak: "Cloak", *, spans: Mapping[str, int] | None = None, sensor_names: Sequence[str] | None = None
    ) -> "Guarantee":
        """Put the guarantee of a cloak into words.

        `spans` has the readings of a sensor in times of increasing length, by the names of the times; without it, they
        are those of 1, 2 and 24 windows. Sensors are called by their numbers unless `sensor_names` gives names.
        """
        names = sensor_names or [str(k) for k in range(cloak.physics.sensors)]
        over, stay = tuple(exposures(cloak, _windows(cloak) if spans is None else spans)), cloak.stay
        right, stay_right = _percent(cloak.profile.best_test_accuracy), ""
        hidden = [_moves(cloak), *_claim("a window", cloak.epsilon, cloak.delta, right)]
        if stay is not None:
            stay_right = _percent(float(special.ndtr(cloak.stay_mu(stay.readings) / 2)))
            hidden += [_stay(cloak, stay), *_claim("a stay", stay.epsilon, stay.delta, stay_right)]
        hidden += _assumptions(cloak)
        parts = (_not_hidden(cloak, over), _cost(cloak), _drivers(cloak, names))
        return cls(Explanation(tuple(hidden), *map(tuple, parts)), over, right, stay_right)

    @classmethod
    def of_flip(cls, flip: "Flip", *, spans: Mapping[str, int] | None = None) -> "Guarantee":
        """Put the guarantee of randomised response into words; `spans` as for a cloak."""
        over = tuple(flip_exposures(flip, _windows(flip) if spans is None else spans))
        n, sensors = flip.readings_per_window, "one sensor" if flip.sensors == 1 else f"up to {flip.sensors} sensors"
        readings = "the one reading of a window" if n == 1 else f"all {n} readings of a window"
        hidden = (
            f"Everything that {sensors} saw during a window, from an observer who has {readings}. That covers whether "
            "anyone was there at all."
        )
        open_ = (
            f"What happens over longer times, at the same delta: {_epsilons(flip, over)}.",
            "Anything that the times of reports tell: report at fixed times, never on change.",
        )
        truth = (
            f"A report is the true value in {rounded_down(100 * flip.truth, 4)} % of cases, a guess without looking in "
            f"{100 / flip.values:.4g} %."
        )
        right = _percent(flip.best_test_accuracy(n))
        claim = _claim("a window", flip.epsilon, flip.delta, right)
        return cls(Explanation((hidden, *claim), open_, (truth,)), over, right)


def _windows(mechanism: "Cloak | Flip") -> dict[str, int]:
    return {name: number * mechanism.readings_per_window for name, number in WINDOWS.items()}


def _epsilons(mechanism: "Cloak | Flip", over: Sequence[Exposure]) -> str:
    longer = [span for span in over if span.readings > mechanism.readings_per_window]
    return ", ".join(f"{span.time} together have epsilon {rounded_up(span.epsilon, 3)}" for span in longer)


def _observer(scope: Scope) -> str:
    return "all sensors" if scope is Scope.NETWORK else "one sensor, and no other,"


def _moves(cloak: "Cloak") -> str:
    k, alpha = cloak.readings_per_window, cloak.alpha
    seen = "the one frame of a window" if k == 1 else f"all {k} frames of a window"
    return (
        f"Whether a unit source moved by up to {f'{alpha:g} {cloak.physics.length_unit}'.rstrip()}, from an observer "
        f"who sees {seen} from {_observer(cloak.scope)} and nothing else. This is weight times distance: a source of "
        f"weight 0.1 is hidden within {10 * alpha:g}, a source of weight 2 only within {alpha / 2:g}."
    )


def _stay(cloak: "Cloak", stay: Stay) -> str:
    seen = "," if cloak.scope is Scope.NETWORK else f" of {_observer(cloak.scope)}"
    follow = "its readings follow it at once"
    if after := lingering(cloak.allowance):
        follow = f"its warmth no longer changes how readings round {after * stay.readings:,} frames after it has left"
    return (
        f"Where a unit source stays, within {cloak.alpha:g}, if it stays there for up to {stay.readings:,} consecutive "
        f"frames, from an observer who keeps all frames{seen} also those before and after. The other sources may move; "
        f"this one does not, and {follow}. A stay may begin and end at any frame. Several stays add up."
    )


def _claim(what: str, epsilon: float, delta: float, right: str) -> tuple[str, str]:
    """What epsilon and delta mean for an observer of a window or of a stay, and how often the best test is right."""
    factor, plus = rounded_up(math.exp(min(epsilon, 700)), 3), f", plus {delta:g}" if delta else ""
    return (
        f"Any event of {what} is at most e^{epsilon:g} = {factor} times as likely in one case as in the other{plus}.",
        f"The best test between the two is right in at most {right} % of cases; a coin is right in 50 %.",
    )


def _percent(probability: float) -> str:
    return rounded_up(100 * probability, 3)


def _assumptions(cloak: "Cloak") -> Iterator[str]:
    """Yield what must be true for the guarantee to hold."""
    physics, tolerance, floor = cloak.physics, cloak.family.tolerance, cloak.allowance.own
    if not cloak.delta:
        yield (
            "A delta of 0 is that of the distribution of the noise. A device draws it from tables that differ from it "
            "by less than 1e-33 for each reading."
        )
    yield from _distance(physics)
    if cloak.scope is Scope.NETWORK:
        yield cloak.family.timing.sentence(physics.length_unit or "units of length")
    if physics.ages and not tolerance.memory:
        yield (
            "The guarantee assumes readings that follow the sources at once. Where warmth lingers, moves in the past "
            "add up and can shift a frame further than the guarantee allows. A tolerance with memory covers that."
        )
    if floor is not None and cloak.rests_on_noise_floor:
        yield (
            f"The guarantee assumes that each sensor has a noise floor of at least {spread_of(floor.own)} before its "
            "hardware rounds: Gaussian, independent from reading to reading and from the other sensors; and that the "
            "hardware rounds in equal steps within its range."
        )
    if physics.pulse:
        when = "not before" if tolerance.later else "exactly at"
        yield (
            "The guarantee assumes that all sensors of a frame read a pulse at the same time after its emission, and "
            f"{when} the time that the model states."
        )
    if tolerated := tolerance.sentences():
        yield f"The guarantee covers the model as stated and also: {'; '.join(tolerated)}."
    else:
        yield "The guarantee covers the model exactly as stated. Declare a tolerance to cover errors of the model."


def _distance(model: Physics) -> Iterator[str]:
    """Yield where the model places sources, and how it measures distance."""
    if model.floor is not None:
        yield (
            "Distance is measured along the axes of the grid: a diagonal step counts both of its legs. A source fills "
            f"a cell of {model.floor.cell:g} m; a smaller source is not covered at the edge of a doorway."
        )
    elif model.extent and not model.anywhere:
        yield "Sources are assumed to be on the grid of places. For sources anywhere, use placement='anywhere'."
    elif model.space.metric is Metric.PATH:
        yield (
            "Distance is the length of the shortest path from neighbour to neighbour. A source between two places "
            "counts as shared by both."
        )
    if model.only_listed:
        yield (
            f"Sources are covered only at the {len(model.space):,} listed places, or shared between them: the model "
            "does not know how readings change on the way from one place to the next. Where they change more than in "
            "proportion, a shorter move is not hidden. A smooth map fitted to radio signals is such a case: they fade "
            "within centimetres, so compare the map with readings at near positions (measured_shifts)."
        )


def _not_hidden(cloak: "Cloak", over: Sequence[Exposure]) -> Iterator[str]:
    yield "The presence of sources, their number and their total strength."
    yield (
        f"Moves that add up to more than {cloak.alpha:g}: if two sources each move that far, they have moved twice as "
        "far together."
    )
    wall = ", and which side of a wall a source is on" if cloak.physics.floor else ""
    yield f"Anything outside the model{wall}."
    yield (
        f"The same source over longer times: at delta {cloak.delta:g}, {_epsilons(cloak, over)}. A device limits every "
        "interval as long as a window. A Python program that releases whole frames limits consecutive windows, so an "
        "interval across the border of two windows may hold the frames of both."
    )
    found = [
        f"{rounded_up(100 * span.right_place, 3)} % of cases after {span.time}"
        for span in over
        if span.right_place is not None
    ]
    if found:
        yield (
            "The place of a lone unit source that stays where it is, from someone who keeps the readings of all "
            f"sensors: the best guess names the right one of {cloak.physics.places:,} places in at most "
            f"{', '.join(found)}. Someone who knows its habits needs fewer."
        )
    if cloak.slow is not None:
        yield (
            "From someone who has taken a device: its present slow offset. The guarantee for a stay that goes on "
            "then rests on the other devices; the guarantee for a window does not change."
        )
    if cloak.scope is Scope.SENSOR:
        yield "Anything from an observer who combines several sensors."


def _cost(cloak: "Cloak") -> Iterator[str]:
    k = cloak.readings_per_window
    yield f"{cloak.noise.title()} noise with a standard deviation of {spread_of(cloak.sigmas)}."
    yield f"A hidden move shifts the readings by at most {rounded_up(cloak.sensitivity)}."
    yield f"The steps of hardware and sending take {more_noise(cloak.resolution_cost)}."
    if cloak.slow is not None:
        share = float((cloak.slow.deviations(cloak.steps) / cloak.sigmas).max()) ** 2
        yield f"Slow offsets make the variance of the mean of a window {1 + share * k:.3g} times as large."
    if cloak.timing_cost:
        yield f"Sources that move while sensors measure in turn take {more_noise(cloak.timing_cost)}."
    if cloak.design is Design.LEAST_ERROR:
        report = cloak.design_report
        yield (
            f"Noise differs between sensors: {report.carrying} of {cloak.physics.sensors} carry 99 % of the "
            "information. From one window an unbiased method locates a lone source along an axis with a mean variance "
            f"of {report.variance:.3g}; with equal noise it would be {report.equal_variance:.3g}."
        )
        return
    mu = cloak.frame_mu / (1 + cloak.resolution_cost) * math.sqrt(k)
    value = cloak.alpha / (mu * cloak.distribution.efficiency)
    yield (
        "Rule of thumb: from one window, an unbiased method locates a lone unit source with a standard deviation of "
        f"about {value:.3g} at best (Cramer-Rao). If that is large, a method that knows the extent of the space does "
        "better."
    )


def _drivers(cloak: "Cloak", names: Sequence[str]) -> Iterator[str]:
    """Yield the moves and the sensors that set the noise; `names` are the names of the sensors."""
    physics, weights = cloak.physics, 1 / cloak.sigmas
    dear = cloak.resolution is not None and cloak.resolution_cost > LARGE_COST and cloak.noise is NoiseLaw.GAUSSIAN
    if dear and not cloak.rests_on_noise_floor:
        yield (
            "The steps of the hardware. State noise_floor, the noise of the sensors before they round: half a step "
            "makes the step almost free."
        )
    if cloak.scope is Scope.SENSOR:
        yield f"Sensor {names[int(np.argmax(cloak.family.each * weights))]} is the most exposed."
        return
    pair = cloak.family.at_once.steepest(weights).pair
    ends = " and ".join(f"({physics.space.name(place)})" for place in pair)
    move = np.zeros(physics.places)
    move[list(pair)] = 1, -1
    shifts = (physics.apply(move) * weights) ** 2
    top = np.argsort(shifts)[::-1][:SHOWN_SENSORS]
    seen = float((shifts / max(float(shifts.sum()), 1e-300))[top].sum())
    exposed = ", ".join(names[int(sensor)] for sensor in top)
    yield f"Moves between the places {ends} set the noise. Sensors {exposed} see {100 * seen:.0f} % of them."
    loose = physics.looseness()
    if 1 < loose < math.inf:
        yield f"The noise is at most {rounded_up(loose, 3)} times what the steepest pair of neighbours needs."
