"""The verb of this folder."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, frames
from cloakwork.errors import InputError, ReadingError
from cloakwork.physics import Physics
from cloakwork.recovery.basis_pursuit import BasisPursuit
from cloakwork.recovery.estimator import Estimator, Progress, Solution, fits_of_maps
from cloakwork.recovery.fit import joint_p_value
from cloakwork.recovery.problem import CloakLike, Problem
from cloakwork.recovery.vicinity import Source, read_off

UNSTATED = "nothing was said about the strengths of the sources, and it assumes nothing about them"


@dataclass(frozen=True, eq=False, repr=False)
class Recovery:
    """What an analyst learns from noisy readings.

    For one frame `map` has shape (n,), `gap`, `violation` and `radius` are floats, `status` is one text, `sources` a
    tuple of sources and `fit` one `Fit`; for a batch each has one entry a frame. `estimator` is what was used and
    `reason` why.
    """

    problem: Problem
    estimator: Estimator
    reason: str
    readings: FloatArray
    solution: Solution
    batch: bool

    @property
    def map(self) -> FloatArray:
        """Weight of each place."""
        return self.solution.maps if self.batch else self.solution.maps[0]

    @property
    def status(self) -> Any:
        """How it ended, in words."""
        return self.solution.status if self.batch else self.solution.status[0]

    @property
    def gap(self) -> Any:
        """How far the answer can be from the exact one.

        For maps within a radius: how far their total (or misfit, if nothing fits) can be above the least possible. For
        point sources: how far, in earth mover distance, the map may be from that of the exact posterior.
        """
        return self._entry(self.solution.gap)

    @property
    def violation(self) -> Any:
        """By how much the map misses the radius, inside the range of the physics."""
        return self._entry(self.solution.violation)

    @property
    def radius(self) -> Any:
        """The radius that was used, inside the range of the physics."""
        return self._entry(self.solution.radius)

    @cached_property
    def sources(self) -> Any:
        """The sources read off the map: place, weight, and radius of the vicinity."""
        found = self.solution.sources
        if found is None:
            frames = zip(self.solution.maps, self.solution.data, strict=True)
            found = tuple(read_off(weights, data, self.problem) for weights, data in frames)
        return found if self.batch else found[0]

    @cached_property
    def fit(self) -> Any:
        """Whether the readings fit the model at all, and what was done where they do not."""
        fits = self.solution.fits
        if fits is None:
            fits = fits_of_maps(self.problem, self.readings, self.solution)
        return fits if self.batch else fits[0]

    @property
    def fit_together(self) -> float:
        """The p-value of all frames taken together."""
        return joint_p_value(self.fit if self.batch else [self.fit])

    @property
    def counts(self) -> FloatArray:
        """Probability of 0, 1, 2, ... sources."""
        return self._known(self.solution.counts, "the probability of each count")

    @property
    def intensity(self) -> FloatArray:
        """Expected number of sources at each place."""
        return self._known(self.solution.intensity, "how many sources to expect at each place")

    def _known(self, values: FloatArray | None, what: str) -> FloatArray:
        if values is None:
            raise InputError(f"{type(self.estimator).__name__} does not say {what}: use PointSources.")
        return values if self.batch else values[0]

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.solution.maps)

    def _entry(self, values: FloatArray) -> Any:
        return values if self.batch else float(values[0])

    def __repr__(self) -> str:
        return f"<Recovery of {len(self)} frame{'' if len(self) == 1 else 's'}>\n{self}"

    def __str__(self) -> str:
        if self.batch:
            counts = {status: self.status.count(status) for status in dict.fromkeys(self.status)}
            lines = [f"{k} frames: {status}" for status, k in counts.items()]
            doubtful = sum(fit.doubtful for fit in self.fit)
            return "\n".join([*lines, f"{doubtful} frames do not fit the model; see .fit"] if doubtful else lines)
        lines = [str(self.status)]
        lines += [f"weight {s.weight:.3f} at {_short(s.at)}, within {s.radius:.3g}{_chance(s)}" for s in self.sources]
        return "\n".join([*lines, f"doubt: {self.fit}"] if self.fit.doubtful else lines)


def recover(
    readings: ArrayLike,
    model: CloakLike | Physics,
    *,
    sigma: ArrayLike | None = None,
    estimator: Estimator | None = None,
    after: Recovery | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Learn the vicinity of the sources from noisy readings.

    Parameters
    ----------
    readings
        One frame (m,) or a batch (frames, m), in the unit of the physics.
    model
        The cloak that released them, or the physics of readings that are not ours.
    sigma
        With a physics: the noise of each reading, one number or one per sensor.
    estimator
        `BasisPursuit()` unless given: it assumes nothing about the strengths of the sources. Where they are known, or
        all that is known is that sources are few points, `PointSources` is far more accurate.
    after
        What was recovered from the frame before, for estimators that go on from there.
    progress
        Called with (frames done, frames in all) during a long batch.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> found = recover(line.apply(sources(line, [0.3])), line, sigma=0.01)
    >>> [(s.at, round(s.weight, 2)) for s in found.sources]
    [(0.3, 0.99)]
    """
    problem = _problem(model, sigma)
    given = frames("readings", readings, problem.physics.sensors, error=ReadingError)
    if given.ndim > 2:
        raise ReadingError(f"readings has {given.ndim} axes: give one frame (m,) or a batch (frames, m).")
    if estimator is not None and not isinstance(estimator, Estimator):
        raise InputError(
            f"estimator={estimator!r}: give an object such as BasisPursuit() or PointSources(strength=1.0).",
            estimator=estimator,
        )
    chosen, reason = (BasisPursuit(), UNSTATED) if estimator is None else (estimator, "it was asked for")
    batch = np.atleast_2d(given)
    solution = chosen.solve(problem, batch, progress, None if after is None else after.solution.last)
    return Recovery(problem, chosen, reason, batch, solution, batch=given.ndim == 2)


def _chance(source: Source) -> str:
    return "" if source.probability > 0.995 else f", with probability {source.probability:.2f}"


def _short(at: object) -> str:
    if isinstance(at, float):
        return f"{at:.4g}"
    return "(" + ", ".join(_short(value) for value in at) + ")" if isinstance(at, tuple) else str(at)


def _problem(model: CloakLike | Physics, sigma: ArrayLike | None) -> Problem:
    if isinstance(model, Physics):
        if sigma is None:
            raise InputError("recover(readings, physics) needs sigma=..., the noise of each reading.")
        return Problem.with_noise(model, sigma)
    if not all(hasattr(model, name) for name in ("physics", "sigmas", "steps")):
        raise InputError(
            f"the second argument is a {type(model).__name__}: call recover(readings, cloak), or "
            "recover(readings, physics, sigma=...)."
        )
    if sigma is not None:
        raise InputError("a cloak knows its own sigma: leave sigma out, or give the physics instead of the cloak.")
    return Problem.with_noise(model.physics, model.sigmas, model.steps)
