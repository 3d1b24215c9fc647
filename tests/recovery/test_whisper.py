"""Whisper networks: the beginner of a rumour against brute force, and the community on a block model."""

import math

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

import cloakwork as cw
from cloakwork._checks import IntArray
from cloakwork.errors import InputError

BoolArray = NDArray[np.bool_]
HALVES = np.repeat([0, 1], 250)


def block_model() -> "nx.Graph[int]":
    return nx.stochastic_block_model([250, 250], [[0.05, 0.001], [0.001, 0.05]], seed=1005)


def cascade(neighbours: list[IntArray], rng: np.random.Generator) -> tuple[int, BoolArray]:
    """Who began, and who knows: each who knows tells each neighbour with probability 0.15 a round, until 20 know."""
    start = int(rng.integers(500))
    knows = np.zeros(500, bool)
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
    found = cw.whisper(graph, answers, flip, knowing=2.0, communities=["a", "a", "b", "b"])
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


def test_the_right_community_of_a_block_model_is_found_as_often_as_stated() -> None:
    blocks, rng = block_model(), np.random.default_rng(7)
    graph = cw.Graph(blocks, tau=0.3)
    neighbours = [np.array(list(blocks[node])) for node in range(500)]
    rumours = [cascade(neighbours, rng) for _ in range(40)]
    for epsilon, least in ((0.5, 0.75), (1.0, 0.88), (2.0, 0.98)):
        flip = cw.Flip(epsilon=epsilon, readings_per_window=1)
        right = 0
        for start, knows in rumours:
            answers = flip.simulate(knows.astype(int), rng=rng)
            right += cw.whisper(graph, answers, flip, communities=HALVES.tolist()).community == HALVES[start]
        error = math.sqrt(least * (1 - least) / len(rumours))
        assert right / len(rumours) > least - 2 * error


@pytest.mark.parametrize("answers", [[0, 1, 2, 0], [0.5] * 4, [1, 0], "yes"])
def test_answers_that_are_no_bits_are_refused(answers: object) -> None:
    graph, flip = cw.Graph(nx.path_graph(4), tau=0.5), cw.Flip(epsilon=1.0, readings_per_window=1)
    with pytest.raises(InputError):
        cw.whisper(graph, answers, flip)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        cw.whisper(cw.HeatLine(n=9, m=3, T=0.01), [1] * 9, flip)
    with pytest.raises(InputError):
        cw.whisper(graph, [1] * 4, flip, knowing=9.0)
