"""The quality with which simulated people are followed at a site: right room, right count, distance."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy import Habits, SimulatedDay, simulated_day
from cloakwork.physics import Nuisance, Physics, follow
from cloakwork.recovery import FrameEstimate, PointSources, Tracker
from cloakwork.site.build import USUAL_COUNT
from cloakwork.site.installation import Site

BLOCKS = 12  # parts of a simulation, from whose differences the errors come
PRESENT = 0.5  # a source with this probability counts as found
LONGEST_LAG = 100  # frames
FOREVER = (1e8, 1e8)
STEPS_OF_A_LAG, MAX_STEPS = 10, 20  # in which people may move while readings follow them; the most for a frame


@dataclass(frozen=True)
class Estimate:
    """A figure from a simulation, with its standard error; both NaN where there was nothing to count."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Sequence[tuple[int, float]], total: int, *, median: bool = False) -> "Estimate":
        """The mean or median of values, each with its frame of `total`; the error comes from blocks of frames."""
        if not values:
            return cls(math.nan, math.nan)
        frames, numbers = map(np.array, zip(*values, strict=True))
        block = frames * BLOCKS // total
        middle = np.median if median else np.mean
        value = float(middle(numbers))
        sizes = np.bincount(block)
        parts = np.array([float(middle(numbers[block == k])) if size else value for k, size in enumerate(sizes)])
        used = int((sizes > 0).sum())
        spread = float(((sizes * (parts - value)) ** 2).sum()) / sizes.sum() ** 2  # blocks with more values weigh more
        return cls(value, math.sqrt(spread * used / (used - 1)) if used > 1 else math.nan)


@dataclass(frozen=True)
class Quality:
    """The quality with which people are followed, over all moments of a simulation.

    `room` is the share of people who are found in their room, `rooms` the share of moments at which each room has as
    many as are really there, `count` the share of moments with the right total. `spot` is the median distance of a
    person from where they are found, in units of the space.
    """

    room: Estimate
    rooms: Estimate
    count: Estimate
    spot: Estimate


@dataclass(frozen=True)
class Guess:
    """The long-run quality of always giving the same answer.

    `room` is the share of people who are in the largest room, `where`; `count` that of moments with the usual number of
    people.
    """

    where: str
    room: float
    count: float


@dataclass(frozen=True)
class Followed:
    """A simulation: what is known at once, what is known one window later, and what guessing achieves."""

    live: Quality
    settled: Quality
    guess: Guess

    @property
    def useless(self) -> bool:
        """Whether the map is no better than always giving the same answer, even one window later."""
        room = self.settled.room
        return not room.value - 2 * room.error > self.guess.room


def usual_habits(site: Site) -> Habits:
    """The habits of simulated people, or of sources that stay where they are."""
    motion = site.motion
    if math.isinf(motion.mean_sit_s):
        return Habits(sit=FOREVER, present=_around(motion.mean_present_s), away=_around(motion.mean_absent_s))
    return Habits() if site.physics.floor else Habits(speed=motion.speed)


def _around(mean: float) -> tuple[float, float]:
    return mean / 4, 7 * mean / 4


