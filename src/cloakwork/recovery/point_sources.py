"""The posterior of point sources: how many, where, how strong."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from cachetools import LRUCache, cached

from cloakwork._checks import FloatArray, count
from cloakwork.errors import InputError
from cloakwork.recovery.estimator import Estimator, FrameSolution, Progress, Solution, on_all_cores
from cloakwork.recovery.floors.floor_sources import MAX_SOURCES, samples_locally, solve_floor
from cloakwork.recovery.goodness_of_fit import Misfit, draw_checked
from cloakwork.recovery.jump_chain import Draws
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.network_posterior import NetworkSources
from cloakwork.recovery.posterior import Posterior, posterior, summarise
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.sampling import PreviousFrame, Prior

REMEDIES = 4  # of a frame that does not fit: each sets one more sensor aside or widens the noise
MAX_ON_FLOORS = 10_000  # where sources far apart hardly know of each other
CHUNK = 8  # frames that continue from each other; fixed, so results do not depend on the machine


@dataclass(frozen=True)
class PointSources(Estimator):
    """Point sources: their number, places and strengths, with probabilities.

    Parameters
    ----------
    strength
        One number if the weight of every source is known, a pair (low, high) if each has its own weight in between, or
        None if all have the same unknown weight up to 1. Weights are in units of the physics: 1 is the strongest source
        that the cloak protects.
    min_sources, max_sources
        Smallest and largest number of sources. The prior is uniform over these counts, with independent uniform places
        and strengths.
    confidence
        The probability with which a vicinity holds its source.
    seed
        Seed of the random numbers; the same batch of readings gives the same result.

    Notes
    -----
    With known strengths and few placements, all are weighed: a count is left out only if its distance from the readings
    proves it e^-30 times less likely than another. Otherwise two independent reversible-jump chains sample the
    posterior. On a line the map has the least expected earth mover distance (the place-wise median of the cumulative
    maps). One half of the draws gives the shape of the vicinities, the other half their size: they hold a share
    `confidence` of it, where sources missing from the list count as not held.

    A sensor that no placement explains is set aside, and the noise is widened if the rest still does not fit: see
    `Fit`.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import recover
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> readings = line.apply(sources(line, [0.3, 0.8]))
    >>> result = recover(readings, line, sigma=0.15, estimator=PointSources(strength=1.0))
    >>> int(result.counts.argmax()), [round(source.at, 1) for source in result.sources]
    (2, [0.3, 0.8])
    """

    strength: float | tuple[float, float] | None = 1.0
    max_sources: int = 4
    min_sources: int = 0
    confidence: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        count("max_sources", self.max_sources)
        if self.max_sources > MAX_ON_FLOORS:
            raise InputError(
                f"max_sources={self.max_sources}: give at most {MAX_ON_FLOORS:,} sources.", max_sources=self.max_sources
            )
        if not (isinstance(self.min_sources, int) and 0 <= self.min_sources <= self.max_sources):
            raise InputError(
                f"min_sources={self.min_sources!r}: give a whole number from 0 to max_sources={self.max_sources}.",
                min_sources=self.min_sources,
            )
        if not 0 < self.confidence < 1:
            raise InputError(
                f"confidence={self.confidence}: give a number between 0 and 1; 0.9 is usual.",
                confidence=self.confidence,
            )
        _interval(self.strength)

    @property
    def prior(self) -> Prior:
        low, high = _interval(self.strength)
        return Prior(low, high, self.strength is None, self.min_sources, self.max_sources)

    def solve(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        if samples_locally(problem.physics, self.max_sources):
            return solve_floor(problem, readings, self.prior, self.confidence, self.seed, progress)
        if self.max_sources > MAX_SOURCES:
            raise InputError(
                f"max_sources={self.max_sources}: give at most {MAX_SOURCES}, except in a steady field on a floor.",
                max_sources=self.max_sources,
            )
        if not problem.physics.explicit:
            return self._on_a_network(problem, readings, progress)
        found: dict[int, FrameSolution] = {}

        def work(piece: slice) -> int:
            before: PreviousFrame | None = None
            for frame in range(piece.start, piece.stop):
                found[frame], before = self._solved(problem, readings[frame], frame, before)
            return int(piece.stop - piece.start)

        _ = lattice_for(problem, self.prior.high, 1.0).arrays  # made once, before the threads start
        on_all_cores(work, len(readings), progress, CHUNK)
        solutions = [found[frame] for frame in range(len(readings))]
        return Solution.of_frames(solutions, problem.physics.places, self.max_sources)

    def _solved(
        self, problem: Problem, readings: FloatArray, frame: int, before: PreviousFrame | None
    ) -> tuple[FrameSolution, PreviousFrame]:
        """The solution of a frame, and its draws, from which the next frame starts."""

        def draw(excluded: frozenset[int], inflation: float) -> tuple[tuple[Lattice, Posterior], Misfit]:
            part = problem.without(excluded) if excluded else problem
            lattice = lattice_for(part, self.prior.high, inflation)
            data = lattice.whiten(part.project(readings[None])[0])
            result = posterior(lattice, data, self.prior, np.random.default_rng([self.seed, frame]), before)
            return (lattice, result), _misfit(part, lattice, result.draws, readings, len(excluded))

        (first, start), (lattice, result), fit = draw_checked(draw, frozenset(), remedies=REMEDIES)
        return summarise(result, lattice, self.confidence, fit), PreviousFrame(first, start.draws)

    def _on_a_network(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        model = NetworkSources.of(problem, self.strength, self.min_sources, self.max_sources, self.confidence)
        found = []
        for frame, reading in enumerate(readings):
            found.append(model.solve(reading, np.random.default_rng([self.seed, frame])))
            if progress is not None:
                progress(frame + 1, len(readings))
        return Solution.of_frames(found, problem.physics.places, self.max_sources)


def _misfit(problem: Problem, lattice: Lattice, draws: Draws, readings: FloatArray, excluded: int) -> Misfit:
    """The misfit of the best draw."""
    best, physics = draws.best, problem.physics
    k = int(draws.counts[best])
    at, strength = draws.at[best, :k], draws.strength[best, :k]
    explained = physics.columns_near(lattice.positions[at], lattice.place[at]) @ strength
    rest = lattice.whiten(problem.whiten(readings - explained))
    fitted = k * lattice.space.dimension  # strengths hardly count: the best draw is not quite the best fit
    degrees = physics.sensors - excluded - fitted
    return Misfit(rest, problem.scores(rest), degrees, float(draws.misfit[best]), problem.range.rank, fitted)


_lattices: LRUCache[Hashable, Lattice] = LRUCache(16)


@cached(_lattices, key=lambda problem, strongest, inflation: (problem.key, strongest, inflation), lock=Lock())
def lattice_for(problem: Problem, strongest: float, inflation: float) -> Lattice:
    """The candidates for a noise, kept for the next frame."""
    plain = Lattice(problem, strongest)
    return replace(plain, heat=plain.blur * inflation)


def _interval(strength: object) -> tuple[float, float]:
    if strength is None:
        return 0.0, 1.0
    values = strength if isinstance(strength, tuple | list) else (strength, strength)
    numbers = [v for v in values if isinstance(v, int | float | np.number) and not isinstance(v, bool)]
    low, high = (float(v) for v in numbers) if len(numbers) == len(values) == 2 else (np.nan, np.nan)
    if not (0 <= low <= high < np.inf and high > 0):
        raise InputError(
            f"strength={strength!r}: give one number above 0, a pair (low, high) with 0 <= low < high, or None for an "
            "unknown strength that all sources share.",
            strength=strength,
        )
    return low, high
