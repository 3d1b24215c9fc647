"""The numerical range of a model, and what bounds a network without its matrix."""

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.physics import Graph, HeatLine


@settings(max_examples=15, deadline=None)
@given(st.integers(5, 15), st.floats(0.01, 5.0), st.integers(0, 100_000))
def test_the_bound_of_a_graph_without_its_matrix_is_at_least_the_slope(n: int, tau: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.5, seed=seed)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = float(rng.uniform(0.1, 4.0))
        graph.edges[u, v]["length"] = float(rng.uniform(0.3, 3.0))
    some = [int(k) for k in rng.choice(n, size=3, replace=False)]
    for model in (Graph(graph, tau=tau, gain=2.0), Graph(graph, tau=tau, sensors=[*some, some[0]])):
        assert model.steepest_bound >= model.steps().norms().max() * (1 - 1e-9) - 1e-12


def test_that_bound_is_not_vacuous() -> None:
    slope = np.sqrt(2) * np.exp(-0.8)
    assert slope <= Graph(nx.complete_graph(8), tau=0.1).steepest_bound <= np.sqrt(2)


def test_weights_make_a_range_of_their_own() -> None:
    line = HeatLine(n=20, m=6, T=0.02)
    weights = np.linspace(1.0, 2.0, 6)
    scaled = line.range(weights)
    assert np.allclose(scaled.basis @ scaled.reduced, weights[:, None] * line.matrix, atol=1e-9)
    assert line.range(weights.copy()) is scaled
    assert line.range(2 * weights) is not scaled
