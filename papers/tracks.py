"""People in three rooms, through the whole chain: readings, noise, recovery, and how far maps are from the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao, emd
from cloakwork.demo.recorded import Position
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Calibration, Cloak, Design
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, recover
from papers.experiment import Progress, stream
from papers.trials import Mean

WALLS = (((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0)))
DOORS = (((6.0, 1.5), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.5)))
EPSILON, DELTA, ALPHA = 8.0, 1e-5, 0.1
EVERY_MS, READINGS = 3_000, 20  # a reading every three seconds; the claim covers those of a minute together
MOST = 4
MINUTES_DRAWS = 4  # of noise, for each minute


class Method(StrEnum):
    """A way from people to a map: how much noise, and how it is seen through."""

    PAPERS = "papers: their noise, R"
    PAPERS_NOISE = "papers' noise, posterior"
    PURSUIT = "equal noise, R"
    EQUAL = "equal noise, posterior"
    OURS = "designed noise, posterior (ours)"
    WINDOW = "designed noise, mean of a minute"

    @property
    def estimator(self) -> Estimator:
        """What it recovers with; the posterior knows that a person has strength 1, and that there are at most four."""
        if self is Method.PAPERS:
            return BasisPursuit(radius=Radius.PAPER)
        return BasisPursuit() if self is Method.PURSUIT else PointSources(1.0, most=MOST)

    @property
    def calibration(self) -> Calibration:
        """How the noise is chosen."""
        return Calibration.PAPER if self in (Method.PAPERS, Method.PAPERS_NOISE) else Calibration.EXACT

    @property
    def design(self) -> Design:
        """How the noise is shared among sensors."""
        return Design.LEAST_ERROR if self in (Method.OURS, Method.WINDOW) else Design.EQUAL


@cache
def flat() -> FloorPlan:
    """Three rooms of 10 m x 8 m in cells of half a metre, a sensor on each square metre, and people with 1 m reach."""
    rooms = Rooms.from_walls((10.0, 8.0), cell=0.5, walls=WALLS, doors=DOORS)
    at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


@cache
def cloak_of(method: Method) -> Cloak:
    """The noise that a method adds; the claim is the same for all."""
    return Cloak(
        flat(),
        epsilon=EPSILON,
        delta=DELTA,
        alpha=ALPHA,
        readings_per_window=READINGS,
        calibration=method.calibration,
        design=method.design,
    )


@dataclass(frozen=True)
class Track:
    """How far the maps of one method are from the truth, in metres.

    `distances` are those at each moment, means over `draws` of the noise; `mean` is that of all of them. `sigma` is the
    median noise of what a map is made from, and `empty` the share of empty maps.
    """

    method: Method
    sigma: float
    empty: float
    draws: int
    mean: Mean
    distances: tuple[float, ...]

    @property
    def row(self) -> tuple[str, ...]:
        """The same for people to read."""
        far = f"{self.mean.value:.2f} ± {self.mean.error:.2f}"
        return (str(self.method), far, f"{self.sigma:.3f}", f"{100 * self.empty:.0f} %", f"{self.draws}")


def follow(
    method: Method, truth: FloatArray, draws: int, key: tuple[int, ...], progress: Progress
) -> tuple[Track, FloatArray]:
    """How one method does, and its maps of the first draw."""
    cloak, readings = cloak_of(method), flat().apply(truth)
    minutes = method is Method.WINDOW
    draws = MINUTES_DRAWS if minutes else draws
    found = []
    for draw in range(draws):
        progress(draw, draws)
        noisy = cloak.simulate(readings, rng=stream(*key, draw))
        found.append(_minutes(noisy) if minutes else recover(noisy, cloak, estimator=method.estimator).map)
    far = np.array([distances(truth, maps) for maps in found])
    each = far.mean(axis=0)
    # the maps of a minute are the same map: there only draws are independent
    mean = Mean.of(far.mean(axis=1)) if minutes or len(truth) == 1 else Mean.of(each)
    sigma = float(np.median(cloak.sigmas)) / (np.sqrt(READINGS) if minutes else 1.0)
    empty = float(np.mean([~maps.any(axis=1) for maps in found]))
    return Track(method, float(sigma), empty, draws, mean, tuple(each.round(4).tolist())), found[0]


def _minutes(noisy: FloatArray) -> FloatArray:
    """Maps of the mean reading of each window, one for each moment in it."""
    maps = []
    for start in range(0, len(noisy), READINGS):
        window = noisy[start : start + READINGS]
        sigmas = cloak_of(Method.WINDOW).sigmas / np.sqrt(len(window))
        found = recover(window.mean(axis=0), flat(), sigma=sigmas, estimator=Method.WINDOW.estimator)
        maps += [found.map] * len(window)
    return np.array(maps)


def distances(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """Walking earth mover distance of each map to its truth, in metres; an empty map counts as the uniform one."""
    uniform = np.ones(truth.shape[1])
    pairs = zip(maps, truth, strict=True)
    return np.array([emd(found if found.any() else uniform, scene, flat().space) for found, scene in pairs])


def map_of(people: Sequence[Position]) -> FloatArray:
    """The true map: a unit source in each person's cell."""
    cells = [flat().rooms.cell_at(*at) for at in people]
    return np.bincount(cells, minlength=flat().places).astype(np.float64)


def limit_of(people: Sequence[Position]) -> float:
    """What an analyst who knows the number of people can reach, where the readings hold the information."""
    limit = cramer_rao(flat(), people, cloak_of(Method.OURS).sigma).expected_emd
    return float(min(limit, sum(flat().rooms.size)))
