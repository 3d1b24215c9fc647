"""A private choice: its exact law, its claim, and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.privacy.private_choice import Chooser, accepted, chosen

SCORES = (12, 9, 9, 3, 1, 0)
# computed independently, at epsilon 0.5
STATED = {
    Chooser.EXPONENTIAL: (0.4621, 0.2183, 0.2183, 0.0487, 0.0295, 0.0230),
    Chooser.PERMUTE_AND_FLIP: (0.5513, 0.1862, 0.1862, 0.0369, 0.0221, 0.0172),
}


def law(scores: tuple[float, ...], epsilon: float, mechanism: Chooser) -> np.ndarray:
    """The probability of each candidate; for permute-and-flip by a sum over all orders."""
    accept = np.exp(-epsilon / 2 * (max(scores) - np.array(scores)))
    if mechanism is Chooser.EXPONENTIAL:
        return np.asarray(accept / accept.sum())
    total = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for k in order:
            total[k] += left * accept[k]
            left *= 1 - accept[k]
    return np.asarray(total / math.factorial(len(scores)))


@pytest.mark.parametrize("mechanism", Chooser)
def test_choices_have_the_stated_law(mechanism: Chooser) -> None:
    assert law(SCORES, 0.5, mechanism) == pytest.approx(STATED[mechanism], abs=6e-5)
    rng = np.random.default_rng(4)
    scores, draws = [Fraction(score) for score in SCORES], 20_000
    picks = [chosen(scores, Fraction(1, 4), mechanism, lambda n: int(rng.integers(n))) for _ in range(draws)]
    expected = draws * np.array(STATED[mechanism])
    assert ((np.bincount(picks) - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees, 0.1 %


@pytest.mark.parametrize("mechanism", Chooser)
def test_no_change_of_scores_by_one_person_exceeds_epsilon(mechanism: Chooser) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        scores = rng.integers(0, 6, size=4)
        neighbour = scores + rng.uniform(-1, 1, size=4)
        ratio = law(tuple(scores), 1.0, mechanism) / law(tuple(neighbour), 1.0, mechanism)
        assert np.abs(np.log(ratio)).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_acceptance_is_exact(x: Fraction) -> None:
    rng = np.random.default_rng(7)
    draws = 20_000
    share = np.mean([accepted(x, lambda n: int(rng.integers(n))) for _ in range(draws)])
    true = math.exp(-x)
    assert share == pytest.approx(true, abs=4 * math.sqrt(true * (1 - true) / draws) + 1e-12)


@pytest.mark.parametrize(
    ("scores", "settings"),
    [
        ([], {}),
        ([1.0, float("nan")], {}),
        ([1.0, float("inf")], {}),
        (["1"], {}),
        ([1], {"epsilon": 0.0}),
        ([1], {"sensitivity": -1.0}),
        ([1], {"mechanism": "best"}),
    ],
)
def test_bad_input_is_refused(scores: list[float], settings: dict[str, float]) -> None:
    with pytest.raises(cw.InputError):
        cw.choose(scores, **{"epsilon": 1.0, **settings})  # type: ignore[arg-type]


def test_ties_are_broken_evenly() -> None:
    picks = np.bincount([cw.choose([5, 5], epsilon=1.0) for _ in range(2000)])
    assert abs(picks[0] - 1000) < 5 * math.sqrt(500)
