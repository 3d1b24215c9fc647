"""The best attack on a cloak: the likelihood ratio between two placements, from all readings."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.physics import Physics
from cloakwork.privacy import Cloak


@dataclass(frozen=True, eq=False)
class Placements:
    """True readings of two placements of one source, and how far apart they are in units of the space."""

    zero: FloatArray
    one: FloatArray
    distance: float


def worst_neighbours(cloak: Cloak) -> Placements:
    """The two placements that a cloak has to hide and that differ most: a unit source, and part of it moved.

    Notes
    -----
    e_i against (1 - a) e_i + a e_j for the steepest pair of neighbouring places, a = alpha / d(i, j), at most 1.
    """
    matrix, (i, j) = cloak.physics.matrix, cloak.physics.joint_slope().pair
    apart = float(cloak.physics.space.distances(i)[j])
    share = min(1.0, cloak.alpha / apart)
    return Placements(matrix[:, i], (1 - share) * matrix[:, i] + share * matrix[:, j], share * apart)


def far_apart(physics: Physics, distance: float) -> Placements | None:
    """The two places at this distance whose readings differ most; None where no two places are so far apart."""
    table = np.asarray(physics.space.distance_table, dtype=np.float64)
    squares = (physics.matrix**2).sum(axis=0)
    apart = squares[:, None] + squares - 2 * physics.matrix.T @ physics.matrix
    apart[np.abs(table - distance) > 1e-4 * distance] = -1.0
    i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
    if apart[i, j] < 0:
        return None
    return Placements(physics.matrix[:, i], physics.matrix[:, j], distance)


def separation(cloak: Cloak, placements: Placements) -> float:
    """How many standard deviations apart the two are, as they are sent: rounded to steps."""
    sent = [np.rint(readings / cloak.steps) * cloak.steps for readings in (placements.zero, placements.one)]
    return float(np.linalg.norm((sent[1] - sent[0]) / cloak.sigmas))


def advantage(mu: float) -> float:
    """True minus false positive rate of the best test between two normals that are mu apart.

    >>> round(advantage(1.0), 4)
    0.3829
    """
    return float(2 * special.ndtr(mu / 2) - 1)


def allowed(epsilon: float, delta: float, false: float) -> float:
    """The largest true positive rate that (epsilon, delta) leaves at a false positive rate.

    >>> round(allowed(1.0, 0.1, 0.1), 4)
    0.3718
    """
    return min(1.0, math.exp(epsilon) * false + delta, 1 - math.exp(-epsilon) * (1 - delta - false))


def allowed_advantage(epsilon: float, delta: float) -> float:
    """The largest advantage that (epsilon, delta) leaves: where the two lines of `allowed` meet."""
    return 1 - 2 * (1 - delta) / (1 + math.exp(epsilon))


def statistics(
    cloak: Cloak, placements: Placements, trials: int, frames: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The log likelihood ratio of `frames` frames together, for so many trials of each placement."""
    zero, one = placements.zero, placements.one
    weights = (one - zero) / cloak.sigmas**2
    middle = frames * float((one + zero) @ weights) / 2
    return (
        _ratios(cloak, zero, weights, middle, trials, frames, rng),
        _ratios(cloak, one, weights, middle, trials, frames, rng),
    )


def _ratios(
    cloak: Cloak,
    readings: FloatArray,
    weights: FloatArray,
    middle: float,
    trials: int,
    frames: int,
    rng: np.random.Generator,
) -> FloatArray:
    noisy = cloak.simulate(np.tile(readings, (trials * frames, 1)), rng=rng)
    return np.asarray((noisy @ weights).reshape(trials, frames).sum(axis=1) - middle)


@dataclass(frozen=True)
class Measured:
    """An advantage that was measured, with its standard error, and what it is exactly."""

    measured: float
    error: float
    exact: float

    @classmethod
    def of(cls, zero: FloatArray, one: FloatArray, mu: float) -> "Measured":
        """From log likelihood ratios: who says `one` above 0 has the largest advantage, so nothing is chosen here."""
        true, false = float((one > 0).mean()), float((zero > 0).mean())
        spread = [rate * (1 - rate) + 0.25 / len(zero) for rate in (true, false)]
        return cls(true - false, math.sqrt(sum(spread) / len(zero)), advantage(mu))

    def __str__(self) -> str:
        return f"{self.measured:.3f} ± {self.error:.3f}"
