"""The best attack on a cloak: the likelihood ratio between two placements, from all readings that the attacker sees."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.privacy import Cloak, Scope
from papers.networks import share_error

_PIECE = 4000  # frames at a time


@dataclass(frozen=True, eq=False)
class Placements:
    """True readings of two placements of one source, and how far apart they are in units of the space."""

    zero: FloatArray
    one: FloatArray
    distance: float


def worst_neighbours(cloak: Cloak) -> Placements:
    """The two placements that a cloak has to hide and that are told apart best: a unit source, and part of it moved.

    Notes
    -----
    e_i against (1 - a) e_i + a e_j for the pair of neighbouring places that is steepest in units of the noise,
    a = alpha / d(i, j), at most 1.
    """
    matrix, (i, j) = cloak.physics.matrix, _worst_pair(cloak)
    apart = float(cloak.physics.space.distances(i)[j])
    share = min(1.0, cloak.alpha / apart)
    return Placements(matrix[:, i], (1 - share) * matrix[:, i] + share * matrix[:, j], share * apart)


def _worst_pair(cloak: Cloak) -> tuple[int, int]:
    physics = cloak.physics
    if cloak.scope is Scope.NETWORK:
        return physics.joint_slope(1 / cloak.sigmas).pair
    steepest = [
        (np.abs(columns) / cloak.sigmas[:, None]).max(axis=0) / physics.space.lengths[which]
        for which, columns in physics.pair_columns()
    ]
    i, j = physics.space.pairs[int(np.argmax(np.concatenate(steepest)))]
    return int(i), int(j)


def far_apart(cloak: Cloak, distance: float) -> Placements | None:
    """The two places at this distance that are told apart best; None where no two places are so far apart."""
    matrix = cloak.physics.matrix
    table = np.asarray(cloak.physics.space.distance_table, dtype=np.float64)
    scaled = matrix / cloak.sigmas[:, None]
    squares = (scaled**2).sum(axis=0)
    apart = squares[:, None] + squares - 2 * scaled.T @ scaled
    apart[np.abs(table - distance) > 1e-4 * distance] = -math.inf
    i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return None if apart[i, j] == -math.inf else Placements(matrix[:, i], matrix[:, j], distance)


def shifts(cloak: Cloak, placements: Placements) -> FloatArray:
    """How many standard deviations apart the two are on each reading, as it is sent: rounded to steps."""
    zero, one = (_sent(cloak, readings) for readings in (placements.zero, placements.one))
    return np.asarray((one - zero) / cloak.sigmas)


def seen(cloak: Cloak, placements: Placements) -> FloatArray:
    """`shifts` of what the attacker sees that a cloak is made against: all sensors, or the one that tells most."""
    found = shifts(cloak, placements)
    if cloak.scope is Scope.SENSOR:
        found[np.arange(len(found)) != np.argmax(np.abs(found))] = 0.0
    return found


def separation(cloak: Cloak, placements: Placements) -> float:
    """How many standard deviations apart the two are to that attacker, in one frame."""
    return float(np.linalg.norm(seen(cloak, placements)))


def _sent(cloak: Cloak, readings: FloatArray) -> FloatArray:
    return np.asarray(np.rint(readings / cloak.steps) * cloak.steps)


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


@dataclass(frozen=True, eq=False)
class Ratios:
    """Log likelihood ratios of frames of either placement."""

    zero: FloatArray
    one: FloatArray

    def together(self, k: int) -> "Ratios":
        """The same of k frames each, taken together: k readings of one steady scene."""
        whole = len(self.zero) // k * k
        return Ratios(*(ratios[:whole].reshape(-1, k).sum(axis=1) for ratios in (self.zero, self.one)))


def ratios_of(cloak: Cloak, placements: Placements, frames: int, rng: np.random.Generator) -> Ratios:
    """Log likelihood ratios of so many simulated releases of either placement.

    Noise does not depend on what it is added to, so that each draw serves for both.
    """
    zero, one = (_sent(cloak, readings) for readings in (placements.zero, placements.one))
    weights = seen(cloak, placements) / cloak.sigmas
    pieces = [
        cloak.simulate(np.tile(placements.zero, (min(_PIECE, frames - first), 1)), rng=rng) @ weights
        for first in range(0, frames, _PIECE)
    ]
    found = np.concatenate(pieces) - float((zero + one) @ weights) / 2
    return Ratios(found, found + float((one - zero) @ weights))


@dataclass(frozen=True)
class Measured:
    """An advantage that was measured, with its standard error; `mu` is the shift behind it, in standard deviations."""

    measured: float
    error: float
    mu: float

    @classmethod
    def of(cls, ratios: Ratios, mu: float) -> "Measured":
        """Who says `one` above 0 has the largest advantage, so that nothing is chosen by looking.

        With the same noise for both placements the advantage is the share of draws for which the answers differ.
        """
        differ = float(((ratios.one > 0) & (ratios.zero <= 0)).mean())
        return cls(differ, share_error(differ, len(ratios.zero)), mu)

    @property
    def exact(self) -> float:
        """What the advantage is."""
        return advantage(self.mu)

    def __str__(self) -> str:
        return f"{self.measured:.3f} ± {self.error:.3f}"
