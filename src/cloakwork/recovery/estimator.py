"""What every estimator offers, and the radius that two of them share."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray, positive
from cloakwork.errors import InputError
from cloakwork.recovery import active_set
from cloakwork.recovery.fit import Fit, Misfit
from cloakwork.recovery.problem import Problem, Projected
from cloakwork.recovery.vicinity import Source

Progress = Callable[[int, int], None]
CHUNK = 256


class Status(StrEnum):
    """How a frame ended, in words."""

    SOLVED = "solved: nothing in the box with a smaller total fits within the radius"
    REACHED = "stopped at the radius, as Bregman iteration does; the total is not the least"
    EMPTY = "the readings fit within the radius with no source at all; the map is empty"
    BEST_FIT = "no f in the box fits within the radius; returned the best fit"
    STOPPED = "stopped early; the gap says how far from the best it may be"
    WEIGHED = "all placements of point sources weighed; the map has the least expected error"
    SAMPLED = "placements of point sources sampled; the gap says how far two independent halves are apart"
    NOBODY = "that there is no source is more likely than not; the map says where one would be"


class Radius(StrEnum):
    """How far from the readings a map may be."""

    CHI_SQUARE = "chi-square"
    """A quantile of the noise inside the range of the physics: holds the truth as often as the quantile says."""
    PAPER = "paper"
    """sigma sqrt(m), as the papers take it: often smaller than the noise, so that nothing fits."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Arrays over frames: maps (frames, n), and for each its status, gap, violation and radius.

    `data` are the readings in the basis of the range, shape (frames, rank). An estimator that knows more also gives the
    sources and the fit of each frame, the probabilities of the counts (frames, most + 1), the expected number of
    sources at each place (frames, n), and where the next frame may start.
    """

    data: FloatArray
    maps: FloatArray
    status: tuple[Status, ...]
    gap: FloatArray
    violation: FloatArray
    radius: FloatArray
    sources: tuple[tuple[Source, ...], ...] | None = None
    fits: tuple[Fit, ...] | None = None
    counts: FloatArray | None = None
    intensity: FloatArray | None = None
    last: object = None


class Estimator(ABC):
    """A way from noisy readings to a map."""

    @abstractmethod
    def solve(
        self, problem: Problem, readings: FloatArray, progress: Progress | None, after: object = None
    ) -> Solution:
        """Maps for readings of shape (frames, m); `progress` is told (frames done, frames in all).

        `after` is what an earlier solution kept in `last`, for estimators that go on from there.
        """


def check_radius(radius: float | Radius, quantile: float) -> None:
    """Refuse a radius or quantile that means nothing."""
    if not isinstance(radius, Radius):
        positive("radius", radius)
    if not 0 < quantile < 1:
        raise InputError(f"quantile={quantile}: give a number between 0 and 1; 0.9 is usual.", quantile=quantile)


def squared_radius(radius: float | Radius, quantile: float, problem: Problem, seen: Projected) -> FloatArray:
    """Squared radius inside the range, one a frame; below zero where what lies outside uses it up."""
    if radius is Radius.CHI_SQUARE:
        rank = problem.range.rank
        inside = problem.noise**2 * float(stats.chi2.ppf(quantile, rank)) if rank else 0.0
        return np.full(len(seen.inside), inside)
    total = problem.paper_radius if radius is Radius.PAPER else float(radius)
    return np.asarray(total**2 - seen.outside)


def noticed(problem: Problem, quantile: float = 0.9) -> FloatArray:
    """For each place the probability that a lone unit source there does not pass as no source at all, shape (n,).

    Notes
    -----
    The squared projected readings over sigma^2 follow a non-central chi-square law with r degrees and non-centrality
    ||M_i||^2 / sigma^2; with a chi-square radius the map is empty while they are below its quantile.
    """
    limit = stats.chi2.ppf(quantile, problem.range.rank)
    return np.asarray(stats.ncx2.sf(limit, problem.range.rank, problem.column_squares / problem.noise**2))


def fits_of_maps(problem: Problem, readings: FloatArray, solution: Solution) -> tuple[Fit, ...]:
    """How well readings fit maps that stay within a radius: by what no map explains, outside the range or inside it."""
    scaled = readings / problem.effective_sigma
    basis = problem.range.basis
    rest = scaled - (scaled @ basis) @ basis.T
    inside = np.where(solution.violation > 0, (solution.radius + solution.violation) / problem.noise, 0.0) ** 2
    rank = problem.range.rank
    degrees = problem.physics.sensors - rank
    misfits = [Misfit(one, degrees, float(within), rank) for one, within in zip(rest, inside, strict=True)]
    return tuple(Fit(misfit.p_value, float(misfit.rest @ misfit.rest), degrees) for misfit in misfits)


def fit_within_radius(
    loop: Callable[..., None],
    options: tuple[float | int, ...],
    names: dict[int, Status],
    problem: Problem,
    readings: FloatArray,
    rule: tuple[float | Radius, float],
    progress: Progress | None,
) -> Solution:
    """Run a compiled loop over all frames, on all cores, and gather the certificates.

    `loop` takes the reduced matrix, its transpose, the projected readings, squared radii, its own `options`, and arrays
    to fill: maps, codes (which `names` translates), misfits and gaps. `rule` is the radius and its quantile.
    """
    seen = problem.project(readings)
    rho2 = squared_radius(*rule, problem, seen)
    reduced = problem.range.reduced
    columns = np.ascontiguousarray(reduced.T)
    frames = len(rho2)
    maps = np.zeros((frames, problem.physics.places))
    codes = np.full(frames, active_set.EMPTY, dtype=np.int64)
    misfits, gaps = np.zeros(frames), np.zeros(frames)

    def work(piece: slice) -> int:
        filled = (maps[piece], codes[piece], misfits[piece], gaps[piece])
        loop(reduced, columns, seen.inside[piece], rho2[piece], *options, *filled)
        return int(piece.stop - piece.start)

    on_all_cores(work, frames if problem.range.rank else 0, progress)
    radius = np.sqrt(np.maximum(rho2, 0.0))
    status = tuple(names[code] for code in codes.tolist())
    return Solution(seen.inside, maps, status, np.maximum(gaps, 0.0), np.maximum(misfits - radius, 0.0), radius)


def on_all_cores(work: Callable[[slice], int], frames: int, progress: Progress | None, size: int = CHUNK) -> None:
    """Call `work` with pieces of `size` frames, on all cores; it returns how many frames it did."""
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
