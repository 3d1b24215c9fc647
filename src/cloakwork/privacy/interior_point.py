"""The least mean variance under bounds on the weights, by an interior-point method with a certificate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy.variance import Curve, LocationError

_MAX_STEPS = 200
_INSIDE = 0.9  # fraction of the bounds that the first weights use
_SHORT = 0.95  # fraction of the way to the boundary that a step may go


@dataclass(frozen=True, eq=False)
class Bounds:
    """The condition sum_g max over the rows of group g of rows @ w <= 1; rows (r, m) are not negative.

    Each group is a run of rows, and `starts` (g,) are their first ones. One group is a list of linear bounds.

    Notes
    -----
    With a variable u_g for the largest row of every group but the first, the condition is linear: rows @ w <= u_g for
    the rows of group g, and rows @ w + sum_g u_g <= 1 for those of the first.
    """

    rows: Any  # dense or sparse
    starts: IntArray

    @classmethod
    def of(cls, first: Any, *others: FloatArray) -> "Bounds":
        """Join groups of rows. A group of a single row needs no variable: it is added to all rows of the first."""
        for rows in others:
            first = first + rows[0] if len(rows) == 1 else first
        parts = [first, *(rows for rows in others if len(rows) > 1)]
        starts = np.cumsum([0, *(rows.shape[0] for rows in parts[:-1])])
        return cls(np.concatenate(parts) if len(parts) > 1 else first, starts.astype(np.int64))

    def used(self, weights: FloatArray) -> float:
        """Return the left side of the condition."""
        return float(self._largest(weights).sum())

    def certified(self, value: float, gradient: FloatArray, weights: FloatArray, prices: FloatArray) -> float:
        """Return a lower bound on a convex function over all weights, from its value and gradient at some.

        Notes
        -----
        F(v) >= F(w) + F'(w)(v - w). Prices y >= 0 with rows' y >= -F'(w) bound F'(w) v below by -max_g sum of y over
        group g. The prices are scaled until they do.
        """
        charged = self.rows.T @ prices
        scale = max(0.0, float((-gradient / charged).max()))
        most = float(np.add.reduceat(prices, self.starts).max())
        return value - float(gradient @ weights) - scale * most

    @cached_property
    def matrix(self) -> FloatArray:
        """The linear conditions matrix @ (w, u) <= limits."""
        lifted = -np.eye(len(self.starts))[self._group][:, 1:]
        lifted[self._group == 0] = 1.0
        return np.hstack([self.rows, lifted])

    @cached_property
    def limits(self) -> FloatArray:
        """The right side of the linear conditions, (r,)."""
        return np.where(self._group == 0, 1.0, 0.0)

    @cached_property
    def _group(self) -> IntArray:
        return np.searchsorted(self.starts, np.arange(len(self.rows)), side="right") - 1

    def inside(self, weights: FloatArray) -> FloatArray:
        """Scale weights until they are well inside the condition, and add the variables u of the groups."""
        w = _INSIDE * weights / self.used(weights)
        return np.concatenate([w, self._largest(w)[1:] + (1 - _INSIDE) / len(self.starts)])

    def _largest(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.maximum.reduceat(self.rows @ weights, self.starts))


@dataclass(frozen=True, eq=False)
class Optimum:
    """Weights that meet the bounds, the mean variance there, and a lower bound for all weights that meet them."""

    weights: FloatArray
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Upper bound on how far the value is above the best possible one, as a fraction."""
        return max(0.0, self.value - self.bound) / self.value


def least(moves: LocationError, bounds: Bounds, start: FloatArray, *, enough: float) -> Optimum:
    """Minimise the mean variance over weights w >= 0 that meet the bounds, up to a relative gap of `enough`.

    `start` are weights above zero, of any size. Each sensor must appear in some row.

    Notes
    -----
    A primal-dual method with Mehrotra's predictor and corrector. The certificate (`Bounds.certified`) needs no solver.
    """
    state = _State.at(moves, bounds, bounds.inside(start))
    best = _certified(moves, bounds, state, None)
    for _ in range(_MAX_STEPS):
        if best.gap <= enough:
            break
        try:
            state = _stepped(moves, bounds, state)
        except linalg.LinAlgError:
            break  # rounding ends the search; the best point so far stands, with its own gap
        best = _certified(moves, bounds, state, best)
    return best


