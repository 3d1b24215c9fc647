"""All limits at once: the same numbers as one by one, in readable sentences."""

import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from scipy import linalg

from cloakwork.accuracy import bayes_risk, cramer_rao, limits
from cloakwork.errors import InputError
from cloakwork.physics import (
    Drift,
    FloorPlan,
    Graph,
    HeatLine,
    HeatPlane,
    Matrix,
    Physics,
    Pulse,
    Rooms,
    Steady,
)


def flat() -> FloorPlan:
    rooms = Rooms.from_walls((6, 4), cell=0.5, walls=[((2, 0), (2, 4))], doors=[((2, 1), (2, 2))])
    sensors = [(0.5, 0.6), (1.4, 3.2), (3.3, 0.5), (5.1, 3.0), (3.0, 2.5), (4.6, 1.2), (0.6, 2.1)]
    return FloorPlan(rooms, sensors, Steady(reach=1.0), footprint=0.5)


MODELS: dict[str, Callable[[], Physics]] = {
    "line": lambda: HeatLine(n=60, m=12, T=0.02),
    "plane": lambda: HeatPlane(n=(9, 7), m=(4, 4), T=0.05, size=(1.0, 0.8)),
    "rooms": flat,
    "graph": lambda: Graph(nx.connected_watts_strogatz_graph(30, 4, 0.2, seed=2), tau=0.5),
}


@pytest.fixture(params=MODELS, name="physics")
def _physics(request: pytest.FixtureRequest) -> Physics:
    return MODELS[str(request.param)]()


@pytest.mark.parametrize("sigma", [0.02, 0.2])
def test_the_numbers_are_those_of_each_limit(physics: Physics, sigma: float) -> None:
    found = limits(physics, sigma)
    names = physics.space.labels
    places = list(names) if names is not None else list(physics.space.places)
    known = [cramer_rao(physics, [place], sigma) for place in places]
    per_axis = [float(np.sqrt((one.std**2).mean())) for one in known]
    assert found.typical_std == pytest.approx(np.median(per_axis), rel=1e-6)
    assert found.worst_std == pytest.approx(max(per_axis), rel=1e-6)
    assert found.method is known[0].method
    risk = bayes_risk(physics, sigma)
    assert found.average_emd == risk.mean_distance
    assert (found.right_place, found.places) == (risk.right_place, physics.places)


def test_shut_doors_and_cells_without_a_way_out_are_no_trouble() -> None:
    rooms = Rooms.from_text("....#...\n....+...\n....#...\n....#+##\n....#.##", cell=0.5)
    plan = FloorPlan(rooms, [(0.7, 0.7), (1.4, 2.0), (3.3, 1.8)], Pulse(length=0.7), footprint=0.3)
    found = limits(plan.with_doors_shut([0, 1]), 0.05)
    assert math.isfinite(found.typical_std)
    assert 0 < found.average_emd < 10


def test_what_has_no_limits_is_refused() -> None:
    one_place, line = HeatLine(n=1, m=3, T=0.1), HeatLine(n=4, m=3, T=0.1)
    for model, sigma, values in (
        (one_place, 0.1, {"places": 1}),
        (line, -1.0, {"sigma": -1.0}),
        ([1, 2], 0.1, {"physics": "something of type list"}),
    ):
        with pytest.raises(InputError) as problem:
            limits(model, sigma)  # type: ignore[arg-type]
        assert problem.value.values == values


def test_limits_with_drift_are_those_of_readings_that_are_whitened_by_their_covariance() -> None:
    line = HeatLine(n=20, m=8, T=0.02)
    covariance = np.diag(np.full(8, 0.3**2)) + 0.2**2 * np.eye(8) + 1.0
    root = np.real(linalg.sqrtm(np.linalg.inv(covariance)))
    plain = limits(Matrix(root @ line.matrix, line.space), 1.0)
    drifting = limits(Matrix(line.matrix, line.space), 0.3, drift=Drift(sensor=0.2, all=1.0))
    assert drifting.average_emd == pytest.approx(plain.average_emd, rel=1e-6)
    assert drifting.right_place == pytest.approx(plain.right_place, rel=1e-6)
    assert drifting.typical_std == pytest.approx(plain.typical_std, rel=1e-6)
    along = limits(line, 0.3, drift=Drift(sensor=0.2, all=1.0)).typical_std
    assert along > limits(line, 0.3).typical_std
