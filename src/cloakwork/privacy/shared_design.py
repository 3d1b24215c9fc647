"""The design of shared noise: the covariance that locates sources best at the same guarantee, with a certificate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError
from cloakwork.physics import FloorPlan, HeatLine, HeatPlane, Placement
from cloakwork.privacy.calibration import Allowance, NoiseLevels
from cloakwork.privacy.observer import Scope
from cloakwork.privacy.shared import SharedNoise, own_noise_in
from cloakwork.privacy.variance import Moves, precision

MOST_SENSORS = 200
WARY = 0.03  # squared relative errors of gains, independent of each other, that the design expects
ENOUGH = 0.03  # relative gap at which a search stops
_STEEPER = 5.0  # factor on the weight of the mean variance from one centre to the next
_CENTRED = 1.0  # squared Newton decrement that is close enough to a centre
_NEWTON, _CONJUGATE = 25, 200  # most steps to a centre, and most directions of a step
_TIGHT = 500  # bounds that a direction takes into account exactly
_ACCURATE = 0.05  # relative residual at which a direction is accurate enough


@dataclass(frozen=True, eq=False)
class Precision:
    """The inverse (m, m) of a covariance that meets every bound, the mean variance there, and a lower bound for all."""

    matrix: FloatArray
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class SharedSearch:
    """The search for the best P, the inverse of a covariance.

    Parameters
    ----------
    moves
        The moves that the mean is taken over.
    rows
        Slopes of all readings along each move (moves, m), with signs, over what they may be.

    Notes
    -----
    Minimises the mean variance F(P) over positive P with d' P d + w sum_l P_ll d_l^2 <= 1 for each row d, w = `WARY`.
    F is convex and the bounds are linear. The second term is what independent errors of the gains add on average;
    without it the best P would rely on differences between sensors that no real sensor has so exactly.

    A barrier method: for rising t it minimises t F - sum log(slack) - log det P by Newton's method, each step by
    conjugate gradients in coordinates in which P is the identity. The certificate needs no solver: F(Q) >= F(P) +
    <F'(P), Q - P>, and prices y >= 0 with C = sum_e y_e (d d' + w diag(d^2)) >= -F'(P) bound <F'(P), Q> below by
    -sum y. The prices of the barrier, 1 / (t slack), are scaled until they do.
    """

    moves: Moves
    rows: FloatArray

    def run(self, enough: float = ENOUGH) -> Precision:
        """Find the best P up to a relative gap, or the best that rounding allows."""
        m = self.rows.shape[1]
        P = np.eye(m) * 0.5 / ((1 + WARY) * float((self.rows**2).sum(axis=1).max()))
        weight = 20.0 / self.moves.mean(P)
        best = self._certified(P, weight, None)
        while best.value - best.bound > enough * best.value:
            P = self._centred(P, weight)
            best = self._certified(P, weight, best)
            if weight * best.value * enough > sum(self.rows.shape):
                break  # exact centres would be close enough; what rounding leaves of the gap is stated
            weight *= _STEEPER
        return best

    def used(self, P: FloatArray) -> FloatArray:
        """How much of each bound P uses, shape (moves,)."""
        return np.asarray(((self.rows @ P) * self.rows).sum(axis=1) + WARY * (self.rows**2 @ np.diagonal(P)))

    def priced(self, prices: FloatArray) -> FloatArray:
        """The bounds in sum, each at its price, (m, m)."""
        total = (self.rows.T * prices) @ self.rows
        total[np.diag_indices_from(total)] += WARY * (prices @ self.rows**2)
        return np.asarray(total)

    def _certified(self, P: FloatArray, weight: float, before: Precision | None) -> Precision:
        """The better of what came before and what P and its prices prove."""
        used, slope = self.used(P), -self.moves.gradient(P)
        prices = 1 / (weight * (1 - used))
        scale = float(linalg.eigh(slope, self.priced(prices), eigvals_only=True)[-1])
        bound = self.moves.mean(P) + float((slope * P).sum()) - scale * float(prices.sum())
        full = P / float(used.max())
        value = self.moves.mean(full)
        if before is None:
            return Precision(full, value, bound)
        matrix, value = (full, value) if value < before.value else (before.matrix, before.value)
        return Precision(matrix, value, max(bound, before.bound))

    def _centred(self, P: FloatArray, weight: float) -> FloatArray:
        """The centre for a weight, by Newton's method with steps that stay inside."""
        height = self._height(P, weight)
        for _ in range(_NEWTON):
            point = _Point.at(self, P, weight)
            way = point.direction()
            decrement = -float((point.gradient * way).sum())
            step, change = 1.0, point.root @ way @ point.root.T
            while step > 1e-6:
                tried = P + step * change
                reached = self._height(tried, weight)
                if reached <= height - 1e-4 * step * decrement:
                    break
                step /= 2
            else:
                break  # rounding ends the search; the certificate says how far it came
            P, height = (tried + tried.T) / 2, reached
            if decrement < _CENTRED:
                break
        return P

    def _height(self, P: FloatArray, weight: float) -> float:
        """The barrier function, infinite outside."""
        try:
            root = np.linalg.cholesky(P)
        except np.linalg.LinAlgError:
            return math.inf
        left = 1 - self.used(P)
        if left.min() <= 0:
            return math.inf
        return weight * self.moves.mean(P) - float(np.log(left).sum()) - 2 * float(np.log(np.diagonal(root)).sum())


