"""How sources move: how long they stay, how fast they walk, and how often they come and go."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError

Single = NDArray[np.float32]

HOUR = 3600.0
MAX_WALK = 6.0  # the longest walk, in multiples of the usual length
PATCH = 0.5  # cells within this part of a walk form one patch: a walker reaches all of them alike
MAX_SETTLE = 0.3  # the largest probability that a walker sits down before the next frame
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


class Step(NamedTuple):
    """Transition probabilities over one interval, as the kernels take them.

    A source *sits* in a cell, *walks* in a cell, or is *absent*. `begin`, `settle` and `appear` are the probabilities
    to start a walk, to end one, and to appear; `leave` and `arrive` (n,) are those to disappear from each cell and to
    appear there. A walk leads from patch to patch: `patch` (n,) is the patch of each cell, `reach` (patches, patches)
    the symmetric weight of a walk to one cell, and `flow` (n,) the factor that makes the weights of a cell a
    probability.
    """

    patch: IntArray
    reach: Any
    flow: Single
    leave: Single
    arrive: Single
    begin: float
    settle: float
    appear: float

    @classmethod
    def over(
        cls,
        motion: Motion,
        seconds: float,
        length: float,
        patch: IntArray,
        reach: Any,
        entrance_distance: Single | None,
    ) -> "Step":
        """Compute the transitions over `seconds`, in which a walk of `length` leads from patch to patch by `reach`."""
        n = len(patch)
        near = np.ones(n, dtype=bool)
        if entrance_distance is not None:
            near = entrance_distance <= max(length, float(entrance_distance.min()))
        turnover = -math.expm1(-seconds * (1 / motion.mean_present_s + 1 / motion.mean_absent_s))
        # with entrances, as many sources leave as without, but only there
        leaving = min(1.0, (1 - motion.present_share) * turnover * n / near.sum())
        leave = np.where(near, leaving, 0).astype(np.float32)
        settled = -math.expm1(-seconds / motion.mean_walk_s)
        total_weight = (reach @ np.bincount(patch))[patch]
        return cls(
            patch=patch,
            reach=reach,
            flow=((1 - leave) / total_weight).astype(np.float32),
            leave=leave,
            arrive=(near / near.sum()).astype(np.float32),
            begin=-math.expm1(-seconds / motion.mean_sit_s),
            settle=1.0 if math.isinf(motion.mean_sit_s) else min(MAX_SETTLE, settled),
            appear=motion.present_share * turnover,
        )


@dataclass(frozen=True, eq=False)
class MotionModel:
    """A motion over n cells: `distances` (n, n) along paths, and the `spacing` of neighbouring cells."""

    motion: Motion
    distances: Single
    spacing: float
    entrance_distance: Single | None = None

    @property
    def first(self) -> Single:
        """The probability of each state of a source that is there, before any reading: sits, then walks, (2n,)."""
        n, sits = len(self.distances), self.motion.sitting
        return np.repeat(np.array([sits / n, (1 - sits) / n], dtype=np.float32), n)

    def over(self, seconds: float) -> Step:
        return self._over(whole_milliseconds(seconds))

    @memoize(MAX_INTERVALS)
    def _over(self, seconds: float) -> Step:
        length = self.motion.walk_length(seconds, self.spacing)
        centres, patch = _patches(self.distances, PATCH * length)
        far = self.distances[np.ix_(centres, centres)] / np.float32(length)
        reach = np.where(far > MAX_WALK, 0, np.exp(-np.minimum(far, MAX_WALK)))
        return Step.over(self.motion, seconds, length, patch, reach.astype(np.float32), self.entrance_distance)


def whole_milliseconds(seconds: float) -> float:
    """Return an interval rounded to milliseconds, so that transitions of nearly equal ones are computed once."""
    return max(1, round(1000 * seconds)) / 1000


def _patches(distances: Single, radius: float) -> tuple[IntArray, IntArray]:
    """Cut the cells into patches of a radius: the middle cell of each patch, and the patch of each cell."""
    patch = np.full(len(distances), -1, dtype=np.int64)
    centres: list[int] = []
    for cell in range(len(distances)):
        if patch[cell] < 0:
            patch[(patch < 0) & (distances[cell] <= radius)] = len(centres)
            centres.append(cell)
    return np.array(centres), patch