@dataclass(frozen=True, eq=False)
class _State:
    """The variables x = (w, u), the slack of each row (`left`), and the multipliers y of the rows and z of x >= 0."""

    x: FloatArray
    left: FloatArray
    y: FloatArray
    z: FloatArray
    curve: Curve

    @classmethod
    def at(cls, moves: LocationError, bounds: Bounds, x: FloatArray) -> "_State":
        curve = moves.curve(x[: moves.sensors])
        left = bounds.limits - bounds.matrix @ x
        level = curve.value / (2 * sum(bounds.matrix.shape))
        return cls(x, left, level / left, level / x, curve)

    @property
    def level(self) -> float:
        """Mean of the products that are zero at the optimum."""
        return float((self.y @ self.left + self.z @ self.x) / (len(self.y) + len(self.z)))


@dataclass(frozen=True, eq=False)
class _Direction:
    x: FloatArray
    left: FloatArray
    y: FloatArray
    z: FloatArray


def _stepped(moves: LocationError, bounds: Bounds, now: _State) -> _State:
    rows, m = bounds.matrix, moves.sensors
    scaled = rows * np.sqrt(now.y / now.left)[:, None]
    system = scaled.T @ scaled
    system[:m, :m] += now.curve.hessian
    system[np.diag_indices_from(system)] += now.z / now.x
    factor = linalg.cho_factor(system)
    gradient = np.pad(now.curve.gradient, (0, len(now.x) - m))

    def towards(level: float, bent: _Direction | None) -> _Direction:
        bend_y, bend_z = (bent.left * bent.y, bent.x * bent.z) if bent else (0.0, 0.0)
        y = (level - bend_y) / now.left - now.y
        z = (level - bend_z) / now.x - now.z
        slope = gradient + now.y @ rows - now.z
        x = linalg.cho_solve(factor, z - slope - y @ rows)
        left = -(rows @ x)
        return _Direction(x, left, y - now.y * left / now.left, z - now.z * x / now.x)

    straight = towards(0.0, None)
    far, high = _reach(now, straight, 1.0)
    reached = (now.left + far * straight.left) @ (now.y + high * straight.y)
    reached += (now.x + far * straight.x) @ (now.z + high * straight.z)
    centring = min(1.0, max(0.01, (float(reached) / (len(now.y) + len(now.z)) / now.level) ** 3))
    chosen = towards(centring * now.level, straight)
    step = min(_reach(now, chosen, _SHORT))
    x = now.x + step * chosen.x
    left = bounds.limits - rows @ x
    return _State(x, left, now.y + step * chosen.y, now.z + step * chosen.z, moves.curve(x[:m]))


def _reach(now: _State, way: _Direction, share: float) -> tuple[float, float]:
    """How far variables and multipliers can go: `share` of the way to the boundary, and at most 1."""
    variables = max(float(np.max(-way.x / now.x)), float(np.max(-way.left / now.left)), share)
    multipliers = max(float(np.max(-way.y / now.y)), float(np.max(-way.z / now.z)), share)
    return share / variables, share / multipliers


def _certified(moves: LocationError, bounds: Bounds, now: _State, before: Optimum | None) -> Optimum:
    """The better of the previous optimum and what the current point proves."""
    w = now.x[: moves.sensors]
    full = w / bounds.used(w)
    value = moves.mean(full)
    bound = bounds.certified(now.curve.value, now.curve.gradient, w, now.y)
    if before is None:
        return Optimum(full, value, bound)
    weights, value = (full, value) if value < before.value else (before.weights, before.value)
    return Optimum(weights, value, max(bound, before.bound))
