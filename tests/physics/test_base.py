"""What holds for every model: the adjoint identity, frames on the leading axes, slopes that round outward."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import (
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
    sources,
)

ROOMS = Rooms.from_text("#######\n#..#..#\n#..+..#\n#######", cell=0.5)
AT = [(0.75, 0.75), (2.75, 1.25), (1.25, 1.25)]

MODELS: dict[str, Callable[[], Physics]] = {
    "line": lambda: HeatLine(n=13, m=5, T=0.02),
    "line of a length": lambda: HeatLine(n=7, m=[0.0, 1.9, 3.0], T=0.3, length=3.0, gain=2.5),
    "plane": lambda: HeatPlane(n=(4, 5), m=(3, 2), T=0.03, size=(2.0, 1.0)),
    "plane with listed sensors": lambda: HeatPlane(n=(3, 3), m=[(0.1, 0.2), (0.9, 0.4)], T=0.05, gain=3.0),
    "graph": lambda: Graph(nx.karate_club_graph(), tau=0.3, sensors=[0, 5, 33]),
    "steady floor": lambda: FloorPlan(ROOMS, AT, Steady(reach=1.0)),
    "steady floor with footprint": lambda: FloorPlan(ROOMS, AT, Steady(reach=1.0), footprint=0.5, gain=4.0),
    "pulse floor": lambda: FloorPlan(ROOMS, AT, Pulse(length=0.7)),
    "pulse floor with footprint": lambda: FloorPlan(ROOMS, AT, Pulse(length=0.7), footprint=0.3),
    "matrix": lambda: Matrix(np.random.default_rng(3).normal(size=(4, 6)), Space.line(6)),
}


@pytest.fixture(params=MODELS, name="physics")
def _physics(request: pytest.FixtureRequest) -> Physics:
    return MODELS[str(request.param)]()


def test_apply_and_adjoint_are_adjoint(physics: Physics) -> None:
    rng = np.random.default_rng(1)
    f, y = rng.normal(size=physics.places), rng.normal(size=physics.sensors)
    assert physics.apply(f).shape == (physics.sensors,)
    assert physics.adjoint(y).shape == (physics.places,)
    assert physics.apply(f) @ y == pytest.approx(f @ physics.adjoint(y), rel=1e-12)


def test_apply_is_the_matrix(physics: Physics) -> None:
    assert np.allclose(physics.apply(np.eye(physics.places)).T, physics.matrix, rtol=1e-13, atol=0)
    with pytest.raises(ValueError, match="read-only"):
        physics.matrix[0, 0] = 1.0


def test_slopes_are_at_least_those_of_every_neighbour_pair(physics: Physics) -> None:
    i, j = physics.space.pairs.T
    shifts = (physics.matrix[:, i] - physics.matrix[:, j]) / physics.space.lengths
    weights = np.random.default_rng(5).uniform(0.1, 2.0, physics.sensors)
    assert physics.moves().steepest().value >= np.linalg.norm(shifts, axis=0).max()
    assert physics.moves().steepest(weights).value >= np.linalg.norm(weights[:, None] * shifts, axis=0).max()
    assert (physics.moves().each >= np.abs(shifts).max(axis=1)).all()
    assert physics.steps().norms() == pytest.approx(np.linalg.norm(shifts, axis=0), rel=1e-12)


def test_the_numerical_range_gives_the_matrix_back(physics: Physics) -> None:
    found = physics.range()
    assert np.allclose(found.basis @ found.reduced, physics.matrix, atol=1e-9 * np.linalg.norm(physics.matrix))
    assert np.allclose(found.basis.T @ found.basis, np.eye(found.rank), atol=1e-12)
    assert physics.range() is found


def test_readings_of_the_wrong_shape_or_not_finite_are_refused(physics: Physics) -> None:
    n = physics.places
    with pytest.raises(InputError) as problem:
        physics.apply(np.zeros(n + 1))
    assert problem.value.values == {"shape": (n + 1,), "width": n}
    bad = np.zeros((2, n))
    bad[1, 1] = np.nan
    with pytest.raises(InputError) as problem:
        physics.apply(bad)
    assert problem.value.where == (1, 1)
    with pytest.raises(InputError) as problem:
        physics.apply(["warm"] * n)
    assert problem.value.width == n


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 5.0)), max_size=6))
def test_sources_keep_their_weight_and_stand_within_half_a_step(given_sources: list[tuple[float, float]]) -> None:
    line = HeatLine(n=10, m=3, T=0.1)
    at, weights = [a for a, _ in given_sources], [w for _, w in given_sources]
    f = sources(line, at, weights)
    assert f.sum() == pytest.approx(sum(weights))
    for position, weight in given_sources:
        place = line.space.index(position)
        assert abs(line.space.places[place, 0] - position) <= (0.05 if position > 0.05 else 0.1) + 1e-12
        assert f[place] >= weight * (1 - 1e-12)


@pytest.mark.parametrize(
    ("at", "weights"),
    [
        ([0.5], [1.0, 2.0]),
        ([0.5], [float("nan")]),
        ([0.1, 0.5], [1.0, -1.0]),
        ([float("nan")], None),
        (["here"], None),
        ("here", None),
        ([(0.1, 0.2)], None),
        ([1.3], None),
    ],
)
def test_impossible_sources_are_refused(at: list[object], weights: list[float] | None) -> None:
    with pytest.raises(InputError) as problem:
        sources(HeatLine(n=10, m=3, T=0.1), at, weights)
    assert ("at" if weights is None else "weights") in problem.value.values


def test_a_model_without_known_sensors_refuses_position_errors() -> None:
    with pytest.raises(PhysicsError) as problem:
        Matrix(np.eye(3), Space.line(3)).moves(position=0.1).steepest()
    assert problem.value.position == 0.1


NAN = float("nan")
IMPOSSIBLE: list[tuple[Callable[..., Physics], dict[str, Any], list[dict[str, Any]]]] = [
    (
        HeatLine,
        {"n": 10, "m": 5, "T": 0.05},
        [
            *({"n": n} for n in (0, 2.5)),
            *({"m": m} for m in (0, [], [0.5, 1.5], [0.5, NAN])),
            *({"T": T} for T in (0, -1.0, NAN)),
            *({"length": 0.0}, {"gain": -2.0}, {"placement": "nowhere"}),
        ],
    ),
    (
        HeatPlane,
        {"n": (4, 4), "m": (2, 2), "T": 0.05},
        [
            *({"n": n} for n in ((4,), (4, 0))),
            *({"m": m} for m in ((3, 0), [], [(0.1, NAN)], [(0.1, 0.2, 0.3)], [(0.5, 0.5), (0.5, 1.5)])),
            *({"size": (1.0,)}, {"size": (1.0, -1.0)}, {"T": NAN}, {"gain": float("inf")}),
        ],
    ),
    (
        FloorPlan,
        {"rooms": ROOMS, "sensors_at": [(1.0, 1.0)], "regime": Steady(1.0)},
        [
            *(
                {"sensors_at": at}
                for at in ([], [(1.0, 1.0, 1.0)], [(1.0, NAN)], [(1.0, 1.0), (0.2, 0.2)], [(9.0, 1.0)])
            ),
            *({"regime": "steady"}, {"footprint": -0.1}, {"footprint": NAN}, {"gain": 0.0}),
        ],
    ),
]


@pytest.mark.parametrize(
    ("make", "usual", "wrong"), [(make, usual, wrong) for make, usual, all_ in IMPOSSIBLE for wrong in all_]
)
def test_impossible_models_are_refused(
    make: Callable[..., Physics], usual: dict[str, Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(PhysicsError) as problem:
        make(**usual | wrong)
    assert problem.value.values.keys() & {*wrong, "sensor"}
