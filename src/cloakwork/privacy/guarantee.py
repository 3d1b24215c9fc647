"""What a guarantee says in words: every figure that a person reads, with its label and its sentence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, more_noise, percent, rounded_down, rounded_up, spread_of
from cloakwork.physics import Metric, Nuisance, Physics
from cloakwork.privacy.claim import Scope
from cloakwork.privacy.design import Design
from cloakwork.privacy.distribution import NoiseLaw
from cloakwork.privacy.exposure import Exposure, exposures, flip_exposures
from cloakwork.privacy.long_stay import lingering

if TYPE_CHECKING:
    from cloakwork.privacy.cloak import Cloak
    from cloakwork.privacy.flip import Flip

LARGE_COST = 0.05  # of steps of the hardware, beyond which noise floor is worth measuring
SHOWN_SENSORS = 3
WINDOWS = {"one window": 1, "two windows": 2, "24 windows": 24}  # for those who ask about no other times


@dataclass(frozen=True)
class Figure:
    """A figure that a person reads.

    `name` is its key in JSON and `label` its name in a table. `shown` is the number as text, a bound rounded outward,
    and `sentence` says it in full; None where another sentence does.
    """

    name: str
    label: str
    value: Any
    shown: str
    unit: str = ""
    sentence: str | None = ""

    def __post_init__(self) -> None:
        if self.sentence == "":
            object.__setattr__(self, "sentence", f"{self.label}: {self.text}.")

    @property
    def text(self) -> str:
        """The number with its unit."""
        return f"{self.shown} {self.unit}".rstrip()


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
    """The figures of a guarantee, its assumptions, what it leaves open, what it costs, and what sets the noise.

    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.privacy import Cloak
    >>> guarantee = Guarantee.of(Cloak(HeatLine(n=100, m=50, T=0.05), epsilon=1.0, delta=1e-6, alpha=0.01))
    >>> guarantee["best_test_accuracy"].label, guarantee["best_test_accuracy"].text
    ('The best test is right in at most', '54.8 %')
    """

    hidden: tuple[Figure, ...]
    assumptions: tuple[str, ...]
    not_hidden: tuple[str, ...]
    over_time: tuple[Exposure, ...]
    cost: tuple[Figure, ...]
    drivers: tuple[Figure, ...] = ()

    @classmethod
    def of(
        cls, cloak: "Cloak", *, spans: Mapping[str, int] | None = None, sensor_names: Sequence[str] | None = None
    ) -> "Guarantee":
        """Collect the figures of a cloak.

        `spans` has the readings of a sensor in times of increasing length, by the names of the times; without it, they
        are those of 1, 2 and 24 windows. Sensors are called by their numbers unless `sensor_names` gives names.
        """
        names = sensor_names or [str(k) for k in range(cloak.physics.sensors)]
        over = tuple(exposures(cloak, _windows(cloak) if spans is None else spans))
        hidden = (*_window(cloak), *_stay(cloak))
        open_ = tuple(_not_hidden(cloak, over))
        return cls(hidden, tuple(_assumptions(cloak)), open_, over, tuple(_cost(cloak)), tuple(_drivers(cloak, names)))

    @classmethod
    def of_flip(cls, flip: "Flip", *, spans: Mapping[str, int] | None = None) -> "Guarantee":
        """Collect the figures of randomised response; `spans` as for a cloak."""
        over = tuple(flip_exposures(flip, _windows(flip) if spans is None else spans))
        open_ = (
            f"What happens over longer times, at the same delta: {_epsilons(flip, over)}.",
            "Anything that the times of reports tell: report at fixed times, never on change.",
        )
        truth = rounded_down(100 * flip.truth, 4)
        sentence = (
            f"A report is the true value in {truth} % of cases, a guess without looking in {100 / flip.values:.4g} %."
        )
        cost = Figure("truth", "Reports that are true, at least", flip.truth, truth, "%", sentence)
        return cls(tuple(_flip_window(flip)), (), open_, over, (cost,))

    def __getitem__(self, name: str) -> Figure:
        for figure in (*self.hidden, *self.cost, *self.drivers):
            if figure.name == name:
                return figure
        raise KeyError(name)

    def explain(self) -> Explanation:
        """Return the guarantee in sentences."""
        hidden, cost, drivers = (
            tuple(figure.sentence for figure in figures if figure.sentence is not None)
            for figures in (self.hidden, self.cost, self.drivers)
        )
        return Explanation((*hidden, *self.assumptions), self.not_hidden, cost, drivers)


def _windows(mechanism: "Cloak | Flip") -> dict[str, int]:
    return {name: number * mechanism.readings_per_window for name, number in WINDOWS.items()}


def _epsilons(mechanism: "Cloak | Flip", over: Sequence[Exposure]) -> str:
    longer = [span for span in over if span.readings > mechanism.readings_per_window]
    return ", ".join(f"{span.time} together have epsilon {rounded_up(span.epsilon, 3)}" for span in longer)


def _claim(prefix: str, what: str, epsilon: float, delta: float, right: float) -> Iterator[Figure]:
    """Yield epsilon, delta and the best test of a guarantee."""
    factor, plus = rounded_up(math.exp(min(epsilon, 700)), 3), f", plus {delta:g}" if delta else ""
    event = (
        f"Any event that they look for is at most e^{epsilon:g} = {factor} times as likely in one case as in the other"
    )
    yield Figure(f"{prefix}epsilon", f"epsilon of {what}", epsilon, f"{epsilon:g}", "", f"{event}{plus}.")
    yield Figure(f"{prefix}delta", f"delta of {what}", delta, f"{delta:g}", "", None)
    shown = rounded_up(100 * right, 3)
    test = f"The best test between the two is right in at most {shown} % of cases; a coin is right in 50 %."
    yield Figure(f"{prefix}best_test_accuracy", "The best test is right in at most", right, shown, "%", test)


def _observer(scope: Scope) -> str:
    return "all sensors" if scope is Scope.NETWORK else "one sensor, and no other,"


def _window(cloak: "Cloak") -> Iterator[Figure]:
    k, alpha, unit = cloak.readings_per_window, cloak.alpha, cloak.physics.length_unit
    seen = "the one frame of a window" if k == 1 else f"all {k} frames of a window"
    sentence = (
        f"Whether a unit source moved by up to {f'{alpha:g} {unit}'.rstrip()}, from an observer who sees {seen} from "
        f"{_observer(cloak.scope)} and nothing else. This is weight times distance: a source of weight 0.1 is hidden "
        f"within {10 * alpha:g}, a source of weight 2 only within {alpha / 2:g}."
    )
    yield Figure("alpha", "Moves are hidden up to", alpha, f"{alpha:g}", unit, sentence)
    yield Figure("readings_per_window", "Frames that the guarantee covers together", k, f"{k:,}", "", None)
    yield from _claim("", "a window", cloak.epsilon, cloak.delta, cloak.profile.best_test_accuracy)


def _stay(cloak: "Cloak") -> Iterator[Figure]:
    stay = cloak.stay
    if stay is None:
        return
    seen = "," if cloak.scope is Scope.NETWORK else f" of {_observer(cloak.scope)}"
    follow = "its readings follow it at once"
    if after := lingering(cloak.allowance):
        follow = f"its warmth no longer changes how readings round {after * stay.readings:,} frames after it has left"
    sentence = (
        f"Where a unit source stays, within {cloak.alpha:g}, if it stays there for up to {stay.readings:,} consecutive "
        f"frames, from an observer who keeps all frames{seen} also those before and after. The other sources may move; "
        f"this one does not, and {follow}. A stay may begin and end at any frame. Several stays add up."
    )
    label = "Frames of the longest stay that is hidden"
    yield Figure("stay_readings", label, stay.readings, f"{stay.readings:,}", "", sentence)
    right = float(special.ndtr(cloak.stay_mu(stay.readings) / 2))
    yield from _claim("stay_", "a stay", stay.epsilon, stay.delta, right)


def _flip_window(flip: "Flip") -> Iterator[Figure]:
    n = flip.readings_per_window
    readings = "the one reading of a window" if n == 1 else f"all {n} readings of a window"
    sensors = "one sensor" if flip.sensors == 1 else f"up to {flip.sensors} sensors"
    sentence = (
        f"Everything that {sensors} saw during a window, from an observer who has {readings}. That covers whether "
        "anyone was there at all."
    )
    label = "Sensors that one person may change in a reading"
    yield Figure("sensors", label, flip.sensors, f"{flip.sensors:,}", "", sentence)
    yield Figure("readings_per_window", "Readings that the guarantee covers together", n, f"{n:,}", "", None)
    yield from _claim("", "a window", flip.epsilon, flip.delta, flip.best_test_accuracy(n))


def _assumptions(cloak: "Cloak") -> Iterator[str]:
    """Yield what must be true for the guarantee to hold."""
    physics, tolerance = cloak.physics, cloak.family.tolerance
    if not cloak.delta:
        yield (
            "A delta of 0 is that of the distribution of the noise. A device draws it from tables that differ from it "
            "by less than 1e-33 for each reading."
        )
    yield from _distance(physics)
    if cloak.scope is Scope.NETWORK:
        yield cloak.family.timing.sentence(physics.length_unit or "units of length")
    further_by = 0.0 if tolerance.memory else cloak.memory_cost
    if further_by:
        further = (
            f"up to {100 * further_by:.0f} % further than the guarantee allows. A tolerance with memory covers that."
        )
        if math.isnan(further_by):
            further = "further than the guarantee allows. How far is not computed for a floor this large."
        yield (
            "The guarantee assumes readings that follow the sources at once. Where warmth lingers, moves in the past "
            f"add up: they can shift a frame {further}"
        )
    if cloak.rests_on_noise_floor:
        yield (
            "The guarantee assumes that each sensor has the stated noise floor before its hardware rounds: Gaussian, "
            "at least as large, independent from reading to reading and from the other sensors; and that the hardware "
            "rounds in equal steps within its range."
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


def _cost(cloak: "Cloak") -> Iterator[Figure]:
    spread, k = spread_of(cloak.sigmas), cloak.readings_per_window
    sentence = f"{cloak.noise.title()} noise with a standard deviation of {spread}."
    yield Figure("sigma", "Standard deviation of the noise", cloak.sigmas.tolist(), spread, "", sentence)
    shift = cloak.sensitivity
    yield Figure("sensitivity", "Shift of the readings by a hidden move, at most", shift, rounded_up(shift))
    steps = cloak.resolution_cost
    yield _share("resolution_cost", "Cost of the steps of hardware and sending", steps, _steps(cloak))
    if cloak.slow is not None:
        share = float((cloak.slow.deviations(cloak.steps) / cloak.sigmas).max()) ** 2
        for name, label, times in (("", "a reading", 1), ("mean_", "the mean of a window", k)):
            more = 1 + share * times
            yield Figure(f"{name}offset_variance", f"Slow offsets: variance of {label}", more, f"{more:.3g}", "times")
    if timing := cloak.timing_cost:
        yield _share("timing_cost", "More noise because sources move while sensors measure in turn", timing)
    if k > 1:
        gaussian = cloak.noise is NoiseLaw.GAUSSIAN
        more, label = math.sqrt(k) if gaussian else k, "Noise of covering a window over that of one frame"
        yield Figure("window_cost", label if gaussian else f"{label}, at most", more, rounded_up(more, 3), "times")
    if cloak.design is Design.LEAST_ERROR:
        yield _designed(cloak)
        return
    value = rule_of_thumb(cloak)
    sentence = (
        "Rule of thumb: from one window, an unbiased method locates a lone unit source with a standard deviation of "
        f"about {value:.3g} at best (Cramer-Rao). If that is large, a method that knows the extent of the space does "
        "better."
    )
    label = "Rule of thumb: a window locates a lone source to (standard deviation)"
    yield Figure("rule_of_thumb", label, value, f"{value:.3g}", cloak.physics.length_unit, sentence)


def rule_of_thumb(cloak: "Cloak") -> float:
    """Return how well one window locates a lone unit source at best: the least standard deviation along an axis."""
    mu = cloak.frame_mu / (1 + cloak.resolution_cost) * math.sqrt(cloak.readings_per_window)
    return cloak.alpha / (mu * cloak.distribution.efficiency)


def _share(name: str, label: str, value: float, sentence: str = "") -> Figure:
    return Figure(name, label, value, percent(value).removesuffix(" %"), "%", sentence)


def _steps(cloak: "Cloak") -> str:
    sent, more = f"{float(cloak.steps.min()):.3g}", more_noise(cloak.resolution_cost)
    if cloak.resolution is None:
        return f"Readings count as exact before they are sent. Sending them in steps of {sent} takes {more}."
    hardware = f"{float(np.max(cloak.resolution)):.3g}"
    if cloak.rests_on_noise_floor:
        own, alone = float(np.min(cloak.noise_floor)), cloak.resolution_cost_without_noise_floor
        return (
            f"Hardware that reads in steps of {hardware}, with a noise floor of at least {own:.3g} before it rounds, "
            f"and sending readings in steps of {sent}, take {more}. Without the noise floor, the same noise levels "
            f"would take {more_noise(alone)}."
        )
    remedy = " State noise_floor, the noise of the sensors before they round: half a step makes the step almost free."
    return (
        f"Hardware that reads in steps of {hardware}, and sending readings in steps of {sent}, take {more}."
        f"{remedy if cloak.resolution_cost > LARGE_COST and cloak.noise is NoiseLaw.GAUSSIAN else ''}"
    )


def _designed(cloak: "Cloak") -> Figure:
    report, drift = cloak.design_report, cloak.allowance.drift
    equal = rounded_up(float(cloak.allowance.equal().sigma[0]))
    rest = ", the others send little but noise" if report.carrying < cloak.physics.sensors else ""
    spite = ", with the stated drift," if drift else ""
    if isinstance(drift, Nuisance):
        spite = ", with what earlier ones leave unknown of the stated drift,"
    sentence = (
        f"Noise differs between sensors so that a lone source is located best: {report.carrying} of "
        f"{cloak.physics.sensors} sensors carry 99 % of the information{rest}. From one window{spite} an "
        f"unbiased method locates the source along an axis with a mean variance of {report.variance:.3g} and a typical "
        f"standard deviation of {report.vicinity:.3g}. At the same guarantee, equal noise ({equal}) gives "
        f"{report.equal_variance:.3g} and {report.equal_vicinity:.3g}."
    )
    label = "A window locates a lone source that was somewhere in the space to (standard deviation)"
    return Figure("design_std", label, report.vicinity, f"{report.vicinity:.3g}", cloak.physics.length_unit, sentence)


def _drivers(cloak: "Cloak", names: Sequence[str]) -> Iterator[Figure]:
    """Yield the moves and the sensors that set the noise; `names` are the names of the sensors."""
    if cloak.scope is Scope.SENSOR:
        slopes = cloak.family.each
        worst, share = names[int(np.argmax(slopes / cloak.sigmas))], _median_share(slopes)
        sentence = f"Sensor {worst} is the most exposed. The median sensor has {share} times the largest slope."
        yield Figure("exposed", "Most exposed sensor", [worst], worst, "", sentence)
        return
    weights = 1 / cloak.sigmas
    pair = cloak.family.at_once.steepest(weights).pair
    ends = [cloak.physics.space.name(place) for place in pair]
    sentence = (
        f"Moves between the places ({ends[0]}) and ({ends[1]}) set the noise. The median pair of neighbours has "
        f"{_median_share(cloak.physics.steps().norms(weights))} times the largest slope."
    )
    yield Figure("steepest", "Moves that set the noise are between", ends, f"({ends[0]}) and ({ends[1]})", "", sentence)
    move = np.zeros(cloak.physics.places)
    move[list(pair)] = 1, -1
    shifts = (cloak.physics.apply(move) * weights) ** 2
    top = np.argsort(shifts)[::-1][:SHOWN_SENSORS]
    seen = float((shifts / max(float(shifts.sum()), 1e-300))[top].sum())
    exposed = [names[int(sensor)] for sensor in top]
    sentence = f"Sensors {', '.join(exposed)} see {100 * seen:.0f} % of that move.{_without(cloak, weights, top)}"
    yield Figure("exposed", "Sensors that see most of that move", exposed, ", ".join(exposed), "", sentence)
    if not cloak.physics.explicit and cloak.physics.near is None:
        loose = cloak.physics.looseness()
        if math.isfinite(loose):
            label = "Noise over what the steepest pair of neighbours needs, at most"
            yield Figure("looseness", label, loose, rounded_up(loose, 3), "times")


def _without(cloak: "Cloak", weights: FloatArray, top: Any) -> str:
    """Return how much less noise the other sensors need without the most exposed ones, as a sentence."""
    large = not cloak.physics.explicit and cloak.physics.near is None
    if large or len(top) == len(weights):
        return ""
    kept = weights.copy()
    kept[top] = 0.0
    saved = 1 - cloak.family.steepest(kept).value / cloak.family.steepest(weights).value
    return f" Without them, the others would need {100 * saved:.0f} % less noise." if saved >= 0.01 else ""


def _median_share(slopes: FloatArray) -> str:
    largest = float(slopes.max(initial=0.0))
    return f"{float(np.median(slopes)) / largest:.2f}" if largest > 0 else "0"
