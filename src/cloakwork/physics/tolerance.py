"""Declared errors of a model: the sensitivity is then the largest over the whole set of models."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloakwork._checks import FloatArray, not_negative
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics, Slope
from cloakwork.physics.floorplan import FloorPlan

SPREADS = 9  # diffusion values evaluated over the declared interval
MOST_DOORS = 6  # at most 2^6 plans are evaluated


@dataclass(frozen=True)
class Tolerance:
    """The set of models that a privacy claim covers.

    `diffusion` is the largest relative error of the diffusion (T, tau, or the square of a reach), `gain` that of each
    sensor's gain, and `position` the largest distance of each sensor from its modelled position, in units of the space.
    With `doors`, each door of a floor plan may be open or shut; a shut door is a wall, whose sides are not neighbours.

    >>> Tolerance(gain=0.05).sentences()
    ("each sensor's gain within 5 % of the stated one",)
    """

    diffusion: float = 0.0
    gain: float = 0.0
    position: float = 0.0
    doors: bool = False

    def __post_init__(self) -> None:
        for name in ("diffusion", "gain", "position"):
            not_negative(name, getattr(self, name), error=PhysicsError)
        if self.diffusion >= 1:
            raise PhysicsError(f"diffusion={self.diffusion}: give a relative error below 1.", diffusion=self.diffusion)

    def sentences(self) -> tuple[str, ...]:
        """The declared set in plain English, one sentence per kind of error."""
        sentences = []
        if self.diffusion:
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
        return tuple(sentences)


@dataclass(frozen=True, eq=False)
class Family:
    """A model with its declared errors; computes the steepest slope over the whole set."""

    physics: Physics
    tolerance: Tolerance = Tolerance()

    @property
    def members(self) -> tuple[Physics, ...]:
        """The evaluated models."""
        return tuple(member for spreads in self._by_doors for member in spreads)

    @cached_property
    def _by_doors(self) -> tuple[tuple[Physics, ...], ...]:
        """For each set of shut doors, the models over the interval of the diffusion, in order."""
        spreads: list[Physics] = [self.physics]
        if self.tolerance.diffusion:
            low, high = 1 - self.tolerance.diffusion, 1 + self.tolerance.diffusion
            factors = np.unique(np.append(np.geomspace(low, high, SPREADS), 1.0))
            spreads = [self.physics if k == 1 else self.physics.with_spread(float(k)) for k in factors]
        if not self.tolerance.doors:
            return (tuple(spreads),)
        return tuple(zip(*(_shut(member) for member in spreads), strict=True))

    def joint_slope(self, weights: FloatArray | None = None) -> Slope:
        """The steepest joint slope over the set, cached per `weights`."""
        if weights is not None and (weights == weights[0]).all():
            plain = self.joint_slope()
            return Slope(plain.value * float(weights[0]) * (1 + 1e-15), plain.pair)
        key = None if weights is None else weights.tobytes()
        if key not in self._slopes:
            self._slopes[key] = self._steepest(weights)
        return self._slopes[key]

    @cached_property
    def _slopes(self) -> dict[bytes | None, Slope]:
        return {}

    def _steepest(self, weights: FloatArray | None) -> Slope:
        move = self.tolerance.position
        steepest = Slope(0.0, (0, 0))
        for spreads in self._by_doors:
            slopes = [member.joint_slope(weights, displacement=move) for member in spreads]
            values = np.array([slope.value for slope in slopes])
            best = int(np.argmax(values))
            value = float(values[best] + _between(values))
            if not value <= steepest.value:
                steepest = Slope(value, slopes[best].pair)
        return Slope(steepest.value * (1 + self.tolerance.gain), steepest.pair)

    def sensor_slopes(self) -> FloatArray:
        """The steepest slope of each sensor over the set, shape (m,)."""
        return self._sensor_slopes

    @cached_property
    def _sensor_slopes(self) -> FloatArray:
        move = self.tolerance.position
        steepest = np.zeros(self.physics.sensors)
        for spreads in self._by_doors:
            values = np.stack([member.sensor_slopes(displacement=move) for member in spreads])
            steepest = np.maximum(steepest, values.max(axis=0) + _between(values))
        return np.asarray(steepest * (1 + self.tolerance.gain))


def _between(values: FloatArray) -> FloatArray:
    """Allowance for models between the evaluated ones: half the largest change from one to the next."""
    if len(values) < 2:
        return np.zeros(values.shape[1:])
    return np.asarray(np.abs(np.diff(values, axis=0)).max(axis=0) / 2)


def _shut(member: Physics) -> list[Physics]:
    """The plan with every subset of its doors shut, the empty subset first."""
    if not isinstance(member, FloorPlan):
        raise PhysicsError(f"{type(member).__name__} has no doors: leave doors out of the tolerance.", doors=True)
    doors = range(member.rooms.doors)
    if len(doors) > MOST_DOORS:
        raise PhysicsError(
            f"{len(doors)} doors make {2 ** len(doors)} plans: a tolerance takes at most {MOST_DOORS} doors.",
            doors=len(doors),
        )
    chosen = (c for k in range(len(doors) + 1) for c in itertools.combinations(doors, k))
    return [member.with_doors_shut(c) if c else member for c in chosen]
