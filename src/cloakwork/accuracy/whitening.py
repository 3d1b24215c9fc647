"""Readings of a unit source at each place in units of their noise: the base of every statistical limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, instance_of, per_sensor
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Physics, Space, whitener


@dataclass(frozen=True, eq=False)
class Whitened:
    """A model with the noise `sigma` (m,) of its readings; offsets that drift are whitened too, by `weights` (m, m)."""

    physics: Physics
    sigma: FloatArray
    weights: FloatArray | None = None

    @cached_property
    def columns(self) -> FloatArray:
        """The readings of a unit source at each place, in units of the noise, shape (n, m)."""
        return self.whiten(self.physics.matrix.T)

    def at(self, places: IntArray) -> FloatArray:
        """The rows of `columns` for some places, shape (k, m); a large floor forms no others."""
        if self.physics.near is not None:
            return self.whiten(self.physics.near[:, places].toarray().T)
        return self.columns[places]

    def whiten(self, readings: FloatArray) -> FloatArray:
        """Return readings (..., m) in units of the noise."""
        return np.asarray(readings / self.sigma if self.weights is None else readings @ self.weights.T)

    @cached_property
    def squares(self) -> FloatArray:
        """Squared norm of the readings of each place, shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.columns, self.columns))

    @cached_property
    def error(self) -> float:
        """Bound on the error of the readings of a place from computing M, in units of the noise."""
        error = self.physics.error if self.physics.explicit else self.physics.move_error
        return float(error / self.sigma.min())


def whiten(physics: Physics, sigma: ArrayLike, drift: Drift | None = None) -> Whitened:
    """Divide a model by its noise: one number, or one per sensor; `drift` is whitened too."""
    example = "a model such as HeatLine (of a cloak, its `physics`)"
    instance_of("physics", physics, Physics, example)  # type: ignore[type-abstract]
    sigmas = per_sensor("sigma", sigma, physics.sensors)
    return Whitened(physics, sigmas, None if drift is None else whitener(sigmas, drift.on(physics).factor))


def check_positions(at: Sequence[object]) -> Sequence[object]:
    """Return `at`; refuse it unless it is a list of one position or more."""
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray) or not len(at):
        raise InputError(f"at={at!r}: give a list of one position or more.", at=at)
    return at


def refuse_one_place(physics: Physics) -> None:
    """Refuse a space with a single place, where there is nothing to locate."""
    if len(physics.space) < 2:
        raise InputError("the space has one place: give a model with two places or more.", places=len(physics.space))


def longest_path(space: Space) -> float:
    """Return about the largest distance along the space: from the place that is farthest from the first."""
    far = space.distances(0)
    reached = space.distances(int(np.argmax(np.where(np.isfinite(far), far, -1.0))))
    return float(reached[np.isfinite(reached)].max())


def spread_places(n: int, most: int) -> IntArray:
    """Return up to `most` of n places, spread evenly by multiples of the golden ratio."""
    if n <= most:
        return np.arange(n)
    golden = (np.sqrt(5) - 1) / 2
    return np.unique((n * ((np.arange(most) * golden) % 1)).astype(np.int64))
