"""Choosing sensors: near the best of all choices and better than an even spread, for every physics."""

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from cloakwork.errors import CalibrationError, PhysicsError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Pulse, Rooms, Space, Steady
from cloakwork.privacy import Cloak, choose_sensors, keep_sensors, largest_mu
from cloakwork.privacy.sensor_choice import evenly_spread

CLAIM: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "alpha": 0.3}
ROOMS = Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
CELLS = [(float(x), float(y)) for x, y in ROOMS.space.places]
MODELS: dict[str, Physics] = {
    "line": HeatLine(n=30, m=10, T=0.005),
    "plane": HeatPlane(n=(6, 5), m=(4, 3), T=0.02),
    "graph": Graph(nx.karate_club_graph(), tau=0.4, sensors=[0, 5, 9, 12, 16, 25, 33]),
    "adjacency": Graph(nx.to_scipy_sparse_array(nx.cycle_graph(7)).astype(float), tau=0.4),
    "rooms": FloorPlan(ROOMS, CELLS[::2], Steady(0.8), footprint=0.3),
    "matrix": Matrix(np.random.default_rng(1).normal(size=(7, 12)), Space.line(12)),
}


@pytest.mark.parametrize("seed", range(2))
def test_the_choice_is_near_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = [CELLS[k] for k in rng.choice(len(CELLS), 8, replace=False)]
    plan = FloorPlan(ROOMS, at, Pulse(0.6))
    choice = choose_sensors(plan, 4, **CLAIM)
    every = [
        Cloak(keep_sensors(plan, kept), **CLAIM, design="least-error").design_report.variance
        for kept in itertools.combinations(range(8), 4)
    ]
    assert choice.report.variance <= 1.06 * min(every)
    assert sum(value < choice.report.variance * 0.999 for value in every) <= 4


@pytest.mark.parametrize(
    ("name", "scope"), [*((name, "network") for name in MODELS), ("line", "sensor"), ("graph", "sensor")]
)
def test_a_choice_for_every_physics_keeps_the_guarantee(name: str, scope: str) -> None:
    model = MODELS[name]
    choice = choose_sensors(model, 4, **CLAIM, scope=scope)
    assert len(set(choice.sensors)) == len(choice.even) == 4
    assert choice.sensors == tuple(sorted(choice.sensors))
    assert np.allclose(choice.cloak.physics.matrix, model.matrix[list(choice.sensors)])
    assert choice.cloak.frame_mu <= largest_mu(2.0, 1e-5)
    assert choice.cloak.scope == scope
    assert choice.report.variance <= choice.even_report.variance
    assert choice.all_report.variance <= choice.report.variance * 1.02


def test_sensors_that_carry_nothing_can_all_go() -> None:
    line = HeatLine(n=100, m=50, T=0.05)
    choice = choose_sensors(line, 22, epsilon=1.0, delta=1e-6, alpha=0.01)
    assert choice.report.variance <= 1.01 * choice.all_report.variance
    assert choice.report.variance < choice.all_report.equal_variance


def test_sensors_that_see_nothing_fill_up_the_count() -> None:
    blind = np.random.default_rng(1).normal(size=(5, 12))
    blind[[1, 3]] = 0.0
    model = Matrix(blind, Space.line(12))
    assert choose_sensors(model, 4, **CLAIM).sensors in {(0, 1, 2, 4), (0, 2, 3, 4)}
    assert choose_sensors(model, 5, **CLAIM).sensors == (0, 1, 2, 3, 4)
    assert choose_sensors(model, 1, **CLAIM).sensors[0] in {0, 2, 4}


def test_progress_runs_from_nothing_to_all() -> None:
    seen: list[float] = []
    choose_sensors(MODELS["rooms"], 4, **CLAIM, progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[0] <= seen[-1] <= 1


def test_an_even_spread_is_even() -> None:
    line = HeatLine(n=100, m=50, T=0.05)
    gaps = np.diff(line.sensor_positions[evenly_spread(line, 5)])
    assert gaps.min() > 0.6 * gaps.max()
    ring = Graph(nx.cycle_graph(12), tau=0.4)
    assert np.diff(evenly_spread(ring, 4)).tolist() == [3, 3, 3]
    assert evenly_spread(MODELS["matrix"], 7).tolist() == list(range(7))


@pytest.mark.parametrize(
    ("count", "values"), [(0, {"count": 0}), (2.5, {"count": 2.5}), (13, {"count": 13, "sensors": 12})]
)
def test_bad_counts_are_refused(count: int, values: dict[str, object]) -> None:
    with pytest.raises(CalibrationError) as refused:
        choose_sensors(MODELS["rooms"], count, **CLAIM)
    assert refused.value.values == values


def test_sensors_of_an_unknown_model_cannot_be_dropped() -> None:
    class Own(Physics):
        space = Space.line(3)
        matrix = np.eye(3)
        error = 0.0

        def with_spread(self, factor: float) -> "Own":
            raise NotImplementedError

    with pytest.raises(PhysicsError, match="Own"):
        keep_sensors(Own(), [0])
