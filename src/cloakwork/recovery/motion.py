"""How sources move: how long they stay, how fast they walk, and how often they come and go."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError
from cloakwork.recovery.path_steps import Beliefs

HOUR = 3600.0
FARTHEST = 6.0  # a walker goes at most so many times as far as at its usual speed
PATCH = 0.5  # places within this part of a walk are one patch: a walker may come to any of them alike
SETTLES = 0.3  # at most so many of those who walk sit down before the next frame
MAX_INTERVALS = 16


@dataclass(frozen=True)
class Motion:
    """How sources move; times in seconds, distances in the unit of the space, along paths that no wall cuts.

    A source sits or walks. In an interval of t seconds, a sitting source begins to walk with probability
    1 - exp(-t / mean_sit_s), and a walking source sits down with probability 1 - exp(-t / mean_walk_s), but at most
    0.3: someone who has just moved often moves again soon, however long the interval. A walk to a place at distance d
    has a weight of exp(-d / (speed t)), up to six times as far as at that speed. A source that is there disappears at
    a rate of 1 / mean_present_s, and one that is not appears at a rate of 1 / mean_absent_s.

    Parameters
    ----------
    mean_sit_s
        How long a source sits on average, in seconds; infinite for sources that never move.
    mean_walk_s
        How long it walks, in seconds.
    speed
        How fast it walks, straight on, in units of the space per second.
    mean_present_s
        How long a source is there, in seconds.
    mean_absent_s
        How long one that has gone takes to return, in seconds, for each of the sources that there can be.
    entrances
        Positions or labels of the places where sources come and go; None for anywhere.

    >>> Motion.still().mean_sit_s
    inf
    """

    mean_sit_s: float = 600.0
    mean_walk_s: float = 10.0
    speed: float = 0.7
    mean_present_s: float = 2 * HOUR
    mean_absent_s: float = 2 * HOUR
    entrances: tuple[object, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("mean_sit_s", "mean_walk_s", "speed", "mean_present_s", "mean_absent_s"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise InputError(f"{name}={value!r}: give a number above 0.", **{name: value})
        if self.entrances is not None and not len(self.entrances):
            raise InputError("entrances is empty: give at least one place, or None for anywhere.", entrances=())

    @classmethod
    def still(cls, *, mean_present_s: float = 24 * HOUR, mean_absent_s: float = 24 * HOUR) -> "Motion":
        """Sources that appear and disappear but never move, such as leaks and machines."""
        return cls(mean_sit_s=math.inf, mean_present_s=mean_present_s, mean_absent_s=mean_absent_s)

    @property
    def sitting(self) -> float:
        """The share of sources that sit, before any reading."""
        return 1.0 if math.isinf(self.mean_sit_s) else self.mean_sit_s / (self.mean_sit_s + self.mean_walk_s)

    @property
    def present_share(self) -> float:
        """The share of sources that are there, before any reading."""
        return self.mean_present_s / (self.mean_present_s + self.mean_absent_s)

    def walk_length(self, seconds: float, spacing: float) -> float:
        """How far a walk usually leads in an interval, at least the distance between neighbouring places."""
        return spacing if math.isinf(self.mean_sit_s) else max(self.speed * seconds, spacing)


@dataclass(frozen=True, eq=False)
class Transitions:
    """The probabilities of one interval, over states: sits at each place, walks at each place, absent.

    `patch` (n,) is the patch of each place, `reach` (patches, patches) the symmetric weight of a walk between a place
    of one patch and a place of another, sparse on large floors. `leave` and `arrive` (n,) are the probability to
    disappear from a place, and where an absent source appears if it does (`appear`).
    """

    patch: IntArray
    reach: Any
    begin: float
    settle: float
    leave: Beliefs
    arrive: Beliefs
    appear: float

    @cached_property
    def step(self) -> tuple[Any, ...]:
        """The arguments of the compiled steps."""
        mass = (self.reach @ np.bincount(self.patch))[self.patch]
        flow = ((1 - self.leave) / mass).astype(np.float32)
        return (self.patch, self.reach, flow, self.leave, self.arrive, self.begin, self.settle, self.appear)


@dataclass(frozen=True, eq=False)
class MotionModel:
    """A motion on given places: `distances` (n, n) along paths, and `spacing` between neighbouring places.

    `doors` (n,) is the distance of each place from the nearest entrance, None if sources come and go anywhere.
    """

    motion: Motion
    distances: NDArray[np.float32]
    spacing: float
    doors: NDArray[np.float32] | None = None

    @property
    def first(self) -> Beliefs:
        """Where a source is, and whether it sits, before any reading: shape (2n,)."""
        n, sits = len(self.distances), self.motion.sitting
        return np.repeat(np.array([sits / n, (1 - sits) / n], dtype=np.float32), n)

    def over(self, seconds: float) -> Transitions:
        """The transitions of an interval."""
        return self._transitions(whole_milliseconds(seconds))

    @memoize(MAX_INTERVALS)
    def _transitions(self, seconds: float) -> Transitions:
        length = self.motion.walk_length(seconds, self.spacing)
        centres, patch = _patches(self.distances, PATCH * length)
        far = self.distances[np.ix_(centres, centres)] / np.float32(length)
        reach = np.where(far > FARTHEST, 0, np.exp(-np.minimum(far, FARTHEST)))
        return transitions_between(self.motion, seconds, length, patch, reach.astype(np.float32), self.doors)


def whole_milliseconds(seconds: float) -> float:
    """An interval in seconds, so that transitions of nearly equal ones are computed once."""
    return max(1, round(1000 * seconds)) / 1000


def transitions_between(
    motion: Motion, seconds: float, length: float, patch: IntArray, reach: Any, doors: NDArray[np.float32] | None
) -> Transitions:
    """The transitions of an interval on given patches, over which a walk of `length` leads as far as `reach` says."""
    n = len(patch)
    near = np.ones(n, dtype=bool) if doors is None else doors <= max(length, float(doors.min()))
    often = motion.present_share
    changed = -math.expm1(-seconds * (1 / motion.mean_present_s + 1 / motion.mean_absent_s))
    return Transitions(
        patch=patch,
        reach=reach,
        begin=-math.expm1(-seconds / motion.mean_sit_s),
        settle=1.0 if math.isinf(motion.mean_sit_s) else min(SETTLES, -math.expm1(-seconds / motion.mean_walk_s)),
        # as many leave as without entrances, but only there
        leave=np.where(near, min(1.0, (1 - often) * changed * n / near.sum()), 0).astype(np.float32),
        arrive=(near / near.sum()).astype(np.float32),
        appear=often * changed,
    )


def _patches(distances: NDArray[np.float32], radius: float) -> tuple[IntArray, IntArray]:
    """Cut places into patches of a radius: the place in the middle of each patch, and the patch of each place."""
    patch = np.full(len(distances), -1, dtype=np.int64)
    centres: list[int] = []
    for place in range(len(distances)):
        if patch[place] < 0:
            patch[(patch < 0) & (distances[place] <= radius)] = len(centres)
            centres.append(place)
    return np.array(centres), patch