def follow_simulated(
    site: Site,
    sigmas: FloatArray,
    *,
    frames: int,
    seed: int = 0,
    habits: Habits | None = None,
    offsets: Nuisance | None = None,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Followed:
    """Simulate people and noisy readings, follow them, and compare.

    People have the given `habits`, by default the usual ones; `offsets` are those that hide long stays. `progress` is
    called with (frames done, frames in total).

    The people and the standardised noise depend on the seed alone, so that two settings differ by less than their
    errors suggest.
    """
    physics, period = site.physics, site.period_ms / 1000
    habits = habits or usual_habits(site)
    most = site.spec.sources.max_count or USUAL_COUNT
    people, times = max(1, most - 1), np.asarray(period * np.arange(frames), dtype=np.float64)
    day = simulated_day(
        physics.space,
        people,
        seed=seed,
        hours=(times[-1] + period) / 3600,
        habits=habits,
        entrances=site.motion.entrances,
    )
    truth = day.places_at(times)
    strength = _strength(site)
    low, high = strength if isinstance(strength, tuple) else (1.0, 1.0)
    weights = np.random.default_rng([seed, 4]).uniform(low, high, people)
    readings = _true_readings(physics, day, times, period, weights)
    own = np.zeros_like(sigmas) if site.noise_floors is None else site.noise_floors
    if site.resolutions is not None:
        readings = readings + own * np.random.default_rng([seed, 2]).standard_normal(readings.shape)
        readings = np.rint(readings / site.resolutions) * site.resolutions
    sigmas = np.hypot(sigmas, site.map_errors)  # as large as the error that recovery allows for
    readings = readings + sigmas * np.random.default_rng([seed, 1]).standard_normal(readings.shape)
    wandering = None if site.drift is None else site.drift.on(physics)
    if offsets is not None:
        wandering = offsets.joined(wandering)
    if wandering is not None:
        readings = readings + wandering.simulate(times, np.random.default_rng([seed, 3]))
    lag = min(site.spec.privacy.readings_per_window, LONGEST_LAG, frames - 1)
    tracker = Tracker(
        physics,
        sigma=np.hypot(sigmas, own),
        motion=site.motion,
        strength=strength,
        max_sources=most,
        seed=seed,
        lag=lag,
        chains=site.chains,
        drift=wandering,
    )
    live: list[FrameEstimate] = []
    settled: list[FrameEstimate] = []
    with threadpool_limits(1):  # several simulations run in parallel
        for row, time in zip(readings, times.tolist(), strict=True):
            live.append(tracker.step(row, time))
            settled += live[-1].final
            progress(len(live), frames)
    zones, table = ZoneNumbers.of(site), physics.space.distance_table
    judged = slice(min(lag, frames - lag - 1), frames - lag)  # the same moments, without those at which it begins
    return Followed(
        zones.quality(live[judged], truth[judged], table),
        zones.quality(settled[judged], truth[judged], table),
        zones.guess(people, habits),
    )


def _true_readings(
    physics: Physics, day: SimulatedDay, times: FloatArray, period: float, weights: FloatArray
) -> FloatArray:
    """The readings without noise, shape (frames, m); people may move while readings follow them."""
    parts = min(math.ceil(period * STEPS_OF_A_LAG / physics.lag), MAX_STEPS) if physics.lag else 1
    step = period / parts
    between = np.append(times[0], (times[1:, None] - step * np.arange(parts)[::-1]).ravel())
    there = day.places_at(between)
    readings = np.array([physics.matrix[:, row[row >= 0]] @ weights[row >= 0] for row in there])
    return follow(readings, seconds=step, lag=physics.lag)[::parts]


def _strength(site: Site) -> float | tuple[float, float] | None:
    """The strengths that sources can have, in units of the physics."""
    estimator = site.estimator().estimator
    return estimator.strength if isinstance(estimator, PointSources) else 1.0


@dataclass(frozen=True, eq=False)
class ZoneNumbers:
    """The zone of each place by number, with the names of the zones; places in no zone are one more zone."""

    number: IntArray
    names: tuple[str, ...]
    kind: str
    """The word for a zone: room, zone, or place where the site has no zones."""

    @classmethod
    def of(cls, site: Site) -> "ZoneNumbers":
        space = site.physics.space
        if not site.zones:
            kind = "place" if space.labels is None else "node"
            return cls(np.arange(len(space)), tuple(space.name(place) for place in range(len(space))), kind)
        number = np.full(len(space), len(site.zones))
        for k in reversed(range(len(site.zones))):
            number[site.zones[k].places] = k
        kind = "room" if site.physics.floor else "zone"
        return cls(number, (*(zone.label for zone in site.zones), "elsewhere"), kind)

    def tally(self, places: IntArray) -> IntArray:
        """Count these places by zone."""
        return np.bincount(self.number[places], minlength=len(self.names))

    def found(self, moment: FrameEstimate) -> IntArray:
        """Count the sources by zone, each in its most likely one."""
        certain = moment.presence[moment.presence.sum(axis=1) >= PRESENT]
        inside = np.array([np.bincount(self.number, weights=law, minlength=len(self.names)) for law in certain])
        return np.bincount(inside.argmax(axis=1) if len(inside) else [], minlength=len(self.names))

    def quality(self, moments: Sequence[FrameEstimate], truth: IntArray, distances: NDArray[np.float32]) -> Quality:
        """Compare moments with the places where people really were, -1 while away."""
        room, rooms, count, spot = (list[tuple[int, float]]() for _ in range(4))  # each value with its moment
        for k, (moment, row) in enumerate(zip(moments, truth, strict=False)):
            there = row[row >= 0]
            real, found = self.tally(there), self.found(moment)
            rooms.append((k, float((real == found).all())))
            count.append((k, float(int(moment.counts.argmax()) == len(there))))
            if len(there):
                room.append((k, float(np.minimum(real, found).sum() / len(there))))
            apart = distances[np.ix_(there, [source.place for source in moment.sources])]
            spot += [(k, float(value)) for value in (apart[linear_sum_assignment(apart)] if apart.size else ())]
        total = len(moments)
        return Quality(
            room=Estimate.of(room, total),
            rooms=Estimate.of(rooms, total),
            count=Estimate.of(count, total),
            spot=Estimate.of(spot, total, median=True),
        )

    def guess(self, people: int, habits: Habits) -> Guess:
        """The best that one and the same answer achieves: seats are anywhere with equal probability."""
        sizes = np.bincount(self.number)
        here, away = sum(habits.present), sum(habits.away or (0.0,))
        there = here / (here + away)
        count = max(math.comb(people, k) * there**k * (1 - there) ** (people - k) for k in range(people + 1))
        return Guess(self.names[int(sizes.argmax())], float(sizes.max() / sizes.sum()), count)