@dataclass(frozen=True, eq=False)
class _Point:
    """The barrier function around P = root root', for changes root X root' of P."""

    search: SharedSearch
    root: FloatArray
    weight: float
    left: FloatArray
    rows: FloatArray
    slopes: FloatArray
    inverse: FloatArray
    gradient: FloatArray

    @classmethod
    def at(cls, search: SharedSearch, P: FloatArray, weight: float) -> "_Point":
        root, left = np.asarray(np.linalg.cholesky(P), dtype=np.float64), 1 - search.used(P)
        inverse = np.asarray(np.linalg.inv(search.moves.information(P)), dtype=np.float64)
        slope = weight * search.moves.gradient(P) + search.priced(1 / left)
        gradient = root.T @ slope @ root - np.eye(len(P))
        return cls(search, root, weight, left, search.rows @ root, search.moves.slopes @ root, inverse, gradient)

    def curved(self, X: FloatArray) -> FloatArray:
        """The second derivative along X, (m, m)."""
        squares, root = self.search.rows**2, self.root
        along = ((self.rows @ X) * self.rows).sum(axis=1) + WARY * (squares @ ((root @ X) * root).sum(axis=1))
        prices = along / self.left**2
        total = X + (self.rows.T * prices) @ self.rows + WARY * (root.T * (prices @ squares)) @ root
        seen = self.inverse @ (self.slopes @ X) @ np.swapaxes(self.slopes, 1, 2) @ self.inverse
        bent = (self.weight * self.search.moves.shares)[:, None, None] * (seen @ self.inverse)
        bent = bent + np.swapaxes(bent, 1, 2)
        m = len(X)
        return np.asarray(total + (bent @ self.slopes).reshape(-1, m).T @ self.slopes.reshape(-1, m))

    def direction(self) -> FloatArray:
        """The Newton direction, by conjugate gradients; the tightest bounds are solved for exactly in each of them.

        Those bounds make the second derivative about X + sum_e u_e u_e'/left_e^2 with u_e = d_e d_e', whose inverse
        follows from the products (d_e . d_f)^2 of two of them.
        """
        tight = np.argsort(self.left / (self.rows**2).sum(axis=1))[:_TIGHT]
        rows = self.rows[tight]
        inner = linalg.cho_factor((rows @ rows.T) ** 2 + np.diag(self.left[tight] ** 2))

        def solved(rest: FloatArray) -> FloatArray:
            along = linalg.cho_solve(inner, ((rows @ rest) * rows).sum(axis=1))
            return np.asarray(rest - (rows.T * along) @ rows)

        X, rest = np.zeros_like(self.gradient), -self.gradient
        way = solved(rest)
        size = first = float((rest * way).sum())
        for _ in range(_CONJUGATE):
            bent = self.curved(way)
            step = size / float((way * bent).sum())
            X, rest = X + step * way, rest - step * bent
            near = solved(rest)
            before, size = size, float((rest * near).sum())
            if size < _ACCURATE**2 * first:
                break
            way = near + size / before * way
        return np.asarray((X + X.T) / 2)


