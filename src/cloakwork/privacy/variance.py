"""How well noisy readings locate a source: the variance of its place, from the Fisher information."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, per_sensor
from cloakwork.accuracy import longest_path
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Nuisance, Physics, Space, pieces_of

_GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill an interval evenly
_PIECE = 100_000  # slopes per batch
_FLAT = 1e-9  # directions that the offsets of the neighbours span by less than this do not count
_PINNED = 1e-6  # fraction of a step to which the place is known in a direction that allows no move


def place_variances(
    physics: Physics, sigma: ArrayLike, *, known_within: float | None = None, drift: Drift | Nuisance | None = None
) -> FloatArray:
    """Variance of a lone unit source located from one frame, for each place: a mean over axes, (n,), squared length.

    Parameters
    ----------
    physics
        How sources become readings.
    sigma
        Standard deviation of the noise, one for all sensors or one per sensor.
    known_within
        Standard deviation to which the place is known before any reading. It defaults to the diagonal of the space;
        `math.inf` means that nothing is known, so a place that no sensor sees has an infinite variance.
    drift
        How the readings wander without any source, or what is left of it once learnt; its offsets are integrated out.

    Notes
    -----
    tr (J' diag(1/sigma^2) J + I/known_within^2)^-1 / axes, with J the slopes of the columns of M along the
    axes at a place: derivatives on a line or plane, else central differences, one-sided next to a wall. In a space
    without coordinates the moves are those to each neighbour, and J has one column. The covariance of offsets that
    drift is added to diag(sigma^2).

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> place_variances(HeatLine(n=5, m=5, T=0.05), 0.5).round(3).tolist()
    [0.022, 0.016, 0.013, 0.016, 0.022]
    """
    moves = LocationError.of(physics, known_within=known_within, drift=drift)
    noise = per_sensor("sigma", sigma, physics.sensors)
    return np.asarray(moves.members @ moves.variances(1 / noise**2))


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean variance at some weights: its value, gradient (m,) and Hessian (m, m)."""

    value: float
    gradient: FloatArray
    hessian: FloatArray


@dataclass(frozen=True, eq=False)
class LocationError:
    """How well readings locate a unit source, from how fast they change along each axis on which it can move.

    `slopes` has shape (blocks, axes, m), or is one sparse (blocks, m) for each axis on a large floor. `known`, shape
    (blocks, axes, axes), is the information available without readings. Row p of `members` averages blocks into the
    variance of place p. All functions of weights take w = 1/sigma^2. `offsets` (m, m) is the covariance of offsets that
    are integrated out.
    """

    slopes: Any
    known: FloatArray
    members: sparse.csr_array
    offsets: FloatArray | None = None

    @classmethod
    def of(
        cls, physics: Physics, *, known_within: float | None = None, drift: Drift | Nuisance | None = None
    ) -> "LocationError":
        """The moves of a model: along the axes, or to each neighbour in a space without coordinates."""
        within = extent(physics.space) if known_within is None else known_within
        if not within > 0:
            raise InputError(
                f"known_within={known_within!r}: give a length above 0, or math.inf.", known_within=known_within
            )
        along = physics.gradients_at(physics.space.places)
        if along is not None:
            n, axes = physics.space.places.shape
            fixed = np.broadcast_to(within**-2 * np.eye(axes), (n, axes, axes))
            moves = LocationError(along, fixed, sparse.diags_array(np.full(n, 1 / axes)).tocsr())
        elif physics.space.places.shape[1]:
            moves = _along_axes(physics, within**-2)
        else:
            moves = _to_neighbours(physics, within**-2)
        if drift is None or isinstance(moves.slopes, tuple):  # recovery takes no drift on floors as large as that
            return moves
        factor = (drift.on(physics) if isinstance(drift, Drift) else drift).factor
        return replace(moves, offsets=np.asarray(factor @ factor.T))

    @cached_property
    def shares(self) -> FloatArray:
        """The weight of each block in the mean over places, shape (blocks,)."""
        return np.asarray(self.members.sum(axis=0)).ravel() / max(1, self.members.shape[0])

    def thinned(self, most: int) -> "LocationError":
        """An evenly spread sample of the blocks with at most `most` slopes; all blocks if there are no more."""
        blocks = len(self.known)
        kept = max(1, most * blocks // max(1, blocks * self._axes * self.sensors))
        if kept >= blocks and not isinstance(self.slopes, tuple):
            return self
        chosen = np.arange(blocks)
        if kept < blocks:
            chosen = np.unique((np.arange(kept) * blocks * _GOLDEN % blocks).astype(np.int64))
        scale = self.shares.sum() / self.shares[chosen].sum()
        slopes = self.slopes
        if isinstance(slopes, tuple):
            few = np.stack([axis[chosen].toarray() for axis in slopes], axis=1)
        else:
            few = slopes[chosen]
        return LocationError(few, self.known[chosen], (self.members.tocsc()[:, chosen] * scale).tocsr(), self.offsets)

    def of_blocks(self, blocks: IntArray) -> "LocationError":
        """Some of the moves only, where each block is a place of its own."""
        slopes = self.slopes
        few = tuple(axis[blocks] for axis in slopes) if isinstance(slopes, tuple) else slopes[blocks]
        return LocationError(few, self.known[blocks], self.members[blocks][:, blocks], self.offsets)

    def of_sensors(self, sensors: IntArray, scale: FloatArray | float = 1.0) -> "LocationError":
        """The same moves seen by some sensors only, with their weights in units of `scale`."""
        if isinstance(self.slopes, tuple):
            scales = sparse.diags_array(np.broadcast_to(np.sqrt(scale), len(sensors)))
            return LocationError(
                tuple((axis[:, sensors] @ scales).tocsr() for axis in self.slopes), self.known, self.members
            )
        root = np.broadcast_to(np.sqrt(scale), len(sensors))
        offsets = None if self.offsets is None else self.offsets[np.ix_(sensors, sensors)] * np.outer(root, root)
        return LocationError(np.ascontiguousarray(self.slopes[:, :, sensors]) * root, self.known, self.members, offsets)

    def information(self, weights: FloatArray) -> FloatArray:
        """Fisher information of the place plus the known information, shape (blocks, axes, axes)."""
        information = self.known.copy()
        shown = self._shown(weights)
        if shown is not None:  # (diag(1/w) + C)^-1
            weights = shown * weights
        if isinstance(self.slopes, tuple):
            for a, b in itertools.product(range(self._axes), repeat=2):
                information[:, a, b] += self.slopes[a].multiply(self.slopes[b]) @ weights
            return information
        for piece in self._pieces:
            slopes = self.slopes[piece]
            scaled = slopes @ weights if weights.ndim == 2 else slopes * weights
            information[piece] += scaled @ np.swapaxes(slopes, 1, 2)
        return information

    def _shown(self, weights: FloatArray) -> FloatArray | None:
        """(I + W C)^-1 for offsets of covariance C: how much of a move is not taken for an offset; None without."""
        if self.offsets is None:
            return None
        return np.asarray(np.linalg.inv(np.eye(self.sensors) + weights[:, None] * self.offsets), dtype=np.float64)

    def variances(self, weights: FloatArray) -> FloatArray:
        """Sum of the variances along the axes of each block, shape (blocks,)."""
        with np.errstate(divide="ignore"):
            return np.asarray((1 / np.maximum(np.linalg.eigvalsh(self.information(weights)), 0.0)).sum(axis=1))

    def mean(self, weights: FloatArray) -> float:
        return float(self.shares @ self.variances(weights))

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Derivative of the mean variance by each weight, shape (m,)."""
        inverse = np.linalg.inv(self.information(weights)) * np.sqrt(self.shares)[:, None, None]
        shown = self._shown(weights)
        total = np.zeros(self.sensors)
        if isinstance(self.slopes, tuple):
            for a in range(self._axes):
                parts = [sparse.diags_array(inverse[:, a, b]) @ self.slopes[b] for b in range(self._axes)]
                total -= np.asarray(sum(parts[1:], parts[0]).power(2).sum(axis=0)).ravel()
            return total
        for piece in self._pieces:
            slopes = self.slopes[piece] if shown is None else self.slopes[piece] @ shown
            total -= ((inverse[piece] @ slopes) ** 2).sum(axis=(0, 1))
        return total

    def curve(self, weights: FloatArray) -> Curve:
        """The mean variance with its derivatives, of moves whose slopes are not sparse.

        Notes
        -----
        With A = sum_l w_l J_l J_l' = V diag(a) V' and g_l = V' J_l: d tr A^-1 / dw_l = -sum_a g_la^2 / a^2, and the
        second derivative is 2 sum_ab (g_ka g_kb)(g_la g_lb) / (a b^2). With offsets of covariance C the columns of
        J (I + W C)^-1 take the place of J_l. They change with the weights, which adds 2 S_kl sum_a g_ka g_la / a^2 to
        the second derivative, S = C (I + W C)^-1.
        """
        sizes, directions = np.linalg.eigh(self.information(weights))
        m = self.sensors
        gradient, hessian = np.zeros(m), np.zeros((m, m))
        shown = self._shown(weights)
        added = None if shown is None or self.offsets is None else 2 * self.offsets @ shown
        for piece in self._pieces:
            slopes = self.slopes[piece] if shown is None else self.slopes[piece] @ shown
            turned = np.swapaxes(directions[piece], 1, 2) @ slopes
            share = self.shares[piece]
            for i, j in itertools.combinations_with_replacement(range(sizes.shape[1]), 2):
                a, b = sizes[piece, i], sizes[piece, j]
                if i == j:
                    gradient -= (share / a**2) @ turned[:, i] ** 2
                    if added is not None:
                        hessian += added * (turned[:, i].T @ ((share / a**2)[:, None] * turned[:, i]))
                both = a**-3 if i == j else 1 / (a * b**2) + 1 / (b * a**2)
                product = np.sqrt(2 * share * both)[:, None] * turned[:, i] * turned[:, j]
                hessian += product.T @ product
        return Curve(float(self.shares @ (1 / sizes).sum(axis=1)), gradient, hessian)

    @property
    def sensors(self) -> int:
        return int((self.slopes[0] if isinstance(self.slopes, tuple) else self.slopes).shape[-1])

    @property
    def _axes(self) -> int:
        return int(self.known.shape[1])

    @property
    def _pieces(self) -> Iterator[slice]:
        """Blocks in batches that fit the processor's cache."""
        return pieces_of(len(self.known), self._axes * self.sensors, _PIECE)


def extent(space: Space) -> float:
    """How far apart two places can be: the diagonal or, without coordinates, the longest shortest path found."""
    diagonal = float(np.sqrt((np.ptp(space.places, axis=0) ** 2).sum()))
    return (diagonal if space.places.shape[1] else longest_path(space)) or 1.0


def _along_axes(physics: Physics, known: float) -> LocationError:
    space = physics.space
    n, axes = space.places.shape
    normal, entries = _fits(space)
    sizes, directions = np.linalg.eigh(normal)
    leads = sizes > _FLAT * np.maximum(sizes[:, -1:], 1e-300)
    inverse = (directions * np.where(leads, 1 / np.where(leads, sizes, 1.0), 0.0)[:, None]) @ np.swapaxes(
        directions, 1, 2
    )
    start, end, offsets = entries
    parts = np.einsum("kab,kb->ka", inverse[start], offsets)
    near = physics.near
    matrix = physics.matrix.T if near is None else near.T.tocsr()
    along: list[Any] = []
    for axis in range(axes):
        there = sparse.coo_array((parts[:, axis], (start, end)), shape=(n, n)).tocsr()
        here = sparse.diags_array(np.asarray(there.sum(axis=1)).ravel())
        along.append((there - here).tocsr() @ matrix)
    slopes = np.stack(along, axis=1) if near is None else tuple(sparse.csr_array(axis) for axis in along)
    # without a neighbour in some direction, the source cannot move that way
    pinned = np.where(leads, known, (_PINNED * space.lengths.min(initial=1.0)) ** -2)
    fixed = (directions * pinned[:, None]) @ np.swapaxes(directions, 1, 2)
    members = sparse.diags_array(1 / np.maximum(leads.sum(axis=1), 1)).tocsr()
    return LocationError(slopes, fixed, members)


def _fits(space: Space) -> tuple[FloatArray, tuple[IntArray, IntArray, FloatArray]]:
    """Least squares over the neighbours: the normal matrices, and each neighbour's weighted offset.

    On a grid this gives central differences, one-sided where a neighbour is missing.
    """
    start, end = np.concatenate([space.pairs, space.pairs[:, ::-1]]).T
    offsets = space.places[end] - space.places[start]
    weighted = offsets * (np.r_[space.lengths, space.lengths] ** -4)[:, None]
    axes = offsets.shape[1]
    normal = np.zeros((len(space), axes, axes))
    np.add.at(normal, start, weighted[:, :, None] * offsets[:, None, :])
    return normal, (start, end, weighted)


def _to_neighbours(physics: Physics, known: float) -> LocationError:
    space = physics.space
    i, j = space.pairs.T
    blocks = np.arange(len(space.pairs))
    degrees = np.bincount(np.r_[i, j], minlength=len(space))
    counts = sparse.coo_array(
        (1 / degrees[np.r_[i, j]], (np.r_[i, j], np.r_[blocks, blocks])), shape=(len(space), len(blocks))
    )
    slopes = ((physics.matrix[:, i] - physics.matrix[:, j]) / space.lengths).T[:, None, :]
    return LocationError(np.ascontiguousarray(slopes), np.full((len(blocks), 1, 1), known), counts.tocsr())
