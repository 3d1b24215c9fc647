"""Places, neighbours and distances."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import Graph, HeatPlane, Metric, Space


def test_a_line_has_its_places_at_i_over_n() -> None:
    space = Space.line(4, length=2.0)
    assert space.places[:, 0].tolist() == [0.5, 1.0, 1.5, 2.0]
    assert space.pairs.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert space.lengths.tolist() == [0.5, 0.5, 0.5]
    assert (len(space), space.dimension, space.metric) == (4, 1, Metric.LINE)


def test_a_line_through_points_joins_them_in_their_order_along_the_line() -> None:
    space = Space.line([3.0, 0.0, 1.0])
    assert space.pairs.tolist() == [[1, 2], [2, 0]]
    assert (space.lengths.tolist(), space.distances(0).tolist()) == ([1.0, 2.0], [0.0, 3.0, 2.0])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.floats(0.0, 1.0))
def test_index_is_the_nearest_place(n: int, at: float) -> None:
    space = Space.line(n)
    if n == 1 and at < 1.0:
        return  # a line of one place has no neighbour to measure a reach by
    place = space.index(at)
    assert abs(space.places[place, 0] - at) <= np.abs(space.places[:, 0] - at).min() + 1e-15


def test_distances_on_a_graph_are_its_shortest_paths() -> None:
    rng = np.random.default_rng(1)
    graph: nx.Graph[Any] = nx.connected_watts_strogatz_graph(20, 4, 0.4, seed=2)
    for u, v in graph.edges:
        graph.edges[u, v]["length"] = float(rng.uniform(0.1, 3.0))
    space = Graph(graph, tau=0.1).space
    for source, found in nx.all_pairs_dijkstra_path_length(graph, weight="length"):
        assert space.distances(space.index(source)) == pytest.approx([found[node] for node in graph.nodes])


@pytest.mark.parametrize(("pairs", "lengths"), [([[0, 1], [0, 1]], [2.0, 3.0]), ([[0, 1], [1, 0]], [3.0, 2.0])])
def test_of_two_ways_between_neighbours_the_shorter_counts(pairs: list[list[int]], lengths: list[float]) -> None:
    assert Space.path(pairs, lengths).distances(0).tolist() == [0.0, 2.0]


def test_labels_are_looked_up_by_name() -> None:
    space = Graph(nx.path_graph(["hall", "attic", ("a", 1)]), tau=1.0).space
    assert [space.index(name) for name in ("attic", ("a", 1), "hall")] == [1, 2, 0]
    with pytest.raises(PhysicsError, match="'hall', 'attic'") as problem:
        space.index("cellar")
    assert problem.value.at == "cellar"


@pytest.mark.parametrize(
    ("space", "at"),
    [
        (Space.path([[0, 1]]), 2),
        (Space.path([[0, 1]]), 0.5),
        (Space.line(10), 1.2),
        (Space.line(10), float("nan")),
        (Space.line(10), (0.1, 0.2)),
        (HeatPlane(n=(3, 3), m=(1, 1), T=1.0).space, 0.5),
        (HeatPlane(n=(3, 3), m=(1, 1), T=1.0).space, (0.5, 9.0)),
    ],
)
def test_positions_outside_are_refused(space: Space, at: object) -> None:
    with pytest.raises(InputError) as problem:
        space.index(at)
    assert problem.value.at is at


@pytest.mark.parametrize(
    "arguments",
    [
        {"places": np.empty((0, 1)), "pairs": [], "lengths": []},
        {"places": np.ones(3)},
        {"lengths": [1.0]},
        {"pairs": [[0, 1], [1, 3]]},
        {"lengths": [1.0, 0.0]},
        {"lengths": [1.0, float("nan")]},
        {"labels": ("a", "b")},
    ],
)
def test_impossible_spaces_are_refused(arguments: dict[str, Any]) -> None:
    all_arguments: dict[str, Any] = {
        "places": np.arange(3.0)[:, None],
        "pairs": [[0, 1], [1, 2]],
        "lengths": [1.0, 1.0],
        "metric": Metric.PATH,
    } | arguments
    with pytest.raises(PhysicsError) as problem:
        Space(**all_arguments)
    assert problem.value.values.keys() & {*arguments, "shape"}


@pytest.mark.parametrize(
    ("places", "pairs", "lengths", "metric", "attribute"),
    [
        ([[0.0], [1.0], [2.0]], [(0, 1), (1, 2)], [100.0, 100.0], Metric.LINE, "pair"),
        ([[0.0], [1.0], [2.0]], [(0, 1)], [1.0], Metric.LINE, "pair"),
        ([[0.0, 0.0], [1.0, 0.0]], [(0, 1)], [3.0], Metric.PLANE, "pair"),
        ([[0.0, 0.0], [1.0, 0.0]], [(0, 0)], [1.0], Metric.PATH, "pairs"),
        ([[0.0, 0.0], [1.0, 0.0]], [(0.9, 1.9)], [1.0], Metric.PATH, "pairs"),
    ],
)
def test_a_space_whose_pairs_do_not_make_its_metric_is_refused(
    places: list[list[float]], pairs: list[tuple[float, float]], lengths: list[float], metric: Metric, attribute: str
) -> None:
    with pytest.raises(PhysicsError) as problem:
        Space(np.array(places), pairs, lengths, metric)  # type: ignore[arg-type]
    assert attribute in problem.value.values
