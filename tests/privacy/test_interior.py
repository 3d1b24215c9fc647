"""The interior-point method: against Clarabel, with its certificate, and against points near the optimum."""

from typing import Any

import cvxpy
import numpy as np
import pytest

from cloakwork.physics import FloorPlan, HeatLine, Pulse, Rooms
from cloakwork.privacy.interior_point import Bounds, least
from cloakwork.privacy.variance import LocationError

ROOMS = Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
PLAN = FloorPlan(ROOMS, [(0.6, 0.6), (1.2, 1.7), (2.4, 1.1), (1.6, 0.9), (0.2, 1.8), (2.9, 0.1)], Pulse(0.5))
MODELS = {"rooms": PLAN, "line": HeatLine(n=15, m=8, T=0.01)}


def conditions(name: str) -> tuple[LocationError, np.ndarray]:
    model = MODELS[name]
    return LocationError.of(model), np.concatenate(list(model.steps().rows())) ** 2 / 4.0


def clarabel(moves: LocationError, bounds: Bounds) -> float:
    """The same problem as a semidefinite program: t_pa bounds entry a of the diagonal of the inverse at place p."""
    cp: Any = cvxpy
    w = cp.Variable(moves.sensors, nonneg=True)
    groups = np.split(bounds.rows, bounds.starts[1:])
    total, constraints = 0, [sum(cp.max(rows @ w) for rows in groups) <= 1]
    for block, known, share in zip(moves.slopes, moves.known, moves.shares, strict=True):
        information = known + sum(w[k] * np.outer(block[:, k], block[:, k]) for k in range(moves.sensors))
        for unit in np.eye(len(block)):
            bound = cp.Variable((1, 1))
            column = unit[:, None]
            constraints.append(cp.bmat([[information, column], [column.T, bound]]) >> 0)
            total = total + share * bound[0, 0]
    problem = cp.Problem(cp.Minimize(total), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


@pytest.mark.parametrize("cuts", [[], [5, 12]], ids=["one group", "three groups and a single row"])
@pytest.mark.parametrize("name", MODELS)
def test_it_agrees_with_clarabel(name: str, cuts: list[int]) -> None:
    moves, rows = conditions(name)
    groups = [*np.split(rows, cuts), *([rows[:1] / 3] if cuts else [])]
    bounds = Bounds.of(*groups)
    assert bounds.used(np.ones(moves.sensors)) == pytest.approx(sum(group.sum(axis=1).max() for group in groups))
    optimum = least(moves, bounds, np.ones(moves.sensors), enough=1e-6)
    expected = clarabel(moves, bounds)
    assert bounds.used(optimum.weights) <= 1 + 1e-12
    assert optimum.value == pytest.approx(expected, rel=1e-5)
    assert optimum.bound <= expected * (1 + 1e-6)
    assert optimum.gap <= 1e-6


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("enough", [1e-1, 1e-3, 1e-6])
def test_nothing_feasible_is_below_the_bound(name: str, enough: float, rng: np.random.Generator) -> None:
    moves, rows = conditions(name)
    optimum = least(moves, Bounds.of(rows), np.ones(rows.shape[1]), enough=enough)
    assert (optimum.weights >= 0).all()
    assert (rows @ optimum.weights).max() <= 1 + 1e-12
    assert optimum.value == pytest.approx(moves.mean(optimum.weights))
    assert optimum.gap <= enough
    for size in (1e-6, 1e-3, 0.1, 10.0):
        for _ in range(25):
            other = np.maximum(optimum.weights * (1 + size * rng.standard_normal(len(optimum.weights))), 0.0)
            other /= (rows @ other).max()
            assert moves.mean(other) >= optimum.bound
