"""Rumours: how they spread, and what answers tell."""

import numpy as np

from cloakwork.privacy import Flip
from cloakwork.recovery import find_origin
from papers.experiments.origins import (
    GUESSES,
    SPREAD,
    cascades,
    weigh,
)
from papers.networks import block_model


def test_one_round_tells_each_neighbour_with_its_probability() -> None:
    network = block_model(60, 0.3, 0.05, 1)
    starts = np.zeros(4000, dtype=np.int64)
    knows = cascades(network, starts, 2, np.random.default_rng(1))
    near = list(network.graph[0])
    assert knows[:, 0].all()
    # rounds go on until someone is told, so the number told is binomial given that it is not 0
    expected = 0.15 / (1 - 0.85 ** len(near))
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert np.abs(knows[:, near].mean(axis=0) - expected).max() < 4.5 * error
    far = [node for node in range(1, 60) if node not in near]
    assert not knows[:, far].any()


def test_many_rumours_are_weighed_as_find_origin_weighs_each() -> None:
    network, flip = block_model(80, 0.25, 0.01, 1), Flip(epsilon=1.0, readings_per_window=1)
    answers = (np.random.default_rng(3).random((5, 80)) < 0.4).astype(np.int64)
    found = weigh(network, flip, answers)
    guesses = np.geomspace(1.0, 0.99 * 80, GUESSES)
    for row, each in zip(answers, found, strict=True):
        near = [
            find_origin(network.physics(SPREAD), row, flip, knowing=float(guess), times=(1,)).probability
            for guess in guesses
        ]
        assert min(float(np.abs(each - one).max()) for one in near) < 1e-6
        assert np.abs(each - find_origin(network.physics(SPREAD), row, flip, times=(1,)).probability).max() < 0.02
