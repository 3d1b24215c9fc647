"""The interface of every estimator, and the solution that it returns."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.recovery.goodness_of_fit import Fit, Misfit
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.vicinity import Source

Progress = Callable[[int, int], None]
CHUNK = 256
FITS = 0.9  # probability with which the true map is within a radius that follows from the noise


class Status(StrEnum):
    """How the solution of a frame ended."""

    SOLVED = "solved: no map with a smaller total fits within the radius"
    REACHED = "stopped at the radius, as Bregman iteration does; the total is not the least"
    EMPTY = "the readings fit within the radius without any source; the map is empty"
    BEST_FIT = "no map fits within the radius; returned the best fit"
    STOPPED = "stopped early; the gap bounds the distance from the optimum"
    WEIGHED = "weighed all placements of point sources; the map has the least expected error"
    SAMPLED = "sampled placements of point sources; the gap is the distance between two independent halves"
    FOLLOWED = "followed point sources over time; the gap is the distance between two independent halves of the draws"
    NOBODY = "no source is more likely than not; the map shows where one would be"


@dataclass(frozen=True, eq=False)
class FrameSolution:
    """The posterior of point sources given one frame: a map (n,), the counts, and expected sources (n,)."""

    map: FloatArray
    status: Status
    gap: float
    sources: tuple[Source, ...]
    fit: Fit
    counts: FloatArray
    intensity: FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """Arrays over frames: maps (frames, n), and the status, gap, violation and radius of each.

    Some estimators add the sources and the fit of each frame, the probabilities of the counts (frames, counts), and the
    expected number of sources at each place (frames, n).
    """

    maps: FloatArray
    status: tuple[Status, ...]
    gap: FloatArray
    violation: FloatArray
    radius: FloatArray
    sources: tuple[tuple[Source, ...], ...] | None = None
    fits: tuple[Fit, ...] | None = None
    counts: FloatArray | None = None
    intensity: FloatArray | None = None

    @classmethod
    def of_frames(cls, frames: Sequence[FrameSolution], places: int, max_sources: int) -> "Solution":
        """The solution of frames with up to `max_sources` point sources, which have no radius."""
        number = len(frames)
        return cls(
            maps=np.array([frame.map for frame in frames]).reshape(number, places),
            status=tuple(frame.status for frame in frames),
            gap=np.array([frame.gap for frame in frames]),
            violation=np.zeros(number),
            radius=np.full(number, np.nan),
            sources=tuple(frame.sources for frame in frames),
            fits=tuple(frame.fit for frame in frames),
            counts=np.array([frame.counts for frame in frames]).reshape(number, max_sources + 1),
            intensity=np.array([frame.intensity for frame in frames]).reshape(number, places),
        )


class Estimator(ABC):
    """A method that computes maps from noisy readings."""

    @abstractmethod
    def solve(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        """Compute maps for readings (frames, m); `progress` receives (frames done, frames in total)."""


def detection_probability(problem: Problem) -> FloatArray:
    """The probability at each place that a single unit source there is noticed, shape (n,).

    The squared projected readings over sigma^2 follow a non-central chi-square law with r degrees and non-centrality
    ||M_i||^2 / sigma^2; with a chi-square radius the map is empty while they are below its `FITS` quantile.

    >>> from cloakwork.physics import HeatLine
    >>> float(detection_probability(Problem.with_noise(HeatLine(n=100, m=50, T=0.05), 1.0)).mean().round(2))
    0.99
    """
    rank = problem.physics.rank if problem.offsets is None else problem.range.rank
    limit = special.chdtri(rank, 1 - FITS)
    return np.asarray(1 - special.chndtr(limit, rank, problem.column_squares / problem.noise**2))


def fits_of_maps(problem: Problem, readings: FloatArray, solution: Solution) -> tuple[Fit, ...]:
    """How well readings fit maps within a radius, by the part that no map explains, outside the range or inside it."""
    rest = problem.outside(readings) / problem.noise
    inside = np.where(solution.violation > 0, (solution.radius + solution.violation) / problem.noise, 0.0) ** 2
    rank = problem.range.rank
    degrees = problem.physics.sensors - rank
    misfits = [
        Misfit(row, problem.scores(row), degrees, float(within), rank) for row, within in zip(rest, inside, strict=True)
    ]
    return tuple(Fit(misfit.p_value, float(misfit.rest @ misfit.rest), degrees) for misfit in misfits)


def on_all_cores(work: Callable[[slice], int], frames: int, progress: Progress | None, size: int = CHUNK) -> None:
    """Call `work` with chunks of `size` frames on all cores; it returns the number of frames done."""
    pieces = [slice(start, min(start + size, frames)) for start in range(0, frames, size)]
    done = 0
    if len(pieces) == 1:
        done = work(pieces[0])
    elif pieces:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for future in as_completed([pool.submit(work, piece) for piece in pieces]):
                done += future.result()
                if progress is not None and done < frames:
                    progress(done, frames)
    if progress is not None:
        progress(frames, frames)
