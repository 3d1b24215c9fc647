"""Communities and rumours."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy import special

from papers import Agreement, Result
from papers.calibration import Calibration
from papers.experiments.communities import Communities
from papers.networks import (
    EPSILON,
    RIVALS,
    TAU,
    Best,
    BestRules,
    Cell,
    Coarse,
    Network,
    Picture,
    Reading,
    Scene,
    Spread,
    Tried,
    Way,
    attempt,
    best_rules,
    block_model,
    cloak_of,
    coarse_of,
    named_networks,
)
from papers.statistics import Mean, share_error
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("communities")


def finding_of(result: Result) -> Communities:
    assert isinstance(result.finding, Communities)
    return result.finding


def two_cliques() -> Network:
    """Two groups of five who all know each other, and one tie between the groups."""
    graph: nx.Graph[int] = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(5))
    graph.add_edge(4, 5)
    return Network("two cliques", graph, np.repeat([0, 1], 5))


def made_up(
    shares: dict[tuple[float, float], float], home: float = 0.5, left: float = 0.6, best: float = 1.0
) -> Communities:
    """Rates of R by (tau, epsilon); the posterior is always right, and in the club too."""
    template = Tried(two_cliques(), np.arange(400) % 10, np.eye(10)[np.arange(400) % 10], *right_maps()).score(TAU)
    cells = [
        Cell("block model", way, tau, epsilon, replace(template, right=share if way is Way.PAPERS else 1.0))
        for (tau, epsilon), share in shares.items()
        for way in Way
    ]
    cells += [Cell("club", way, 0.5, epsilon, template) for epsilon in {key[1] for key in shares} for way in RIVALS]
    rules = BestRules(Mean(best, 0.01), Mean(best, 0.01))
    bests = {Best(one.network, one.way.calibration, one.tau, one.epsilon, rules) for one in cells}
    pictures = tuple(Picture(way, 400, left, (left, 1 - left)) for way in RIVALS)
    readings = (Reading(0.05, 0.001, 0.7, Mean(0.9, 0.01)), Reading(0.001, 0.05, home, Mean(0.5, 0.01)))
    coarse = Coarse(8.0, 0.04, 0.006, 1.1, Mean(0.9, 0.01), Mean(0.6, 0.01))
    spreads = tuple(Spread(way, 2, 0.6, 0.05, 0.7, 0.05) for way in RIVALS)
    return Communities(pictures, (0, 1), tuple(cells), tuple(bests), (), (("club", 0.5),), readings, coarse, spreads)


def right_maps() -> tuple[np.ndarray, np.ndarray]:
    maps = np.eye(10)[np.arange(400) % 10]
    return maps, maps @ np.eye(2)[two_cliques().communities]


class TestNetworks:
    def test_a_block_model_has_its_densities(self) -> None:
        network = block_model(200, 0.1, 0.01, 3)
        adjacency = nx.to_numpy_array(network.graph, nodelist=range(200))
        same = network.communities[:, None] == network.communities
        assert adjacency[same].mean() == pytest.approx(0.1, abs=0.015)
        assert adjacency[~same].mean() == pytest.approx(0.01, abs=0.005)
        assert nx.is_connected(network.graph)

    def test_a_block_model_that_never_hangs_together_is_refused(self) -> None:
        with pytest.raises(ValueError, match="connected"):
            block_model(40, 0.2, 0.0, 1)

    def test_named_networks_are_the_known_ones(self) -> None:
        sizes = {network.name: len(network.communities) for network in named_networks()}
        assert sizes == {"karate club": 34, "Florentine families": 15, "Southern women": 32, "Les Miserables": 77}
        club = named_networks()[0]
        assert np.bincount(club.communities).tolist() == [17, 17]
        assert club.communities[0] != club.communities[33]

    def test_named_communities_are_denser_inside(self) -> None:
        for network in named_networks():
            adjacency = nx.to_numpy_array(network.graph, nodelist=range(len(network.communities)))
            same = network.communities[:, None] == network.communities
            assert adjacency[same].mean() > 2 * adjacency[~same].mean()
            assert 1 / 5 < network.guess < 0.6

    def test_heat_stays_at_home_only_while_it_is_young(self) -> None:
        network = two_cliques()
        assert network.heat_at_home(0.0) == pytest.approx(1.0)
        assert network.heat_at_home(100.0) == pytest.approx(0.5, abs=1e-3)
        assert network.heat_at_home(0.5) > 0.85

    def test_only_the_papers_have_the_papers_noise(self) -> None:
        noise = {way: cloak_of(two_cliques(), 0.5, 4.0, way.calibration).sigma for way in Way}
        assert noise[Way.PAPERS] == noise[Way.POSTERIOR] > 2 * noise[Way.OURS]
        assert noise[Way.OURS] == noise[Way.LESS_NOISE]
        assert Way.OURS.calibration is Calibration.EXACT

    def test_both_ways_find_the_community_through_little_noise(self) -> None:
        network = two_cliques()
        cloak = cloak_of(network, 0.05, 30.0, Calibration.EXACT)
        for way in (Way.LESS_NOISE, Way.OURS):
            tried = attempt(network, cloak, way, np.arange(10).repeat(5), np.random.default_rng(1))
            assert tried.score(0.05).right > 0.9

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
            assert abs(rule.value - share) < 4 * np.hypot(rule.error, share_error(share, 20_000))

    def test_nothing_does_better(self) -> None:
        network = two_cliques()
        for epsilon in (2.0, 8.0):
            scene = Scene(network, 1, 0.3, epsilon)
            for way in Way:
                found = scene.cell(way, scene.tried(way, 200, 1)).score
                rules = scene.best(way, 1).rules
                best = rules.right
                assert found.right < best.value + 4 * np.hypot(found.right_error, best.error)
                if way.is_posterior:
                    assert found.right > best.value - 4 * np.hypot(found.right_error, best.error)
                    person_error = np.hypot(share_error(found.person, 200), rules.person.error)
                    assert abs(found.person - rules.person.value) < 4 * person_error

    def test_coarse_steps_cost_noise_only_where_little_noise_is_needed(self) -> None:
        early, late = (coarse_of(two_cliques(), tau, (1, 2)) for tau in (TAU, 8.0))
        assert early.noise == pytest.approx(1.0)
        assert early.coarse == early.fine
        assert late.sensitivity < late.before
        assert late.noise > 1
        assert late.coarse.value <= late.fine.value

    def test_all_ways_have_the_same_sources_from_the_first_on(self) -> None:
        scene = Scene(two_cliques(), 1, 0.5, 4.0)
        many, few = scene.tried(Way.PAPERS, 25, 1), scene.tried(Way.OURS, 12, 1)
        assert many.sources[:12].tolist() == few.sources.tolist()
        assert np.bincount(many.sources[:20]).tolist() == [2] * 10
        assert scene.ratio(many, few).steps.value > 0


class TestScore:
    def test_right_wrong_and_undecided(self) -> None:
        network = two_cliques()
        maps = np.zeros((4, 10))
        maps[0, 2], maps[1, 7], maps[2, [1, 8]] = 1.0, 1.0, 0.5
        member = np.eye(2)[network.communities]
        found = Tried(network, np.zeros(4, dtype=np.int64), maps, maps, maps @ member).score(TAU)
        assert found.right == pytest.approx((1 + 0 + 0.5 + 0.5) / 4)
        assert found.person == pytest.approx(0.1 / 4)
        assert found.empty == 1
        to_all = (4 * 1 + 2 + 4 * 3) / 10
        assert found.hops == pytest.approx((1 + 3 + (1 + 3) / 2 + to_all) / 4)

    def test_a_share_of_one_has_an_error_too(self) -> None:
        assert share_error(1.0, 100) > 0
        assert share_error(0.5, 100) == pytest.approx(0.05)


def test_ours_is_better_than_the_papers(result: Result) -> None:
    finding = finding_of(result)
    for name, _ in finding.guesses:
        ours, papers = (finding.of(way, 0.5, EPSILON, name) for way in (Way.OURS, Way.PAPERS))
        assert ours.hops < papers.hops


def test_the_caption_shows_no_community() -> None:
    apart, swapped = block_model(500, 0.05, 0.001, 1), block_model(500, 0.001, 0.05, 1)
    assert apart.heat_at_home(TAU) > 0.7
    assert swapped.heat_at_home(TAU) == pytest.approx(0.5, abs=1e-4)


def test_verdicts_follow_the_numbers() -> None:
    good = {(0.5, 1.0): 0.5, (2.0, 1.0): 0.5, (8.0, 1.0): 0.5, (0.5, 16.0): 0.5, (2.0, 16.0): 0.95, (8.0, 16.0): 0.5}
    setting = {(2.0, 4.0): 0.6, (0.5, 4.0): 0.5, (8.0, 4.0): 0.5}
    found = [claim.verdict for claim in made_up(good | setting).claims()]
    assert found == [Agreement.WRONG, Agreement.AGREES, Agreement.AGREES]
    late = made_up(good | setting | {(8.0, 16.0): 0.95}, home=0.8, left=0.4).claims()
    assert [claim.verdict for claim in late] == [Agreement.AGREES, Agreement.WRONG, Agreement.LOOSER]
    never = made_up(dict.fromkeys(good | setting, 0.5), left=0.51).claims()
    assert [claim.verdict for claim in never][1:] == [Agreement.UNDECIDED, Agreement.WRONG]
    always = made_up(dict.fromkeys(good | setting, 0.95)).claims()
    assert always[2].verdict is Agreement.WRONG
