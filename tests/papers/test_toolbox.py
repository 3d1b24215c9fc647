"""The toolbox: choices by brute force, composition by an independent library, and its verdicts."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from papers import Agreement
from papers.experiments.toolbox import (
    CHOICE,
    SCORES,
    Toolbox,
    _noise,
    advanced,
    exponential,
    permute_and_flip,
    window,
)
from tests.papers.kit import probed


def test_permute_and_flip_has_the_probabilities_of_all_orders() -> None:
    scores = np.array([4.0, 3.0, 3.0, 0.5, -2.0])
    accept = np.exp(CHOICE * (scores - 4.0) / 2)
    found = np.zeros(5)
    for order in permutations(range(5)):
        waiting = 1.0
        for candidate in order:
            found[candidate] += waiting * accept[candidate] / math.factorial(5)
            waiting *= 1 - accept[candidate]
    np.testing.assert_allclose(permute_and_flip(scores), found, atol=1e-12)
    np.testing.assert_allclose(permute_and_flip(np.stack([scores, scores[::-1]]))[1], found[::-1], atol=1e-12)
    assert exponential(scores).sum() == pytest.approx(1.0)


def test_exact_composition_of_bits_is_that_of_an_independent_library() -> None:
    found = window(60, 2.0, 1e-5)
    loss = privacy_loss_distribution.from_randomized_response(
        2 / (1 + math.exp(found.exact)), 2, value_discretization_interval=1e-5
    ).self_compose(60)
    assert loss.get_delta_for_epsilon(2.0) == pytest.approx(1e-5, rel=0.01)
    assert advanced(found.theorem, 60, 1e-5) == pytest.approx(2.0)
    assert [round(each, 4) for each in (found.added, found.theorem, found.exact)] == [0.0333, 0.0497, 0.0665]


def test_laplace_noise_for_two_readings_is_that_of_an_independent_library() -> None:
    found = _noise(8.0, 1e-5, 2)
    loss = privacy_loss_distribution.from_laplace_mechanism(
        found.laplace / math.sqrt(2), value_discretization_interval=1e-3
    ).self_compose(2)
    assert loss.get_delta_for_epsilon(8.0) <= 1.02e-5
    assert found.ratio == pytest.approx(5.76, abs=0.01)


def test_verdicts_follow_the_numbers() -> None:
    finding = probed("toolbox").finding
    assert isinstance(finding, Toolbox)
    verdicts = {claim.source: claim.verdict for claim in finding.claims()}
    assert verdicts["McMillan, Lemma 2.7"] is verdicts["McMillan, Theorem 8.4"] is Agreement.AGREES
    assert verdicts["McMillan, Theorem 2.6"] is verdicts["Gilbert and McMillan, Lemma 10"] is Agreement.LOOSER
    assert finding.beyond == pytest.approx(float(exponential(np.array(SCORES, float))[-1]))
    leaking = replace(finding, choices=tuple(replace(one, loss=0.6) for one in finding.choices))
    assert {one.source: one.verdict for one in leaking.claims()}["McMillan, Lemma 2.9"] is Agreement.WRONG
