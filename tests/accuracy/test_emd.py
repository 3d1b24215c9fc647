"""Earth mover distance against an independent solver, along both of its routes."""

import importlib
from collections.abc import Callable

import networkx as nx
import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cloakwork.accuracy import emd
from cloakwork.errors import IncompatibleMapsError
from cloakwork.physics import Graph, HeatPlane, Rooms, Space

Floats = NDArray[np.float64]


def town() -> Space:
    rng = np.random.default_rng(1)
    graph = nx.connected_watts_strogatz_graph(24, 4, 0.3, seed=1)
    for u, v in graph.edges:
        graph.edges[u, v]["length"] = float(rng.uniform(0.1, 3.0))
    return Graph(graph, tau=0.1).space


SPACES: dict[str, Callable[[], Space]] = {
    "line": lambda: Space.line(23, length=4.0),
    "plane": lambda: HeatPlane(n=(5, 4), m=(1, 1), T=0.1, size=(1.0, 3.0)).space,
    "graph": town,
    "floor": lambda: Rooms.from_text("....#...\n....+...\n....#...\n....#...", cell=0.5).space,
}


@pytest.fixture(params=SPACES, name="space")
def _space(request: pytest.FixtureRequest) -> Space:
    return SPACES[str(request.param)]()


@pytest.fixture(params=[0, 10**9], ids=["flow", "transport"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("cloakwork.accuracy.emd"), "FEW_PAIRS", int(request.param))


def oracle(first: Floats, second: Floats, space: Space) -> float:
    costs = np.stack([space.distances(k) for k in range(len(space))])
    return float(ot.emd2(first / first.sum(), second / second.sum(), costs))


def random_map(rng: np.random.Generator, n: int, *, dense: bool) -> Floats:
    weights = rng.exponential(size=n)
    if not dense:
        weights[rng.permutation(n)[3:]] = 0.0
    return np.asarray(weights)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("dense", [(True, True), (False, False), (True, False)])
def test_emd_is_that_of_an_independent_solver(space: Space, dense: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(6):
        first, second = (random_map(rng, len(space), dense=each) for each in dense)
        assert emd(first, second, space) == pytest.approx(oracle(first, second, space), abs=1e-9)


@pytest.mark.usefixtures("route")
def test_a_move_costs_its_distance(space: Space) -> None:
    one = np.eye(len(space))
    for k in (1, 7, len(space) - 1):
        assert emd(one[0], one[k], space) == pytest.approx(space.distances(0)[k], rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(SPACES)), st.integers(0, 10**6))
def test_emd_is_a_distance(name: str, seed: int) -> None:
    space, rng = SPACES[name](), np.random.default_rng(seed)
    a, b, c = (random_map(rng, len(space), dense=bool(rng.integers(2))) for _ in range(3))
    there, back = emd(a, b, space), emd(b, a, space)
    assert there == pytest.approx(back, abs=1e-10)
    assert emd(a, a, space) == pytest.approx(0.0, abs=1e-12)
    assert emd(a, c, space) <= there + emd(b, c, space) + 1e-10
    assert emd(3 * a, 0.1 * b, space) == pytest.approx(there, abs=1e-10)


@pytest.mark.usefixtures("route")
def test_walls_count() -> None:
    walls = Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 2.5), (2, 3))])
    free = Rooms.from_walls((4, 3), cell=0.5)
    first, second = np.zeros(48), np.zeros(48)
    first[walls.cell_at(1.75, 0.25)] = 1.0
    second[walls.cell_at(2.25, 0.25)] = 1.0
    assert emd(first, second, free.space) == pytest.approx(0.5)
    assert emd(first, second, walls.space) == pytest.approx(0.5 + 2 * 2.5)


@pytest.mark.usefixtures("route")
def test_weight_that_no_path_can_carry_is_refused() -> None:
    space = Space.path([[0, 1], [2, 3]])
    assert emd([1, 0, 1, 0], [0, 1, 0, 1], space) == pytest.approx(1.0)
    with pytest.raises(IncompatibleMapsError, match="unconnected"):
        emd([1, 0, 0, 0], [0, 0, 0, 1], space)
    with pytest.raises(IncompatibleMapsError, match="unconnected"):
        emd([2, 0, 1, 0], [1, 0, 2, 0], space)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("width", [0.5, 1.5])
def test_smooth_maps_with_tiny_tails_are_connected(width: float) -> None:
    """Many weights too small to count on their own add up to more than one crumb."""
    space = Rooms.from_walls((10, 10), cell=0.5).space
    far = np.linalg.norm(space.places - [5.25, 5.25], axis=1)
    smooth, point = np.exp(-((far / width) ** 2) / 2), np.zeros(len(space))
    point[space.index((5.25, 5.25))] = 1.0
    expected = float(smooth @ space.distances(space.index((5.25, 5.25))) / smooth.sum())
    assert emd(smooth, point, space) == pytest.approx(expected, abs=1e-9)
    assert emd(point, smooth, space) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "attribute"),
    [
        ([0, 0, 0], [1, 0, 0], "map"),
        ([1, 0, 0], [0, 0, 0], "map"),
        ([1, 0, 0], [1, -1, 0], "place"),
        ([1, 0], [1, 0, 0], "width"),
        ([], [1, 0, 0], "width"),
        ([1, 0, 0], [1, float("nan"), 0], "where"),
        ([float("inf"), 0, 0], [1, 0, 0], "where"),
        ([[1, 0, 0]], [1, 0, 0], "shape"),
        (["a", "b", "c"], [1, 0, 0], "width"),
    ],
)
def test_maps_that_cannot_be_compared_are_refused(first: list[float], second: list[float], attribute: str) -> None:
    for space in (Space.line(3), Space.path([[0, 1], [1, 2]])):
        with pytest.raises(IncompatibleMapsError) as problem:
            emd(first, second, space)
        assert attribute in problem.value.values