def refuse_shared(allowance: Allowance) -> None:
    """Refuse shared noise where the condition on all sensors together is not known exactly."""
    family = allowance.family
    tolerance, physics = family.tolerance, family.physics
    anywhere = isinstance(physics, HeatPlane) or (
        isinstance(physics, HeatLine) and physics.placement is Placement.ANYWHERE
    )
    local = isinstance(physics, FloorPlan) and physics.local is not None
    reasons = {
        'scope="sensor" has nothing to share': allowance.scope is Scope.SENSOR,
        "it is for an observer of all sensors": family.observed is not None,
        "sources would move between the readings of a frame; give a timing without travel": family.timing.travel > 0,
        "a tolerance of position, memory or later times is not known for sensors together": bool(
            tolerance.position or tolerance.memory or tolerance.later
        ),
        "own_noise does not go with it": allowance.own is not None,
        "sources must be at places, not anywhere": anywhere,
        "one sensor has nothing to share": allowance.sensors == 1,
        f"it takes at most {MOST_SENSORS} sensors": allowance.sensors > MOST_SENSORS or local or not physics.explicit,
    }
    for reason, holds in reasons.items():
        if holds:
            raise CalibrationError(f'shared noise: {reason}. Use design="least-error".', reason=reason)


def shared_levels(allowance: Allowance, sources: int) -> NoiseLevels:
    """The shared noise that locates so many sources at once best."""
    refuse_shared(allowance)
    gain, physics = 1 + allowance.family.tolerance.gain, allowance.family.physics
    reach = allowance.mu * math.sqrt(allowance.number) / (allowance.alpha * gain)
    rows = np.concatenate(list(_signed_slopes(allowance))) / reach
    moves = Moves.of(physics).of_several(sources)
    search = SharedSearch(moves, rows)
    best = search.run()
    covariance = np.asarray(np.linalg.inv(best.matrix) * allowance.number, dtype=np.float64)
    levels = with_covariance(allowance, (covariance + covariance.T) / 2, scaled=True)
    final = precision(replace(allowance, shared=levels.shared).claimed(levels.sigma) / math.sqrt(allowance.number))
    # noise that uses up to k times the bounds of the search has at least 1/k of the least mean variance
    return replace(levels, bound=best.bound / max(1.0, float(search.used(final).max())) * (1 - 1e-9))


def _signed_slopes(allowance: Allowance) -> Iterator[FloatArray]:
    """The slopes of all readings along each move of each model, (moves, m)."""
    for member in allowance.family.members:
        for which, columns in member.pair_columns():
            yield (columns / member.space.lengths[which]).T


def with_covariance(allowance: Allowance, covariance: FloatArray, *, scaled: bool = False) -> NoiseLevels:
    """Split a covariance into own and shared noise; with `scaled`, scale it until it meets the exact condition."""
    refuse_shared(allowance)
    factor = 1.0
    for attempt in range(20):
        own = own_noise_in(covariance) * factor
        shared = SharedNoise.of(covariance * factor**2, own, allowance.steps(own))
        stated = replace(allowance, shared=shared)
        cost = stated.frame_mu(own)
        if not scaled or allowance.mu * (1 - 1e-6 * 2**attempt) <= cost <= allowance.mu:
            break
        factor *= cost / allowance.mu * (1 + 1e-9 * 2**attempt)  # steps that are given make the cost jump a little
    return NoiseLevels(own, allowance.covered(own), shared=shared)


def with_shared(allowance: Allowance, sigma: ArrayLike | None, shared: SharedNoise) -> NoiseLevels:
    """Own and shared noise as they are given; refused if steps of the shared part would show through the own noise."""
    refuse_shared(allowance)
    if sigma is None or len(shared.columns) != allowance.sensors:
        raise CalibrationError(
            f"shared noise for {len(shared.columns)} of {allowance.sensors} sensors: give a row of columns and a sigma "
            "for each.",
            sensors=allowance.sensors,
        )
    levels = allowance.chosen(sigma)
    if not shared.is_smooth(levels.sigma / allowance.steps(levels.sigma)):
        raise CalibrationError(
            "sensors have too little noise of their own for this shared noise: its steps would show. Give a larger "
            "sigma."
        )
    return replace(levels, shared=shared)
