"""Declared errors of a model: the sensitivity is then the largest over the whole set of models."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cloakwork._checks import FloatArray, not_negative
from cloakwork._method_cache import memoize
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics, Slope
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.floorplan import FloorPlan
from cloakwork.physics.graph import Graph
from cloakwork.physics.later_readings import LaterModels
from cloakwork.physics.line import HeatLine, Placement
from cloakwork.physics.plane import HeatPlane

DISTANCES = np.geomspace(1 / 8, 512, 49)  # of two paths, in ways that a source travels, at which bounds are evaluated
SPREADS = 9  # diffusion values evaluated over the declared interval
MAX_KEPT = 10_000_000  # numbers in memory for slopes within regions
MAX_SLOPES = 1000  # kept, of different weights of the sensors
MAX_DOORS = 6  # at most 2^6 plans are evaluated
BETWEEN_AGES = (
    0.01  # room for heat between the ages that are evaluated; the largest excess found in a search of floors is 0.002
)


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

    def sentence(self, length: str = "units of length") -> str:
        """Return what the claim assumes about time, in plain English; `length` is the unit of the space."""
        if self.spread == 0:
            return "The claim assumes that all sensors of a frame measure at the same instant."
        within = f"all sensors of a frame measure within {self.spread:g} s"
        if self.speed == "any":
            return f"The claim assumes that {within}. Sources may move at any speed."
        if self.speed == 0:
            return f"The claim assumes that {within}, and that sources stay where they are meanwhile."
        speed = f"{self.speed:g} {length} per second"
        return f"The claim assumes that {within}, and that no source moves faster than {speed}."


AT_ONCE = Timing()


@dataclass(frozen=True)
class Tolerance:
    """The set of models that a privacy claim covers.

    `diffusion` is the largest relative error of the diffusion (T, tau, or the square of a reach), `gain` that of each
    sensor's gain, and `position` the largest distance of each sensor from its modelled position, in units of the space.
    With `doors`, each door of a floor plan may be open or shut; a shut door is a wall, whose sides are not neighbours.
    With `memory`, the warmth of steady sources may follow them with any time constant, instead of at once.
    With `later`, all sensors read a pulse at the model's time after its emission or at any later time, as in a window
    with several readings.

    >>> Tolerance(gain=0.05).sentences()
    ("each sensor's gain within 5 % of the stated one",)
    """

    diffusion: float = 0.0
    gain: float = 0.0
    position: float = 0.0
    doors: bool = False
    memory: bool = False
    later: bool = False

    def __post_init__(self) -> None:
        for name in ("diffusion", "gain", "position"):
            not_negative(name, getattr(self, name), error=PhysicsError)
        if self.diffusion >= 1:
            raise PhysicsError(f"diffusion={self.diffusion}: give a relative error below 1.", diffusion=self.diffusion)

    def sentences(self) -> tuple[str, ...]:
        """The declared set in plain English, one sentence per kind of error."""
        sentences = []
        if self.diffusion and self.later:
            sentences.append(f"diffusion of at least {1 - self.diffusion:g} times the stated one")
        elif self.diffusion:
            sentences.append(
                f"diffusion between {1 - self.diffusion:g} and {1 + self.diffusion:g} times the stated one "
                f"({SPREADS} values evaluated, plus half the largest change between two of them)"
            )
        if self.gain:
            sentences.append(f"each sensor's gain within {100 * self.gain:g} % of the stated one")
        if self.position:
            sentences.append(f"each sensor within {self.position:g} of its stated position")
        if self.doors:
            sentences.append("each door open or shut (a shut door is a wall: it does not hide a source's side)")
        if self.memory:
            sentences.append("rooms that remember: warmth that follows its source with any time constant")
        if self.later:
            sentences.append("a pulse read at the stated time after its emission or at any later time")
        return tuple(sentences)


@dataclass(frozen=True, eq=False)
class Family:
    """A model with its declared errors; computes the steepest slope over the whole set."""

    physics: Physics
    tolerance: Tolerance = Tolerance()
    timing: Timing = AT_ONCE

    @property
    def members(self) -> tuple[Physics, ...]:
        """The evaluated models."""
        return tuple(member for spreads in self._by_doors for member in spreads)

    @cached_property
    def _by_doors(self) -> tuple[tuple[Physics, ...], ...]:
        """For each set of shut doors, the models over the interval of the diffusion, in order."""
        spreads: list[Physics] = [self.physics]
        if self.tolerance.later:
            spreads = [self._earliest]
        elif self.tolerance.diffusion:
            low, high = 1 - self.tolerance.diffusion, 1 + self.tolerance.diffusion
            factors = np.unique(np.append(np.geomspace(low, high, SPREADS), 1.0))
            spreads = [self.physics if k == 1 else self.physics.with_spread(float(k)) for k in factors]
        if not self.tolerance.doors:
            return (tuple(spreads),)
        return tuple(zip(*(_shut(member) for member in spreads), strict=True))

    @property
    def _earliest(self) -> Physics:
        """The model of a pulse that is read as early as the tolerance allows, in an endless space if that helps."""
        earliest = self.physics.with_spread(1 - self.tolerance.diffusion) if self.tolerance.diffusion else self.physics
        only_at_places = isinstance(earliest, HeatLine) and earliest.placement is Placement.GRID
        if isinstance(earliest, HeatPlane | HeatLine) and (
            not only_at_places or self.tolerance.position or self.timing.travel
        ):
            return earliest.endless
        return earliest

    @property
    def doubt(self) -> float:
        """The probability that a slope of any evaluated model is understated."""
        return sum(member.doubt for member in self.members)

    def joint_slope(self, weights: FloatArray | None = None) -> Slope:
        """The steepest joint slope over the set, cached per `weights`."""
        if weights is not None and (weights == weights[0]).all():
            plain = self.joint_slope()
            return Slope(plain.value * float(weights[0]) * (1 + 1e-15), plain.pair)
        return self._steepest(weights)

    def frame_slope(self, weights: FloatArray | None = None) -> float:
        """The largest shift of a frame by neighbours, over alpha, if sources move between its readings.

        Notes
        -----
        Let sources travel at most l while a frame is measured, and S(r) be the largest l2 norm of the slopes of all
        sensors, each at its steepest within a region of diameter r. Neighbours are pairs of paths with weights w_k and
        distances D_k, sum w_k D_k <= alpha, so a bound on shift / D for one pair of unit weight at any distance D
        suffices. The points at the same share of the way from one path to the other lie within a region of diameter l
        on a line or plane, and l + 2 D min(share, 1 - share) where shortest paths may jump. So the mean of S over the
        share is a bound that grows with D. The slope at one instant, plus what both paths add before and after it,
        S(l) l/D, is one that falls with D. For any D', the larger of the two at D' therefore holds for all D; the least
        over some D' counts, or the norm of each sensor's steepest slope anywhere, if that is less.
        """
        if self.timing.travel == 0:
            return self.joint_slope(weights).value
        return self._steepest_frame(np.ones(self.physics.sensors) if weights is None else weights)

    @memoize(MAX_SLOPES)
    def _steepest_frame(self, weights: FloatArray) -> float:
        anywhere = float(_joint(self.sensor_slopes() * weights)) * (1 + 1e-12)
        if self.timing.travel == np.inf or (self.tolerance.later and not self.physics.convex):
            return anywhere
        steepest = 0.0
        for spreads in self._by_doors:
            values = np.array(
                [
                    sum(share * self._frame_slope_of(part, weights) for share, part in self.parts(member))
                    for member in spreads
                ]
            )
            steepest = max(steepest, float(values.max() + _between(values)))
        return min(steepest * (1 + self.tolerance.gain), anywhere)

    def _frame_slope_of(self, member: Physics, weights: FloatArray) -> float:
        travel = self.timing.travel
        norms: dict[int, tuple[CertifiedRows, float]] = {}  # many diameters have the same regions

        def swept(diameter: float) -> float:
            slopes = self._swept_slopes(member, float(diameter))
            if id(slopes) not in norms:
                norms[id(slopes)] = slopes, _norm(slopes, weights)
            return norms[id(slopes)][1]

        if member.convex:
            return swept(travel)
        at_once, later = self._slope_at_once(member, weights).value, member.stretch * travel * swept(travel)
        least, area, before = np.inf, 0.0, 0.0
        for apart in travel * DISTANCES:  # two paths
            area += (apart - before) * swept(travel + apart)
            on_the_way, from_one_instant = area / apart, at_once + later / apart
            least = min(least, max(on_the_way, from_one_instant))
            if on_the_way >= from_one_instant:
                break
            before = apart
        return float(least * (1 + 1e-12))

    def _swept_slopes(self, member: Physics, diameter: float) -> CertifiedRows:
        """The steepest slopes within regions, kept while memory allows."""
        key = (id(member), diameter)
        if key in self._regions:
            return self._regions[key]
        slopes = member.swept_slopes(diameter, displacement=self.tolerance.position)
        held = {id(kept): kept.values.size for kept in (*self._regions.values(), slopes)}
        if sum(held.values()) <= MAX_KEPT:
            self._regions[key] = slopes
        return slopes

    @cached_property
    def _regions(self) -> dict[tuple[int, float], CertifiedRows]:
        return {}

    def parts(self, member: Physics) -> tuple[tuple[float, Physics], ...]:
        """The model itself, or what sources of each age contribute to its readings if it remembers.

        Neighbours are within alpha at every instant, but at each age another pair may be the worst. So the slopes of
        all ages add up. Their sum is a linear interpolation between ages, which can be too small where heat bends
        around walls: `BETWEEN_AGES` is room for that.
        """
        if not self.tolerance.memory:
            return ((1.0, member),)
        if not member.ages:
            raise PhysicsError(
                f"{type(member).__name__} has no memory that is known: only a floor plan with Steady(...) has. Leave "
                "memory out of the tolerance.",
                memory=True,
            )
        return tuple((share * (1 + BETWEEN_AGES), part) for share, part in member.ages)

    def _joint_slope_of(self, member: Physics, weights: FloatArray | None) -> Slope:
        if self.tolerance.later:
            if weights is not None and not member.explicit:  # readings that fade do so at equal noise only
                equal = self._joint_slope_of(member, None)
                return Slope(equal.value * float(weights.max()), equal.pair)
            steepest = self._later(
                member,
                lambda model: np.array(self._slope_at_once(model, weights).value),
                lambda bounds: _joint(bounds if weights is None else bounds * weights),
            )
            return Slope(float(steepest), self._slope_at_once(self.physics, weights).pair)
        slopes = [(share, self._slope_at_once(part, weights)) for share, part in self.parts(member)]
        largest = max(slopes, key=lambda slope: slope[0] * slope[1].value)[1]
        return Slope(sum(share * slope.value for share, slope in slopes), largest.pair)

    def _slope_at_once(self, member: Physics, weights: FloatArray | None) -> Slope:
        return member.joint_slope(weights, displacement=self.tolerance.position)

    def _later(
        self,
        member: Physics,
        slope: Callable[[Physics], FloatArray],
        combine: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        """The largest `slope` of a model of a pulse and of all later times."""
        if isinstance(member, HeatPlane) or (isinstance(member, HeatLine) and member.placement is Placement.ANYWHERE):
            return slope(member)  # of an endless space
        if isinstance(member, Graph) and not member.explicit and member.fades:
            return slope(member)
        if isinstance(member, Graph | FloorPlan | HeatLine) and member.pulse:
            return self._later_models(member).steepest(slope, combine)
        raise PhysicsError(
            f"{type(member).__name__} is not known to be a pulse: leave `later` out of the tolerance.", later=True
        )

    @memoize(MAX_SLOPES)
    def _later_models(self, member: Graph | FloorPlan | HeatLine) -> LaterModels:
        return LaterModels(member, self.tolerance.position)

    @memoize(MAX_SLOPES)
    def _steepest(self, weights: FloatArray | None) -> Slope:
        steepest = Slope(0.0, (0, 0))
        for spreads in self._by_doors:
            slopes = [self._joint_slope_of(member, weights) for member in spreads]
            values = np.array([slope.value for slope in slopes])
            best = int(np.argmax(values))
            value = float(values[best]) + float(_between(values))
            if not value <= steepest.value:
                steepest = Slope(value, slopes[best].pair)
        return Slope(steepest.value * (1 + self.tolerance.gain), steepest.pair)

    @memoize(1)
    def sensor_slopes(self) -> FloatArray:
        """The steepest slope of each sensor over the set, shape (m,)."""
        steepest = np.zeros(self.physics.sensors)
        for spreads in self._by_doors:
            values = np.stack([self._sensor_slopes_of(member) for member in spreads])
            steepest = np.maximum(steepest, values.max(axis=0) + _between(values))
        return np.asarray(steepest * (1 + self.tolerance.gain))

    def _sensor_slopes_of(self, member: Physics) -> FloatArray:
        move = self.tolerance.position
        if self.tolerance.later:
            return self._later(member, lambda model: model.sensor_slopes(displacement=move), lambda bounds: bounds)
        slopes = [share * part.sensor_slopes(displacement=move) for share, part in self.parts(member)]
        return np.asarray(np.sum(slopes, axis=0))


def _joint(slopes: FloatArray) -> FloatArray:
    """The l2 norm over the sensors, the first axis."""
    return np.asarray(np.sqrt((slopes**2).sum(axis=0)))


def _norm(slopes: CertifiedRows, weights: FloatArray) -> float:
    """Largest norm of the weighted slopes of all sensors, each at its steepest within one region."""
    squares = weights**2 @ slopes.values**2  # dense or sparse
    slack = min(
        float(np.sqrt((weights**2).sum())) * slopes.error, float(weights.max(initial=0.0)) * slopes.column_error
    )
    return (float(np.sqrt(squares.max(initial=0.0))) + slack) * (1 + 1e-12)


def _between(values: FloatArray) -> FloatArray:
    """Allowance for models between the evaluated ones: half the largest change from one to the next."""
    if len(values) < 2:
        return np.zeros(values.shape[1:])
    return np.asarray(np.abs(np.diff(values, axis=0)).max(axis=0) / 2)


def _shut(member: Physics) -> list[Physics]:
    """The plan with every subset of its doors shut, the empty subset first."""
    doors = range(0 if member.floor is None else member.floor.doors)
    if len(doors) > MAX_DOORS:
        raise PhysicsError(
            f"{len(doors)} doors make {2 ** len(doors)} plans: a tolerance takes at most {MAX_DOORS} doors.",
            doors=len(doors),
        )
    chosen = (c for k in range(len(doors) + 1) for c in itertools.combinations(doors, k))
    return [member if member.floor and not c else member.with_doors_shut(c) for c in chosen]
