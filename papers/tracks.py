"""People in three rooms, through the whole chain: readings, noise, recovery, and the distance of maps to the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao, emd
from cloakwork.demo import Position
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Calibration, Cloak, Design
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, recover
from papers.experiment import Progress, stream
from papers.statistics import Mean

WALLS = (((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0)))
DOORS = (((6.0, 1.5), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.5)))
EPSILON, DELTA, ALPHA = 8.0, 1e-5, 0.1
EVERY_MS, READINGS = 3_000, 20  # a reading every three seconds; the claim covers all readings of a minute
MOST = 4
MINUTES_DRAWS = 4  # of the noise, for each minute


class Method(StrEnum):
    """A noise together with a way of recovery."""

    PAPERS = "papers' noise, basis pursuit"
    PAPERS_NOISE = "papers' noise, posterior"
    PURSUIT = "equal noise, basis pursuit"
    EQUAL = "equal noise, posterior"
    OURS = "designed noise, posterior (ours)"
    WINDOW = "designed noise, mean of a minute"

    @property
    def estimator(self) -> Estimator:
        """Its estimator; the posterior knows that a person has strength 1 and that there are at most four."""
        if self is Method.PAPERS:
            return BasisPursuit(radius=Radius.PAPER)
        return BasisPursuit() if self is Method.PURSUIT else PointSources(1.0, most=MOST)


@cache
def flat() -> FloorPlan:
    """Three rooms of 10 m x 8 m in cells of half a metre, a sensor on each square metre, people with a reach of 1 m."""
    rooms = Rooms.from_walls((10.0, 8.0), cell=0.5, walls=WALLS, doors=DOORS)
    at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


@cache
def cloak_of(method: Method) -> Cloak:
    """The noise of a method; the claim is the same for all."""
    papers = method in (Method.PAPERS, Method.PAPERS_NOISE)
    designed = method in (Method.OURS, Method.WINDOW)
    return Cloak(
        flat(),
        epsilon=EPSILON,
        delta=DELTA,
        alpha=ALPHA,
        readings_per_window=READINGS,
        calibration=Calibration.PAPER if papers else Calibration.EXACT,
        design=Design.LEAST_ERROR if designed else Design.EQUAL,
    )


@dataclass(frozen=True)
class Track:
    """The distance of one method's maps to the truth, in metres.

    `distances` are means over `draws` of the noise at each moment, `mean` is the mean of all. `sigma` is the median
    noise of the readings that a map is made from, `empty` the share of empty maps.
    """

    method: Method
    sigma: float
    empty: float
    draws: int
    mean: Mean
    distances: tuple[float, ...]


def follow(
    method: Method, truth: FloatArray, draws: int, key: tuple[int, ...], progress: Progress
) -> tuple[Track, FloatArray]:
    """Try one method on true maps; return its track and its maps of the first draw."""
    cloak, readings = cloak_of(method), flat().apply(truth)
    minutes = method is Method.WINDOW
    draws = MINUTES_DRAWS if minutes else draws
    maps = []
    for draw in range(draws):
        progress(draw, draws)
        noisy = cloak.simulate(readings, rng=stream(*key, draw))
        maps.append(_maps_of_minutes(noisy) if minutes else recover(noisy, cloak, estimator=method.estimator).map)
    errors = np.array([distances(truth, each) for each in maps])
    by_moment = errors.mean(axis=0)
    # the maps of a minute are the same map: only draws are independent
    mean = Mean.of(errors.mean(axis=1)) if minutes or len(truth) == 1 else Mean.of(by_moment)
    sigma = float(np.median(cloak.sigmas)) / (np.sqrt(READINGS) if minutes else 1.0)
    empty = float(np.mean([~each.any(axis=1) for each in maps]))
    return Track(method, float(sigma), empty, draws, mean, tuple(by_moment.round(4).tolist())), maps[0]


def _maps_of_minutes(noisy: FloatArray) -> FloatArray:
    """Maps of the mean reading of each window, repeated for each moment in it."""
    maps = []
    for start in range(0, len(noisy), READINGS):
        window = noisy[start : start + READINGS]
        sigmas = cloak_of(Method.WINDOW).sigmas / np.sqrt(len(window))
        recovery = recover(window.mean(axis=0), flat(), sigma=sigmas, estimator=Method.WINDOW.estimator)
        maps += [recovery.map] * len(window)
    return np.array(maps)


def distances(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """The earth mover distance along walkable paths of each map to its truth; an empty map counts as uniform."""
    uniform = np.ones(truth.shape[1])
    pairs = zip(maps, truth, strict=True)
    return np.array([emd(found if found.any() else uniform, scene, flat().space) for found, scene in pairs])


def map_of(people: Sequence[Position]) -> FloatArray:
    """The true map: a source of strength 1 in each person's cell."""
    cells = [flat().rooms.cell_at(*at) for at in people]
    return np.bincount(cells, minlength=flat().places).astype(np.float64)


def limit_of(people: Sequence[Position]) -> float:
    """The Cramer-Rao bound of an analyst who knows the number of people, at most the size of the flat."""
    limit = cramer_rao(flat(), people, cloak_of(Method.OURS).sigma).expected_emd
    return float(min(limit, sum(flat().rooms.size)))
