"""The least mean variance under linear bounds on the weights, by an interior-point method with a certificate."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize

from cloakwork._checks import FloatArray
from cloakwork.privacy.variance import Curve, Moves

_MOST_STEPS = 200
_PRICED = 1e-6  # fraction of the largest price below which a bound does not bind
_INSIDE = 0.9  # fraction of the bounds that the first weights use
_SHORT = 0.95  # fraction of the way to the boundary that a step may go


@dataclass(frozen=True, eq=False)
class Optimum:
    """Weights that meet every bound, the mean variance there, and a lower bound for all weights.

    `prices` are the multipliers of the bounds that prove the lower bound, up to a factor.
    """

    weights: FloatArray
    value: float
    bound: float
    prices: FloatArray

    @property
    def gap(self) -> float:
        """Upper bound on how far the value is above the best possible one, as a fraction."""
        return max(0.0, self.value - self.bound) / self.value


def least(moves: Moves, rows: FloatArray, start: FloatArray, *, enough: float, hopeless: float = math.inf) -> Optimum:
    """Minimise the mean variance over weights w >= 0 with rows @ w <= 1.

    Parameters
    ----------
    moves
        The moves that the mean is taken over.
    rows
        One bound per row, not negative; each sensor must appear in some row.
    start
        Weights above zero, of any size.
    enough
        Relative gap at which to stop.
    hopeless
        Stop as well once no value below this one is possible.

    Notes
    -----
    A primal-dual method with Mehrotra's predictor and corrector. The certificate needs no solver: the mean variance F
    is convex, so F(v) >= F(w) + F'(w)(v - w), and prices y >= 0 with rows' y >= -F'(w) bound F'(w) v below by -sum y.
    """
    state = _State.at(moves, rows, _INSIDE * start / float((rows @ start).max()))
    best = _certified(moves, rows, state, None)
    for _ in range(_MOST_STEPS):
        if best.gap <= enough or best.bound >= hopeless:
            break
        try:
            state = _stepped(moves, rows, state)
        except linalg.LinAlgError:
            break  # rounding ends the search; the best point so far stands, with its own gap
        best = _certified(moves, rows, state, best)
    return best


@dataclass(frozen=True, eq=False)
class _State:
    """Weights w, the slack of each bound (`left`), and the multipliers y of the bounds and z of w >= 0."""

    w: FloatArray
    left: FloatArray
    y: FloatArray
    z: FloatArray
    curve: Curve

    @classmethod
    def at(cls, moves: Moves, rows: FloatArray, w: FloatArray) -> "_State":
        curve = moves.curve(w)
        left = 1 - rows @ w
        level = curve.value / (2 * sum(rows.shape))
        return cls(w, left, level / left, level / w, curve)

    @property
    def level(self) -> float:
        """Mean of the products that are zero at the optimum."""
        return float((self.y @ self.left + self.z @ self.w) / (len(self.y) + len(self.z)))


@dataclass(frozen=True, eq=False)
class _Direction:
    w: FloatArray
    left: FloatArray
    y: FloatArray
    z: FloatArray


def _stepped(moves: Moves, rows: FloatArray, now: _State) -> _State:
    scaled = rows * np.sqrt(now.y / now.left)[:, None]
    system = now.curve.hessian + scaled.T @ scaled
    system[np.diag_indices_from(system)] += now.z / now.w
    factor = linalg.cho_factor(system)

    def towards(level: float, bent: _Direction | None) -> _Direction:
        bend_y, bend_z = (bent.left * bent.y, bent.w * bent.z) if bent else (0.0, 0.0)
        y = (level - bend_y) / now.left - now.y
        z = (level - bend_z) / now.w - now.z
        slope = now.curve.gradient + now.y @ rows - now.z
        w = linalg.cho_solve(factor, z - slope - y @ rows)
        left = -(rows @ w)
        return _Direction(w, left, y - now.y * left / now.left, z - now.z * w / now.w)

    straight = towards(0.0, None)
    far, high = _reach(now, straight, 1.0)
    reached = (now.left + far * straight.left) @ (now.y + high * straight.y)
    reached += (now.w + far * straight.w) @ (now.z + high * straight.z)
    centring = min(1.0, max(0.01, (float(reached) / (len(now.y) + len(now.z)) / now.level) ** 3))
    chosen = towards(centring * now.level, straight)
    step = min(_reach(now, chosen, _SHORT))
    w = now.w + step * chosen.w
    return _State(w, 1 - rows @ w, now.y + step * chosen.y, now.z + step * chosen.z, moves.curve(w))


def _reach(now: _State, way: _Direction, share: float) -> tuple[float, float]:
    """How far weights and multipliers can go: `share` of the way to the boundary, and at most 1."""
    weights = max(float(np.max(-way.w / now.w)), float(np.max(-way.left / now.left)), share)
    multipliers = max(float(np.max(-way.y / now.y)), float(np.max(-way.z / now.z)), share)
    return share / weights, share / multipliers


def _certified(moves: Moves, rows: FloatArray, now: _State, before: Optimum | None) -> Optimum:
    """The better of the previous optimum and what the current point proves."""
    full = now.w / float((rows @ now.w).max())
    value = moves.mean(full)
    bound = certified_bound(now.curve.value, now.curve.gradient, rows, now.w, now.y)
    if before is None:
        return Optimum(full, value, bound, now.y)
    weights, value = (full, value) if value < before.value else (before.weights, before.value)
    prices, bound = (now.y, bound) if bound > before.bound else (before.prices, before.bound)
    return Optimum(weights, value, bound, prices)


def lower_bound(moves: Moves, rows: FloatArray, weights: FloatArray, prices: FloatArray) -> float:
    """A lower bound over all weights with rows @ w <= 1, from the slope at weights that were found for fewer moves.

    The prices solve the linear program that the slope gives, over the rows that had a price before.
    """
    gradient = moves.gradient(weights)
    binding = rows[prices > _PRICED * prices.max()]
    program = optimize.linprog(np.ones(len(binding)), A_ub=binding.T / gradient[:, None], b_ub=-np.ones(len(weights)))
    if program.x is None:
        return 0.0
    return certified_bound(moves.mean(weights), gradient, binding, weights, np.maximum(program.x, 0.0))


def certified_bound(value: float, gradient: FloatArray, rows: Any, weights: FloatArray, prices: FloatArray) -> float:
    """F(w) - F'(w) w - sum y, with the prices y scaled until rows' y >= -F'(w); rows are dense or sparse."""
    charged = rows.T @ prices
    scale = max(0.0, float((-gradient / charged).max()))
    return value - float(gradient @ weights) - scale * float(prices.sum())
