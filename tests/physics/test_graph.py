"""Diffusion over a network: laws, closed forms, refusals."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import PhysicsError
from cloakwork.physics import Graph


def town(seed: int = 1) -> "nx.Graph[Any]":
    """A connected graph with weights and lengths that differ."""
    rng = np.random.default_rng(seed)
    graph: nx.Graph[Any] = nx.relabel_nodes(nx.connected_watts_strogatz_graph(15, 4, 0.4, seed=seed), str)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = float(rng.uniform(0.2, 3.0))
        graph.edges[u, v]["length"] = float(rng.uniform(0.5, 4.0))
    return graph


def test_two_short_times_are_one_long_time() -> None:
    first, second, both = (Graph(town(), tau=tau).matrix for tau in (0.3, 1.1, 1.4))
    assert np.allclose(first @ second, both, atol=1e-13)


def test_sensors_are_rows_in_the_order_given() -> None:
    whole = Graph(town(), tau=0.5)
    some = Graph(town(), tau=0.5, sensors=["9", "2", "9"])
    picked = [whole.space.index(name) for name in ("9", "2", "9")]
    assert np.allclose(some.matrix, whole.matrix[picked], atol=1e-14)


def test_adjacency_matrix_and_networkx_agree() -> None:
    graph = town()
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, 1.0), "length")
    named, numbered = Graph(graph, tau=0.6), Graph(nx.to_scipy_sparse_array(graph, weight="weight"), tau=0.6)
    assert np.allclose(named.matrix, numbered.matrix, atol=1e-14)
    assert named.moves().steepest().value == pytest.approx(numbered.moves().steepest().value, rel=1e-12)
    assert named.space.distances(4) == pytest.approx(numbered.space.distances(4))


def test_weights_spread_and_lengths_measure() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b", weight=2.0, length=5.0)
    pair = Graph(graph, tau=0.4)
    assert pair.matrix[0, 1] == pytest.approx((1 - np.exp(-2 * 0.4 * 2.0)) / 2, rel=1e-13)
    assert pair.moves().steepest().value == pytest.approx(np.sqrt(2) * np.exp(-2 * 0.4 * 2.0) / 5.0, rel=1e-10)


@pytest.mark.parametrize(("n", "tau"), [(3, 0.1), (6, 0.25), (20, 0.02)])
def test_complete_graph_has_its_closed_form(n: int, tau: float) -> None:
    slope = Graph(nx.complete_graph(n), tau=tau).moves().steepest().value
    assert slope**2 == pytest.approx(2 * np.exp(-2 * tau * n), rel=1e-9)
    assert slope**2 >= 2 * np.exp(-2 * tau * n)


@pytest.mark.parametrize(("n", "tau"), [(3, 0.1), (10, 0.5), (40, 0.05)])
def test_star_has_its_closed_form(n: int, tau: float) -> None:
    expected = n / (n - 1) * np.exp(-2 * tau * n) + (n - 2) / (n - 1) * np.exp(-2 * tau)
    slope = Graph(nx.star_graph(n - 1), tau=tau).moves().steepest().value
    assert slope**2 == pytest.approx(expected, rel=1e-9)
    assert slope**2 >= expected * (1 - 1e-15)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 3.0), st.floats(0.5, 4.0))
def test_sensors_on_nodes_nearby_never_exceed_the_displaced_slope(seed: int, tau: float, distance: float) -> None:
    graph, rng = town(seed % 7), np.random.default_rng(seed)
    stated = Graph(graph, tau=tau, sensors=["0", "5", "11"])
    slope, alone = stated.moves(position=distance).steepest().value, stated.moves(position=distance).each
    near = [np.flatnonzero(stated.space.distances(stated.space.index(s)) <= distance) for s in ("0", "5", "11")]
    for _ in range(5):
        moved = Graph(graph, tau=tau, sensors=[stated.space.name(int(rng.choice(nodes))) for nodes in near])
        assert moved.steps().norms().max() <= slope
        i, j = moved.space.pairs.T
        columns = np.abs(moved.matrix[:, i] - moved.matrix[:, j]) / moved.space.lengths
        assert (columns.max(axis=1) <= alone).all()


def edges(*given_edges: tuple[object, ...], directed: bool = False) -> Any:
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    for u, v, *values in given_edges:
        graph.add_edge(u, v, **dict(zip(("weight", "length"), values, strict=False)))
    return graph


@pytest.mark.parametrize(
    ("graph", "extra", "attribute"),
    [
        (nx.Graph(), {}, "nodes"),
        (edges(("a", "b"), directed=True), {}, "graph"),
        (nx.MultiGraph([("a", "b"), ("a", "b")]), {}, "graph"),
        (edges(("hall", "attic"), ("shed", "barn")), {}, "places"),
        (edges(("a", "b", -1.0)), {}, "edge"),
        (edges(("a", "b", 0.0)), {}, "edge"),
        (edges(("a", "b", "heavy")), {}, "edges"),
        (edges(("a", "b", 1.0, -2.0)), {}, "lengths"),
        (edges(("a", "b")), {"tau": -0.1}, "tau"),
        (edges(("a", "b")), {"tau": float("nan")}, "tau"),
        (edges(("a", "b")), {"gain": 0.0}, "gain"),
        (edges(("a", "b")), {"sensors": []}, "sensors"),
        (edges(("a", "b")), {"sensors": ["c"]}, "at"),
        ([("a", "b")], {}, "graph"),
        (np.zeros((2, 3)), {}, "shape"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), {}, "graph"),
        (np.zeros((3, 3)), {}, "places"),
    ],
)
def test_impossible_graphs_are_refused(graph: Any, extra: dict[str, Any], attribute: str) -> None:
    with pytest.raises(PhysicsError) as problem:
        Graph(graph, **({"tau": 0.5} | extra))
    assert attribute in problem.value.values
