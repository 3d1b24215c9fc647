"""The printed table of graphs, and the lemmas on conditioning."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import expm

from papers import Result
from papers.calibration import Calibration
from papers.conditioning import counterexamples, random_matrices
from papers.experiments.graph_table import GraphTable, Kind
from tests.papers.kit import quick


@pytest.fixture(scope="module")
def result() -> Result:
    return quick("graph-table")


def table_of(result: Result) -> GraphTable:
    assert isinstance(result.finding, GraphTable)
    return result.finding


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(("n", "tau"), [(3, 0.3), (5, 1.0), (10, 0.2)])
def test_closed_forms_are_those_of_the_matrix_exponential(kind: Kind, n: int, tau: float) -> None:
    graph = kind.graph(n)
    matrix = expm(-tau * nx.laplacian_matrix(graph).toarray().astype(float))
    exact = max(float(((matrix[:, i] - matrix[:, j]) ** 2).sum()) for i, j in graph.edges)
    assert kind.corrected(n, tau) == pytest.approx(exact, rel=1e-9)


def test_the_printed_star_is_right_with_three_nodes_only(result: Result) -> None:
    for one in table_of(result).stars:
        assert (one.short > 1 + 1e-6) == (one.n > 3)


def test_the_printed_star_breaks_a_promise_that_exact_noise_makes(result: Result) -> None:
    star = table_of(result).of(Kind.STAR, 5, 1.0)
    assert star.true(Calibration.EXACT).epsilon(1e-6) > 1.05
    assert star.true(Calibration.EXACT).delta(1.0) > 4e-6
    assert star.true(Calibration.PAPER).epsilon(1e-6) < 1
    right = replace(star, printed=star.exact)
    assert right.true(Calibration.EXACT).epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)


def test_the_printed_complete_graph_only_wastes(result: Result) -> None:
    for one in table_of(result).by_time(Kind.COMPLETE):
        assert 1 / one.short == pytest.approx(math.exp(one.tau * one.n / 2), rel=1e-6)
        assert one.true(Calibration.EXACT).delta(1.0) < 1e-6


class TestConditioning:
    def test_counterexamples_have_their_known_numbers(self) -> None:
        rank, converse, uneven, literal, corrected = counterexamples()
        assert [rank.promised, rank.true] == pytest.approx([1.0, 0.0], abs=1e-12)
        assert [converse.promised, converse.true] == pytest.approx([0.0, 2.0], abs=1e-9)
        assert not rank.held
        assert not converse.held
        assert uneven.held
        assert not literal.held
        assert corrected.held

    def test_only_mixed_signs_violate_the_converse(self, rng: np.random.Generator) -> None:
        floor, positive, mixed = random_matrices(60, rng)
        assert (floor.violated, positive.violated) == (0, 0)
        assert 25 < mixed.violated < 60
