"""Communities and rumours."""

import networkx as nx
import numpy as np
import pytest
from scipy import special

from papers.calibration import Calibration
from papers.networks import (
    TAU,
    Network,
    Tried,
    Way,
    attempt,
    best_rules,
    cloak_of,
)
from papers.rows import Mean


def two_cliques() -> Network:
    """Two groups of five who all know each other, and one tie between the groups."""
    graph: nx.Graph[int] = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(5))
    graph.add_edge(4, 5)
    return Network("two cliques", graph, np.repeat([0, 1], 5))


class TestNetworks:
    def test_the_posterior_is_the_best_rule(self) -> None:
        """Against the likelihood of every node by hand; it is made of 400 draws, so shares are off by 0.025 or so."""
        network, sources = two_cliques(), np.arange(10).repeat(20)
        cloak = cloak_of(network, 0.3, 3.0, Calibration.EXACT)
        tried = attempt(network, cloak, Way.OURS, sources, np.random.default_rng(2))
        noisy = cloak.simulate(cloak.physics.matrix.T[sources], rng=np.random.default_rng(2))
        columns = cloak.physics.matrix.T
        logs = -((noisy[:, None] - columns) ** 2).sum(axis=2) / (2 * cloak.sigma**2)
        by_hand = special.softmax(logs, axis=1)
        np.testing.assert_allclose(tried.likely, by_hand, atol=0.12)
        assert np.abs(tried.likely - by_hand).mean() < 0.015


class TestBestRule:
    def test_it_is_the_share_of_a_rule_that_tries_every_node(self) -> None:
        network, rng = two_cliques(), np.random.default_rng(3)
        cloak = cloak_of(network, 0.3, 3.0, Calibration.EXACT)
        columns, sources = cloak.physics.matrix.T, rng.integers(0, 10, 20_000)
        noisy = columns[sources] + cloak.sigma * rng.standard_normal((20_000, 10))
        logs = -((noisy[:, None] - columns) ** 2).sum(axis=2) / (2 * cloak.sigma**2)
        left = special.softmax(logs, axis=1)[:, :5].sum(axis=1)
        found = best_rules(network, cloak, np.random.default_rng(4))
        by_hand = float(((left < 0.5) == network.communities[sources]).mean())
        person = float((logs.argmax(axis=1) == sources).mean())
        for rule, share in ((found.right, by_hand), (found.person, person)):
            assert abs(rule.value - share) < 4 * np.hypot(rule.error, Mean.share(share, 20_000).error)


class TestScore:
    def test_right_wrong_and_undecided(self) -> None:
        network = two_cliques()
        maps = np.zeros((4, 10))
        maps[0, 2], maps[1, 7], maps[2, [1, 8]] = 1.0, 1.0, 0.5
        member = np.eye(2)[network.communities]
        found = Tried(network, np.zeros(4, dtype=np.int64), maps, maps, maps @ member).score(TAU)
        assert found.right.value == pytest.approx((1 + 0 + 0.5 + 0.5) / 4)
        assert found.person == pytest.approx(0.1 / 4)
        assert found.empty == 1
        to_all = (4 * 1 + 2 + 4 * 3) / 10
        assert found.hops.value == pytest.approx((1 + 3 + (1 + 3) / 2 + to_all) / 4)
