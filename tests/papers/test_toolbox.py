"""The toolbox: choices by brute force, composition by an independent library, and its verdicts."""

import math
from itertools import permutations

import numpy as np
import pytest

from papers.experiments.toolbox import (
    CHOICE,
    SCORES,
    Toolbox,
    exponential,
    permute_and_flip,
)
from papers.result import Agreement
from papers.rows import Row
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


def test_verdicts_follow_the_numbers() -> None:
    finding = probed("toolbox").finding
    assert isinstance(finding, Toolbox)
    verdicts = {claim.source: claim.verdict for claim in finding.claims()}
    assert verdicts["McMillan, Lemma 2.7"] is verdicts["McMillan, Theorem 8.4"] is Agreement.AGREES
    assert verdicts["McMillan, Theorem 2.6"] is verdicts["Gilbert and McMillan, Lemma 10"] is Agreement.LOOSER
    assert finding.beyond == pytest.approx(float(exponential(np.array(SCORES, float))[-1]))
    leaking = Toolbox(**vars(finding) | {"choices": [Row(**vars(one) | {"loss": 0.6}) for one in finding.choices]})
    assert {one.source: one.verdict for one in leaking.claims()}["McMillan, Lemma 2.9"] is Agreement.WRONG
