"""The numerical range and the description of a model."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.physics import Graph, HeatLine, Matrix, Physics, Side, Space


def bracket(physics: Physics) -> int:
    """Check each bound against the slope; how many there are."""
    described = physics.describe()
    rounding = np.sqrt(2) * physics.error / physics.space.lengths.min()
    for bound in described.bounds:
        if bound.side is Side.LOWER:
            assert bound.value <= described.slope * (1 + 1e-9) + 1e-12, bound.name
        else:
            # the slope itself is rounded outward, which shows when almost nothing is left of it
            assert bound.value >= described.slope * (1 - 1e-9) - 2 * rounding, bound.name
    return len(described.bounds)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 100_000))
def test_bounds_bracket_the_slope_of_random_matrices(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.2, 5.0, n - 1)
    space = Space.path(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), lengths)
    values = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, (1, n))
    assert bracket(Matrix(values, space)) >= 1


@settings(max_examples=15, deadline=None)
@given(st.integers(5, 15), st.floats(0.01, 5.0), st.integers(0, 100_000))
def test_bounds_bracket_the_slope_of_random_graphs(n: int, tau: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.5, seed=seed)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = float(rng.uniform(0.1, 4.0))
        graph.edges[u, v]["length"] = float(rng.uniform(0.3, 3.0))
    some = [int(k) for k in rng.choice(n, size=3, replace=False)]
    assert bracket(Graph(graph, tau=tau, gain=2.0)) >= 3
    assert bracket(Graph(graph, tau=tau, sensors=some)) >= 3


def test_bounds_are_not_vacuous() -> None:
    bounds = {bound.name: bound.value for bound in Graph(nx.complete_graph(8), tau=0.1).describe().bounds}
    slope = np.sqrt(2) * np.exp(-0.8)
    assert bounds["smallest singular value"] == pytest.approx(slope, rel=1e-6)
    assert slope <= bounds["spectrum of the graph"] < 10 * slope
    assert slope <= bounds["edge weights"] <= np.sqrt(2)


def test_weights_make_a_range_of_their_own() -> None:
    line = HeatLine(n=20, m=6, T=0.02)
    weights = np.linspace(1.0, 2.0, 6)
    scaled = line.range(weights)
    assert np.allclose(scaled.basis @ scaled.reduced, weights[:, None] * line.matrix, atol=1e-9)
    assert line.range(weights.copy()) is scaled
    assert line.range(2 * weights) is not scaled
