"""The printed table of graphs, and the lemmas on conditioning."""

import networkx as nx
import pytest
from scipy.linalg import expm

from papers.conditioning import claim, counterexamples
from papers.experiments.graph_table import Kind
from papers.result import Agreement


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(("n", "tau"), [(3, 0.3), (5, 1.0), (10, 0.2)])
def test_closed_forms_are_those_of_the_matrix_exponential(kind: Kind, n: int, tau: float) -> None:
    graph = kind.graph(n)
    matrix = expm(-tau * nx.laplacian_matrix(graph).toarray().astype(float))
    exact = max(float(((matrix[:, i] - matrix[:, j]) ** 2).sum()) for i, j in graph.edges)
    assert kind.corrected(n, tau) == pytest.approx(exact, rel=1e-9)


class TestConditioning:
    def test_counterexamples_have_their_known_numbers(self) -> None:
        rank, converse, uneven, literal, corrected = counterexamples()
        assert [rank.promised, rank.true] == pytest.approx([1.0, 0.0], abs=1e-12)
        assert [converse.promised, converse.true] == pytest.approx([0.0, 2.0], abs=1e-9)
        held = [claim(one, "", "").verdict for one in (rank, converse, uneven, literal, corrected)]
        right, wrong = Agreement.AGREES, Agreement.WRONG
        assert held == [wrong, wrong, right, wrong, right]
