"""Maps within a radius of the readings: basis pursuit denoising, exact, and Bregman iteration."""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, count, positive
from cloakwork.errors import InputError
from cloakwork.recovery import active_set
from cloakwork.recovery.column_generation import patches, pursue
from cloakwork.recovery.estimator import FITS, Estimator, Progress, Solution, Status, on_all_cores
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.problem import Problem

_STATUS = {active_set.BEST_FIT: Status.BEST_FIT, active_set.STOPPED: Status.STOPPED, active_set.EMPTY: Status.EMPTY}


@final
@dataclass(frozen=True)
class BasisPursuit(Estimator):
    """The map of least total weight that fits the readings within a radius, with a certificate.

    Parameters
    ----------
    radius
        A bound on ||M f - y||, in units of the readings, or in standard deviations if the noise differs between
        sensors. Left out, it is such that the true map fits with a probability of 0.9, by the noise inside the range
        of the physics.

    Notes
    -----
    min ||f||_1 over f in [0, 1]^n with ||M f - y||_2 <= radius (Gilbert and McMillan, Algorithm 1), solved on the
    numerical range of M by the active-set method of `active_set`.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import recover
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> result = recover(line.apply(sources(line, [0.3])), line, sigma=0.01, estimator=BasisPursuit(radius=0.1))
    >>> result.status.name, round(float(result.map.sum()), 3)
    ('SOLVED', 0.984)
    """

    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None:
            positive("radius", self.radius)

    def solve(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        return _fit_within_radius(self, problem, readings, progress)


@final
@dataclass(frozen=True)
class Bregman(Estimator):
    """Penalised fits that add their misfit back until they reach the radius.

    `iterations` is the largest number of iterations, and the radius that of `BasisPursuit()`.

    Notes
    -----
    f_{t+1} = argmin penalty ||f||_1 + ||M f - p_t||^2 / 2 over the box, p_{t+1} = p_t + (y - M f_{t+1})
    (McMillan, section 8.1.2), with half the penalty at which the map becomes empty. The misfit never grows
    (Theorem 8.4). The end point is not the minimiser of basis pursuit: its total is a few percent higher, and `gap`
    bounds by how much.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import recover
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> result = recover(line.apply(sources(line, [0.3])), line, sigma=0.01, estimator=Bregman())
    >>> [source.at for source in result.sources], result.status.name
    ([0.3], 'REACHED')
    """

    iterations: int = 1000
    radius = None

    def __post_init__(self) -> None:
        count("iterations", self.iterations)

    def solve(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        return _fit_within_radius(self, problem, readings, progress)


def _squared_radius(radius: float | None, problem: Problem, readings: FloatArray) -> FloatArray:
    """Squared radius inside the range, one per frame; negative if the part outside already exceeds the radius."""
    if radius is not None:
        return np.asarray(radius**2 - (problem.outside(readings) ** 2).sum(axis=1))
    rank = problem.range.rank
    return np.full(len(readings), problem.noise**2 * float(special.chdtri(rank, 1 - FITS)) if rank else 0.0)


def _fit_within_radius(
    estimator: BasisPursuit | Bregman, problem: Problem, readings: FloatArray, progress: Progress | None
) -> Solution:
    """Solve all frames on all cores, and collect the certificates."""
    if not problem.physics.explicit:
        return _without_matrix(estimator, problem, readings, progress)
    iterations, solved = 0, Status.SOLVED
    if isinstance(estimator, Bregman):
        iterations, solved = estimator.iterations, Status.REACHED
    data = problem.project(readings)
    rho2 = _squared_radius(estimator.radius, problem, readings)
    reduced = problem.range.reduced
    columns = np.array(reduced.T, order="C")  # a copy even of one row: a read-only array would be compiled for anew
    frames = len(rho2)
    maps = np.zeros((frames, problem.physics.places))
    codes = np.full(frames, active_set.EMPTY, dtype=np.int64)
    misfits, gaps = np.zeros(frames), np.zeros(frames)

    def work(piece: slice) -> int:
        filled = (maps[piece], codes[piece], misfits[piece], gaps[piece])
        active_set.pursue(reduced, columns, data[piece], rho2[piece], iterations, filled)
        return int(piece.stop - piece.start)

    on_all_cores(work, frames if problem.range.rank else 0, progress)
    radius = np.sqrt(np.maximum(rho2, 0.0))
    status = tuple(_STATUS.get(code, solved) for code in codes.tolist())
    return Solution(maps, status, np.maximum(gaps, 0.0), np.maximum(misfits - radius, 0.0), radius)


def _without_matrix(
    estimator: BasisPursuit | Bregman, problem: Problem, readings: FloatArray, progress: Progress | None
) -> Solution:
    """Solve frame after frame with the columns that each needs; the radius counts all sensors."""
    m = problem.physics.sensors
    if isinstance(estimator, Bregman) or problem.offsets is not None:
        raise InputError("a network this large is recovered by BasisPursuit or PointSources, without drift.", sensors=m)
    rho = estimator.radius
    if rho is None:
        rho = problem.noise * float(np.sqrt(special.chdtri(m, 1 - FITS)))
    pursuits = []
    for frame, reading in enumerate(problem.whiten(readings)):
        pursuits.append(pursue(problem, reading, rho**2))
        if progress is not None:
            progress(frame + 1, len(readings))
    misfits = np.array([pursuit.misfit for pursuit in pursuits])
    sizes = misfits / problem.noise
    return Solution(
        maps=np.array([pursuit.weights for pursuit in pursuits]).reshape(len(pursuits), problem.physics.places),
        status=tuple(_STATUS.get(pursuit.code, Status.SOLVED) for pursuit in pursuits),
        gap=np.array([pursuit.gap for pursuit in pursuits]),
        violation=np.maximum(misfits - rho, 0.0),
        radius=np.full(len(pursuits), rho),
        sources=tuple(patches(pursuit.weights, problem.physics.space) for pursuit in pursuits),
        fits=tuple(Fit(float(special.gammaincc(m / 2, size**2 / 2)), float(size**2), m) for size in sizes),
    )
