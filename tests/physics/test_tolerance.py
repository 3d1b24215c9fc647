"""A declared set of models, and the steepest slope over it."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from cloakwork.errors import PhysicsError
from cloakwork.physics import (
    Family,
    FloorPlan,
    Graph,
    HeatLine,
    HeatPlane,
    Matrix,
    Physics,
    Pulse,
    Rooms,
    Space,
    Steady,
    Tolerance,
)

ROOMS = Rooms.from_text("...#...\n...+...\n...#...\n#+###+#\n.......\n.......", cell=0.5)
FLAT = FloorPlan(ROOMS, [(0.8, 1.9), (2.6, 2.6), (1.2, 0.3)], Steady(reach=0.9), footprint=0.3)
LINE = HeatLine(n=20, m=6, T=0.02)


@pytest.mark.parametrize(
    ("physics", "tolerance"),
    [
        (LINE, Tolerance(diffusion=0.3)),
        (LINE, Tolerance(diffusion=0.3, gain=0.1, position=0.02)),
        (HeatPlane(n=(4, 4), m=(2, 2), T=0.3), Tolerance(diffusion=0.2, gain=0.2)),
        (Graph(nx.star_graph(6), tau=0.4), Tolerance(diffusion=0.5, position=1.0)),
        (FLAT, Tolerance(diffusion=0.2, doors=True)),
        (FLAT, Tolerance(gain=0.05, position=0.5, doors=True)),
    ],
)
def test_slopes_are_at_least_those_of_every_member(physics: Physics, tolerance: Tolerance) -> None:
    family = Family(physics, tolerance)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, physics.sensors)
    joint, weighted, alone = family.steepest().value, family.steepest(weights).value, family.each
    assert physics in family.members
    for member in family.members:
        assert joint >= member.moves().steepest().value
        assert weighted >= member.moves().steepest(weights).value
        assert (alone >= member.moves().each).all()


def test_sensors_with_their_own_gain_errors_are_covered() -> None:
    family = Family(LINE, Tolerance(gain=0.1))
    rng = np.random.default_rng(2)
    slope, alone = family.steepest().value, family.each
    for _ in range(20):
        gains = rng.choice([0.9, 1.0, 1.1], 6)
        real = Matrix(gains[:, None] * LINE.matrix, Space.line(20))
        assert real.moves().steepest().value <= slope
        assert (real.moves().each <= alone).all()
    assert slope == pytest.approx(1.1 * LINE.moves().steepest().value)


def test_diffusion_and_doors_are_tried_together() -> None:
    both = Family(FLAT, Tolerance(diffusion=0.2, doors=True))
    worst = FLAT.with_spread(0.8).with_doors_shut([0, 1, 2]).moves().steepest().value
    assert both.steepest().value >= worst
    assert len(both.members) == 8 * len(Family(FLAT, Tolerance(diffusion=0.2)).members)


@pytest.mark.parametrize(
    "wrong",
    [
        {"diffusion": 1.0},
        {"diffusion": -0.1},
        {"gain": float("nan")},
        {"position": float("inf")},
        {"gain": "2 %"},
    ],
)
def test_impossible_tolerances_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PhysicsError) as problem:
        Tolerance(**wrong)
    assert problem.value.values.keys() & {*wrong, "sensor"}


def test_values_between_those_evaluated_are_covered() -> None:
    """A slope need not be monotone in the diffusion: the steepest may lie between two evaluated values."""
    line = HeatLine(n=6, m=[0.03959287666420286], T=0.003852723037279587)
    declared = Family(line, Tolerance(diffusion=0.9)).steepest().value
    within = [line.with_spread(float(k)).moves().steepest().value for k in np.geomspace(0.1, 1.9, 401)]
    assert max(within) <= declared
    assert max(within) > 1.01 * max(within[::50]), "the values that are evaluated are not enough"


def test_a_node_at_exactly_the_declared_distance_counts() -> None:
    path = nx.path_graph(12)
    for _, _, edge in path.edges(data=True):
        edge["length"] = 0.1
    assert 3 in Graph(path, tau=0.5, sensors=[0]).nearby_places(0.3)[0]


def test_memory_adds_up_the_slopes_of_all_ages() -> None:
    plan = FloorPlan(
        Rooms.from_walls((3, 2), cell=0.25, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.25))]),
        [(0.5, 0.5), (1.2, 1.5), (2.4, 1.0), (2.6, 0.3)],
        Steady(0.8),
        footprint=0.3,
    )
    weights = np.array([1.0, 3.0, 0.5, 2.0])
    ages = -np.log1p(-(np.arange(300) + 0.5) / 300)
    slopes = [replace(plan, regime=Pulse(0.8 * np.sqrt(2 * age))).moves().steepest(weights).value for age in ages]
    bound = Family(plan, Tolerance(memory=True)).steepest(weights).value
    assert np.mean(slopes) <= bound <= 1.05 * np.mean(slopes)
    assert bound > plan.moves().steepest(weights).value
    assert (Family(plan, Tolerance(memory=True)).each >= plan.moves().each).all()


def test_only_steady_sources_on_a_floor_plan_have_a_known_memory() -> None:
    with pytest.raises(PhysicsError) as caught:
        Family(HeatLine(n=10, m=3, T=0.1), Tolerance(memory=True)).steepest()
    assert caught.value.values == {"memory": True}


@pytest.mark.parametrize(
    "physics",
    [
        HeatLine(n=10, m=[0.0], T=5e-4),
        HeatLine(n=10, m=[0.0, 0.03], T=5e-4, placement="anywhere"),
        HeatPlane(n=(4, 4), m=[(0.1, 0.2), (0.9, 0.9)], T=0.1),
        Graph(nx.path_graph(9), tau=0.05, sensors=[0, 1]),
        FloorPlan(ROOMS, [(0.8, 1.9), (2.6, 2.6), (1.2, 0.3)], Pulse(0.6), footprint=0.3),
    ],
    ids=["line", "line anywhere", "plane", "network", "rooms"],
)
@pytest.mark.parametrize("position", [0.0, 0.5])
def test_readings_of_a_pulse_after_the_stated_time_are_covered(physics: Physics, position: float) -> None:
    weights = np.linspace(1, 5, physics.sensors)
    family = Family(physics, Tolerance(diffusion=0.2, position=position, later=True))
    rounded_up = 1 + 1e-4  # as slopes anywhere are
    for factor in (0.8, 1, 2, 5, 20):
        later = physics.with_spread(factor)
        slope = later.moves(position=position).steepest(weights).value
        assert slope <= family.steepest(weights).value * rounded_up
        assert (later.moves(position=position).each <= family.each * rounded_up).all()


def test_only_a_known_pulse_is_read_later() -> None:
    for model in (FLAT, Matrix(np.eye(3), Space.line(3)), Graph(nx.path_graph(3), tau=0)):
        with pytest.raises(PhysicsError) as caught:
            Family(model, Tolerance(later=True)).steepest()
        assert caught.value.values == {"later": True}
