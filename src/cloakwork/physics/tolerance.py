"""Declared errors of a model: the sensitivity is then the largest over the whole set of models."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from cloakwork._checks import FloatArray, not_negative
from cloakwork._method_cache import memoize
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.moves import OUTWARD, Moves, RowMoves, Slope, TravellingMoves

SPREADS = 9  # diffusion values evaluated over the declared interval
MAX_SLOPES = 1000  # kept, of different weights of the sensors
MAX_DOORS = 6  # at most 2^6 plans are evaluated
BETWEEN_AGES = (
    0.01  # room for heat between the ages that are evaluated; the largest excess found in a search of floors is 0.002
)

Groups: TypeAlias = tuple[tuple[float, Moves], ...]  # with a share each; their slopes add up


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
    """A model with its declared errors.

    Notes
    -----
    Every figure is a maximum over models (doors, diffusion) of a sum over groups g (ages of the heat, each with its
    share; else one) of a maximum over moves e:

        max over models of  sum_g share_g max_e ||w D_ge||  +  half the largest change between two diffusions.

    Neighbours are within alpha at every instant, but at each age another pair may be the worst: so the ages add up.
    What a move is depends on the rest of the tolerance: with an error of position, and where sources travel between the
    readings of a frame, each sensor is at its steepest near a place (`Physics.moves`); the moves of a pulse that is
    read at any later time are those at all later times (`Physics.later_moves`).
    """

    physics: Physics
    tolerance: Tolerance = Tolerance()
    timing: Timing = AT_ONCE
    _regions: dict[tuple[int, float], RowMoves] = field(default_factory=dict, init=False, repr=False)

    @property
    def members(self) -> tuple[Physics, ...]:
        """The evaluated models."""
        return tuple(model for models in self._by_doors for model in models)

    @property
    def doubt(self) -> float:
        """The probability that a slope of any evaluated model is understated."""
        return sum(model.doubt for model in self.members)

    @memoize(MAX_SLOPES)
    def steepest(self, weights: FloatArray | None = None) -> Slope:
        """Return the largest shift of the readings, times `weights` (m,), per unit of distance, rounded up.

        Sources travel between the readings of a frame as far as the timing allows.
        """
        if weights is not None and (weights == weights[0]).all():
            equal = self.steepest()
            return Slope(equal.value * float(weights[0]) * (1 + 1e-15), equal.pair)
        steepest = Slope(math.inf, (0, 0))
        if not self._one_by_one:
            steepest = Slope(0.0, (0, 0))
            for spreads in self._groups:
                slopes = [[(share, moves.steepest(weights)) for share, moves in groups] for groups in spreads]
                values = np.array([sum(share * slope.value for share, slope in groups) for groups in slopes])
                value = float(_largest(values))
                if not value <= steepest.value:
                    pair = max(slopes[int(values.argmax())], key=lambda part: part[0] * part[1].value)[1].pair
                    steepest = Slope(value, pair)
            steepest = Slope(steepest.value * (1 + self.tolerance.gain), steepest.pair)
        if self.timing.travel:
            alone = float(np.linalg.norm(self.each if weights is None else self.each * weights)) * OUTWARD
            steepest = Slope(min(steepest.value, alone), steepest.pair)
        return steepest

    @cached_property
    def each(self) -> FloatArray:
        """The steepest slope of each sensor's own reading over the set, shape (m,), rounded up."""
        of_doors = [
            _largest(np.stack([sum(share * moves.each for share, moves in groups) for groups in spreads]))
            for spreads in self._groups
        ]
        return np.asarray(np.max(of_doors, axis=0) * (1 + self.tolerance.gain))

    @property
    def groups(self) -> int:
        """Number of groups of moves: the ages of the heat in rooms with thermal memory, else 1."""
        return 1 if self._one_by_one else len(self._groups[0][0])

    def rows(self, group: int = 0) -> Iterator[Any]:
        """Yield every move of every model in pieces of shape (moves, m): its slopes times the share of the group."""
        if self._one_by_one:
            yield self.each[None]
            return
        for spreads in self._groups:
            for groups in spreads:
                share, moves = groups[group]
                for piece in moves.rows():
                    yield share * piece

    @property
    def _one_by_one(self) -> bool:
        """Whether each sensor counts at its steepest anywhere."""
        travel = self.timing.travel
        return travel == math.inf or (travel > 0 and self.tolerance.later and not self.physics.convex)

    @cached_property
    def _by_doors(self) -> tuple[tuple[Physics, ...], ...]:
        """For each set of shut doors, the models over the interval of the diffusion, in order."""
        error, factors = self.tolerance.diffusion, np.ones(1)
        if error and self.tolerance.later:
            factors = np.array([1 - error])
        elif error:
            factors = np.unique(np.append(np.geomspace(1 - error, 1 + error, SPREADS), 1.0))
        spreads = [self.physics if k == 1 else self.physics.with_spread(float(k)) for k in factors]
        return tuple(zip(*(_by_doors(m) if self.tolerance.doors else (m,) for m in spreads), strict=True))

    @cached_property
    def at_once(self) -> "Family":
        """The same models, with sensors that all measure at the same instant."""
        if not self.timing.travel:
            return self
        family = replace(self, timing=AT_ONCE)
        family.__dict__["_by_doors"] = self._by_doors  # so that no model is computed again
        return family

    @cached_property
    def _groups(self) -> tuple[tuple[Groups, ...], ...]:
        return tuple(tuple(map(self._groups_of, models)) for models in self._by_doors)

    def _groups_of(self, model: Physics) -> Groups:
        """The moves of a model, or of what sources of each age contribute to its readings if it remembers.

        Where heat bends around walls, linear interpolation between the ages can be too small: `BETWEEN_AGES` is room
        for that.
        """
        position, travel = self.tolerance.position, self.timing.travel
        if self.tolerance.later:
            return ((1.0, model.later_moves(position=position, travel=travel)),)
        travel = 0.0 if self._one_by_one else travel
        if not self.tolerance.memory:
            return ((1.0, self._kept(model.moves(position=position, travel=travel))),)
        if not model.ages:
            raise PhysicsError(
                f"{type(model).__name__} has no memory that is known: only a floor plan with Steady(...) has. Leave "
                "memory out of the tolerance.",
                memory=True,
            )
        return tuple(
            (share * (1 + BETWEEN_AGES), self._kept(part.moves(position=position, travel=travel)))
            for share, part in model.ages
        )

    def _kept(self, moves: Moves) -> Moves:
        """The same moves, whose regions share the memory of the family."""
        return replace(moves, kept=self._regions) if isinstance(moves, TravellingMoves) else moves


def _largest(values: FloatArray) -> FloatArray:
    """The largest over the evaluated diffusions, plus half the largest change between two, for those between."""
    between = np.abs(np.diff(values, axis=0)).max(axis=0) / 2 if len(values) > 1 else 0.0
    return np.asarray(values.max(axis=0) + between)


def _by_doors(member: Physics) -> list[Physics]:
    """The plan with every subset of its doors shut, the empty subset first."""
    doors = range(0 if member.floor is None else member.floor.doors)
    if len(doors) > MAX_DOORS:
        raise PhysicsError(
            f"{len(doors)} doors make {2 ** len(doors)} plans: a tolerance takes at most {MAX_DOORS} doors.",
            doors=len(doors),
        )
    chosen = (c for k in range(len(doors) + 1) for c in itertools.combinations(doors, k))
    return [member if member.floor and not c else member.with_doors_shut(c) for c in chosen]
