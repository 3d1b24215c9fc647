"""Recover the vicinity of sources from noisy readings."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, frames
from cloakwork.errors import InputError, ReadingError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.basis_pursuit import BasisPursuit
from cloakwork.recovery.estimator import Estimator, Progress, Solution, fits_of_maps
from cloakwork.recovery.goodness_of_fit import joint_p_value
from cloakwork.recovery.problem import CloakLike, Problem
from cloakwork.recovery.vicinity import extract_sources


@dataclass(frozen=True, eq=False, repr=False)
class Recovery:
    """The result of `recover`.

    For one frame, `map` has shape (n,), `gap`, `violation` and `radius` are floats, `status` is a `Status`, `sources` a
    tuple of sources and `fit` a `Fit`; for a batch, each has one entry per frame.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import PointSources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> result = recover(line.apply(sources(line, [0.3])), line, sigma=0.1, estimator=PointSources(1))
    >>> print(result)
    weighed all placements of point sources; the map has the least expected error
    weight 1.000 at 0.301, within 0.022
    """

    problem: Problem
    estimator: Estimator
    readings: FloatArray
    solution: Solution
    batch: bool

    @property
    def map(self) -> FloatArray:
        """Weight of each place."""
        return self.solution.maps if self.batch else self.solution.maps[0]

    @property
    def status(self) -> Any:
        """How the solution ended."""
        return self.solution.status if self.batch else self.solution.status[0]

    @property
    def gap(self) -> Any:
        """A bound on the distance from the exact answer.

        For maps within a radius, it bounds the excess of their total (or misfit, if no map fits) over the least
        possible. For point sources, it estimates the earth mover distance to the map of the exact posterior.
        """
        return self._entry(self.solution.gap)

    @property
    def violation(self) -> Any:
        """The distance of the map beyond the radius, inside the range of the physics."""
        return self._entry(self.solution.violation)

    @property
    def radius(self) -> Any:
        """The radius inside the range of the physics."""
        return self._entry(self.solution.radius)

    @cached_property
    def sources(self) -> Any:
        """The recovered sources: place, weight and vicinity of each."""
        sources = self.solution.sources
        if sources is None:
            frames = zip(self.solution.maps, self.problem.project(self.readings), strict=True)
            sources = tuple(extract_sources(weights, data, self.problem) for weights, data in frames)
        return sources if self.batch else sources[0]

    @cached_property
    def fit(self) -> Any:
        """How well the readings fit the model."""
        fits = self.solution.fits or fits_of_maps(self.problem, self.readings, self.solution)
        return fits if self.batch else fits[0]

    @property
    def fit_together(self) -> float:
        """The p-value of all frames together."""
        return joint_p_value(self.fit if self.batch else [self.fit])

    @property
    def counts(self) -> FloatArray:
        """Probability of 0, 1, 2, ... sources."""
        return self._posterior(self.solution.counts, "counts")

    @property
    def intensity(self) -> FloatArray:
        """Expected number of sources at each place."""
        return self._posterior(self.solution.intensity, "intensity")

    def _posterior(self, values: FloatArray | None, name: str) -> FloatArray:
        if values is None:
            estimator = type(self.estimator).__name__
            raise InputError(f"{estimator} has no {name}: use PointSources.", estimator=estimator, attribute=name)
        return values if self.batch else values[0]

    def __len__(self) -> int:
        return len(self.solution.maps)

    def _entry(self, values: FloatArray) -> Any:
        return values if self.batch else float(values[0])

    def __repr__(self) -> str:
        return f"<Recovery of {len(self)} frame{'' if len(self) == 1 else 's'}>"

    def __str__(self) -> str:
        if self.batch:
            counts = {status: self.status.count(status) for status in dict.fromkeys(self.status)}
            lines = [f"{k} frames: {status}" for status, k in counts.items()]
            doubtful = sum(fit.doubtful for fit in self.fit)
            return "\n".join([*lines, f"{doubtful} frames do not fit the model; see .fit"] if doubtful else lines)
        lines = [str(self.status)]
        lines += [str(source) for source in self.sources]
        return "\n".join([*lines, f"doubt: {self.fit}"] if self.fit.doubtful else lines)


def recover(
    readings: ArrayLike,
    model: CloakLike | Physics,
    *,
    sigma: ArrayLike | None = None,
    drift: Drift | Nuisance | None = None,
    estimator: Estimator | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Recover the vicinity of the sources from noisy readings.

    Parameters
    ----------
    readings
        One frame (m,) or a batch (frames, m), in the unit of the physics.
    model
        The cloak that released the readings, or a physics together with `sigma`.
    sigma
        With a physics: the noise of each reading, one number or one per sensor.
    drift
        How readings wander without any source, such as `Drift(room=1.0)`. Its offsets are integrated out: they count
        as noise that is correlated between sensors.
    estimator
        By default `BasisPursuit()`, which assumes nothing about the strengths of the sources. If sources are a few
        points, `PointSources` is far more accurate, most of all with known strengths.
    progress
        Called with (frames done, frames in total) during a long batch.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> result = recover(line.apply(sources(line, [0.3])), line, sigma=0.01)
    >>> [(source.at, round(source.weight, 2)) for source in result.sources]
    [(0.3, 0.99)]
    """
    problem = resolve_problem(model, sigma, drift)
    values = frames("readings", readings, problem.physics.sensors, error=ReadingError)
    if values.ndim > 2:
        raise ReadingError(f"readings has shape {values.shape}: give (m,) or (frames, m).", shape=values.shape)
    if estimator is not None and not isinstance(estimator, Estimator):
        raise InputError(f"estimator={estimator!r}: give an object such as BasisPursuit().", estimator=estimator)
    chosen, batch = estimator or BasisPursuit(), np.atleast_2d(values)
    solution = chosen.solve(problem, batch, progress)
    return Recovery(problem, chosen, batch, solution, batch=values.ndim == 2)


def resolve_problem(
    model: CloakLike | Physics, sigma: ArrayLike | None, drift: Drift | Nuisance | None = None
) -> Problem:
    """The problem that a cloak states, or a physics together with its noise."""
    if isinstance(model, Physics):
        if sigma is None:
            raise InputError("recover(readings, physics) needs sigma=..., the noise of each reading.", sigma=None)
        return Problem.with_noise(model, sigma, drift=drift)
    if not all(hasattr(model, name) for name in ("physics", "total_sigmas", "roundings")):
        raise InputError(
            f"the second argument is a {type(model).__name__}: call recover(readings, cloak), or "
            "recover(readings, physics, sigma=...).",
            model=type(model).__name__,
        )
    if sigma is not None:
        raise InputError("a cloak has its own sigma: leave sigma out, or give the physics instead.", sigma=sigma)
    wandering = drift.on(model.physics) if isinstance(drift, Drift) else drift
    if model.offsets is not None and isinstance(wandering, Nuisance | None):
        wandering = model.offsets.joined(wandering)
    return Problem.with_noise(model.physics, model.total_sigmas, model.roundings, wandering)
