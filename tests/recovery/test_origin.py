"""Whisper networks: the beginner of a rumour against brute force, and the community on a block model."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

import cloakwork as cw
from cloakwork._checks import IntArray
from cloakwork.errors import InputError
from cloakwork.physics import graph as graph_module
from cloakwork.recovery import origin_columns

BoolArray = NDArray[np.bool_]
HALVES = np.repeat([0, 1], 250)


def block_model() -> "nx.Graph[int]":
    return nx.stochastic_block_model([250, 250], [[0.05, 0.001], [0.001, 0.05]], seed=1005)


def cascade(neighbours: list[IntArray], rng: np.random.Generator) -> tuple[int, BoolArray]:
    """Who began, and who knows: each who knows tells each neighbour with probability 0.15 a round, until 20 know."""
    start = int(rng.integers(len(neighbours)))
    knows = np.zeros(len(neighbours), bool)
    knows[start] = True
    while knows.sum() < 20:
        told = knows.copy()
        for node in np.flatnonzero(knows):
            told[neighbours[node][rng.random(len(neighbours[node])) < 0.15]] = True
        knows = told
    return start, knows


def test_probabilities_are_those_of_the_stated_law() -> None:
    graph, flip = cw.Graph(nx.path_graph(4), tau=0.5), cw.Flip(epsilon=1.0, readings_per_window=1)
    answers = [1, 0, -1, 1]
    found = cw.find_origin(graph, answers, flip, knowing=2.0, communities=["a", "a", "b", "b"], times=(1.0,))
    matrix = graph.matrix
    c = optimize.brentq(lambda c: (1 - np.exp(-c * matrix)).sum() / 4 - 2.0, 0.0, 20.0)
    chances = []
    for start in range(4):
        chance = 1.0
        for node, answer in enumerate(answers):
            yes = flip.other + (flip.truth - flip.other) * (1 - math.exp(-c * matrix[node, start]))
            chance *= 1.0 if answer < 0 else yes if answer else 1 - yes
        chances.append(chance)
    np.testing.assert_allclose(found.probability, np.array(chances) / sum(chances), rtol=1e-3)
    assert found.communities["a"] == pytest.approx(found.probability[:2].sum())
    assert found.community == ("a" if found.communities["a"] > 0.5 else "b")
    assert found.chance == found.probability[found.beginner]


GRID = nx.to_scipy_sparse_array(nx.grid_2d_graph(20, 20))
HUBS = nx.to_scipy_sparse_array(nx.barabasi_albert_graph(300, 3, seed=1))


def _rumour(graph: cw.Graph, flip: cw.Flip, rng: np.random.Generator) -> IntArray:
    """Answers about a rumour that began in the middle; some do not answer."""
    column = graph.matrix[:, graph.places // 2] / graph.gain
    answers = flip.simulate((rng.random(graph.places) < 1 - np.exp(-60 * column)).astype(int), rng=rng)
    answers[::17] = -1
    return answers


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(
    ("adjacency", "tau", "kind"),
    [(GRID, 1.0, "combinatorial"), (HUBS, 0.3, "combinatorial"), (HUBS, 1.3, "normalised")],
)
def test_without_a_matrix_probabilities_are_the_same_within_the_stated_error(
    adjacency: Any, tau: float, kind: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = cw.Graph(adjacency, tau, sensors=list(range(adjacency.shape[0]))[::-1], gain=3.0, laplacian=kind)
    flip = cw.Flip(epsilon=epsilon, readings_per_window=1)
    answers = _rumour(graph, flip, np.random.default_rng(int(10 * epsilon)))
    paired = cw.find_origin(graph, answers, flip, knowing=20.0, times=(1.0,))
    assert paired.error == 0
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    wide = cw.find_origin(graph, answers, flip, knowing=20.0)
    assert 0 < wide.error < 0.3
    assert np.abs(wide.probability - paired.probability).sum() / 2 < min(wide.error, 0.003)
    odds = np.where(answers == 1, math.expm1(epsilon), math.expm1(-epsilon)) * (answers >= 0)
    exact = np.log(paired.probability)
    for most in (10_000, 0):  # all columns computed whole, and the likeliest ones
        monkeypatch.setattr(origin_columns, "MAX_WHOLE", most)
        monkeypatch.setattr(origin_columns, "SCREENED", 60)
        monkeypatch.setattr(origin_columns, "WHOLE_SAMPLE", 400)
        logs, errors = origin_columns.screened(graph, odds, 20.0)
        whole = np.isfinite(errors)
        assert whole.sum() == (graph.places if most else 60)
        assert np.ptp((logs - exact)[whole]) < 1e-3
        assert whole[paired.beginner] or epsilon < 1


def test_errors_of_columns_are_never_larger_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, flip = cw.Graph(HUBS, 0.5), cw.Flip(epsilon=2.0, readings_per_window=1)
    answers = _rumour(graph, flip, np.random.default_rng(3))
    odds = np.where(answers == 1, math.expm1(2.0), math.expm1(-2.0)) * (answers >= 0)
    matrix = np.maximum(graph.matrix, 0.0)
    c = origin_columns.knowing_factor(matrix, 300, 20.0)
    exact = np.log1p(-odds[:, None] * np.expm1(-c * matrix)).sum(axis=0)
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    monkeypatch.setattr(origin_columns, "_near_factor", lambda *_: c)
    for rounds in (1, 2, 3):
        monkeypatch.setattr(origin_columns, "ROUNDS", rounds)
        found = origin_columns.near_likelihoods(graph, odds, odds, 20.0)
        assert found is not None
        assert (np.abs(found.logs - exact) <= found.errors).all()
        near = graph.near_columns(np.arange(300), 1e-3)
        dense = np.zeros((300, 300))
        dense[near.nodes, np.repeat(np.arange(300), np.diff(near.starts))] = near.values
        assert (dense <= matrix + 1e-12).all()
        np.testing.assert_allclose((matrix - dense).sum(axis=0), near.lost, atol=1e-10)


def test_an_unknown_time_weighs_all_times_alike() -> None:
    graph, flip = cw.Graph(nx.path_graph(9), tau=0.5), cw.Flip(epsilon=2.0, readings_per_window=1)
    answers, knowing = np.arange(9) // 3 % 2, 3.0
    each = [cw.find_origin(graph, answers, flip, knowing=knowing, times=(t,)).probability for t in (1.0, 2.0, 4.0)]
    mixed = cw.find_origin(graph, answers, flip, knowing=knowing, times=(1.0, 2.0, 4.0)).probability
    assert (mixed <= np.max(each, axis=0) + 1e-9).all()
    assert (mixed >= np.min(each, axis=0) - 1e-9).all()
    later = cw.find_origin(cw.Graph(nx.path_graph(9), tau=1.0), answers, flip, knowing=knowing, times=(1.0,))
    np.testing.assert_allclose(each[1], later.probability, rtol=1e-9)
    alone = cw.Matrix(graph.matrix, graph.space)
    np.testing.assert_allclose(cw.find_origin(alone, answers, flip, knowing=knowing).probability, each[0], rtol=1e-6)
    for times in ((), (0.0,), (float("nan"),)):
        with pytest.raises(InputError):
            cw.find_origin(graph, answers, flip, times=times)


def test_a_community_is_found_among_many() -> None:
    chances = np.where(np.eye(22) > 0, 0.1, 0.0001).tolist()
    blocks = nx.stochastic_block_model([100] * 22, chances, seed=3, sparse=True)
    graph, flip = cw.Graph(nx.compose(blocks, nx.path_graph(2200)), 0.3), cw.Flip(epsilon=2.0, readings_per_window=1)
    assert not graph.explicit
    rng = np.random.default_rng(5)
    start, knows = cascade([np.array(list(blocks[node]), dtype=np.int64) for node in range(2200)], rng)
    answers, parts = flip.simulate(knows.astype(int), rng=rng), np.repeat(range(22), 100).tolist()
    found = cw.find_origin(graph, answers, flip, knowing=float(knows.sum()), communities=parts)
    assert found.community == start // 100


@pytest.mark.parametrize("answers", [[0, 1, 2, 0], [0.5] * 4, [1, 0], "yes"])
def test_answers_that_are_no_bits_are_refused(answers: object) -> None:
    graph, flip = cw.Graph(nx.path_graph(4), tau=0.5), cw.Flip(epsilon=1.0, readings_per_window=1)
    with pytest.raises(InputError):
        cw.find_origin(graph, answers, flip)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        cw.find_origin(cw.HeatLine(n=9, m=3, T=0.01), [1] * 9, flip)
    with pytest.raises(InputError):
        cw.find_origin(graph, [1] * 4, flip, knowing=9.0)
    many = cw.Graph(GRID, 1.0, sensors=[0] * 400)
    with pytest.raises(InputError):
        origin_columns.wide_likelihoods(many, np.ones(400), 5.0)
