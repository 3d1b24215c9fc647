"""The Bayes risk: below the exact value and near it, for every kind of space."""

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from cloakwork.accuracy import BayesRisk, bayes_risk
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Rooms, Space, Steady

Floats = NDArray[np.float64]


def by_quadrature(columns: Floats, distances: Floats) -> BayesRisk:
    """The exact figures for one sensor with unit noise: integrals over its reading."""
    readings = np.linspace(columns.min() - 9, columns.max() + 9, 200_001)
    densities = stats.norm.pdf(readings, columns[:, None]) / len(columns)

    def integral(values: Floats) -> float:
        return float(integrate.trapezoid(values, readings))

    return BayesRisk(
        integral((distances @ densities).min(axis=0)),
        integral(densities.max(axis=0)),
    )


@pytest.mark.parametrize("spread", [0.2, 2.0, 6.0])
def test_it_is_close_to_the_integral_and_on_the_safe_side(spread: float) -> None:
    columns = spread * np.array([0.0, 0.3, 1.0, 0.6, 1.7, 1.2])
    graph = nx.cycle_graph(6)
    graph.add_edge(0, 3)
    model = Matrix(columns[None, :], Space.path(np.array(graph.edges)))
    exact, bound = by_quadrature(columns, model.space.distance_table.astype(float)), bayes_risk(model, 1.0)
    assert 0.9 * exact.mean_distance < bound.mean_distance <= exact.mean_distance
    assert exact.right_place <= bound.right_place < 1 - 0.9 * (1 - exact.right_place)


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
def test_two_places_are_told_apart_as_well_as_the_best_test_does(separation: float) -> None:
    bound = bayes_risk(Matrix(np.array([[0.0, separation]]), Space.line(2, length=10.0)), 1.0)
    error = stats.norm.cdf(-separation / 2)
    assert 0.8 * 5.0 * error < bound.mean_distance <= 5.0 * error
    assert 1 - error <= bound.right_place < 1 - 0.8 * error


def test_hopeless_noise_leaves_the_best_guess_without_readings() -> None:
    rooms = Rooms.from_walls((6, 4), cell=0.5, walls=[((3, 0), (3, 4))], doors=[((3, 1), (3, 2))])
    models: tuple[Physics, ...] = (
        HeatLine(n=60, m=9, T=0.02),
        HeatPlane(n=(12, 9), m=(3, 2), T=0.05),
        FloorPlan(rooms, [(0.5, 0.6), (5.1, 3.0)], Steady(reach=1.0)),
        Graph(nx.barbell_graph(8, 4), tau=0.5),
    )
    for model in models:
        bound, table = bayes_risk(model, 1e6), model.space.distance_table
        assert 0.9 * table.mean(axis=1).min() < bound.mean_distance <= table.mean(axis=1).min() * (1 + 1e-6)
        assert 1 / model.places <= bound.right_place < 2 / model.places


def test_readings_count_like_less_noise() -> None:
    line = HeatLine(n=50, m=10, T=0.02)
    assert bayes_risk(line, 0.4, readings=16) == bayes_risk(line, 0.1)
    found = [bayes_risk(line, 0.4, readings=k) for k in (1, 10, 100, 10_000)]
    assert [one.right_place for one in found] == sorted(one.right_place for one in found)
    assert [one.mean_distance for one in found] == sorted((one.mean_distance for one in found), reverse=True)
    assert found[-1].right_place > 0.99


def test_large_graphs_count_the_shortest_step() -> None:
    graph = Graph(nx.random_regular_graph(3, 1_200, seed=1), tau=0.3, sensors=list(range(0, 1_200, 40)))
    bound = bayes_risk(graph, 0.5)
    assert bound.mean_distance == pytest.approx(1 - bound.right_place, rel=1e-4)
    assert bound.mean_distance > 0.9
