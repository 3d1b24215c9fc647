"""Strategies: outputs and variances by dense matrices, sensitivity by brute force, and the least error."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft

from cloakwork.errors import InputError
from cloakwork.series import Coefficients, Contribution, Filter, RunningSum, Trend, WindowSum, factor
from cloakwork.series.strategies import MechanismName, causal_strategy, error, norm_above
from tests.series.series_kit import TEN, dense, released_matrix


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("mechanism", ["fourier", "least"])
@pytest.mark.parametrize("name", TEN)
def test_outputs_and_variances_are_those_of_dense_matrices(name: str, mechanism: MechanismName, n: int) -> None:
    strategy = factor([TEN[name]], n, mechanism=mechanism)
    answers = strategy.outputs(np.eye(strategy.length))[0].T
    np.testing.assert_allclose(answers @ released_matrix(strategy, n), dense(TEN[name], n), atol=1e-8)
    np.testing.assert_allclose(strategy.variances[0], (answers**2).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("filters", [["running sum", "average", "any"], ["running sum", "trend", "looking ahead"]])
def test_several_filters_share_one_release(filters: list[str]) -> None:
    n, several = 20, [TEN[name] for name in filters]
    strategy = factor(several, n)
    assert strategy.circular == ("trend" in filters)
    answers = strategy.outputs(np.eye(strategy.length))
    for made, answer, variances in zip(several, answers, strategy.variances, strict=True):
        np.testing.assert_allclose(answer.T @ released_matrix(strategy, n), dense(made, n), atol=1e-8)
        np.testing.assert_allclose(variances, (answer.T**2).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("separation", [1, 4, 7])
@pytest.mark.parametrize("name", TEN)
def test_the_sensitivity_covers_every_pattern_of_visits(name: str, separation: int, circular: bool) -> None:
    """All visits of one person, more or less, at least `separation` bins from each other, by brute force.

    On a circle the first and the last bin are neighbours, and visits in both may count.
    """
    n, most = 16, Contribution(3, per_bin=1, separation=separation)
    some = itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in (1, 2, 3))
    patterns = [visits for visits in some if all(b - a >= separation for a, b in itertools.pairwise(visits))]
    for chosen_for in (most, Contribution(3)):  # a strategy may be asked about other people than it was chosen for
        strategy = factor([TEN[name]], n, contribution=chosen_for, circular=circular)
        matrix = released_matrix(strategy, n).astype(float)
        worst = 0.0
        for visits in patterns:
            for signs in itertools.product([1, -1], repeat=len(visits) - 1):
                worst = max(worst, float(np.linalg.norm(matrix[:, visits] @ np.array([1, *signs]))))
        norm = float(np.linalg.norm(matrix, axis=0).max())
        assert worst <= strategy.sensitivity(most) <= 3 * norm * (1 + 1e-6)
        assert strategy.sensitivity(Contribution(3)) == pytest.approx(3 * norm)


@pytest.mark.parametrize(("separation", "theirs"), [(1, 34.64), (12, 18.63), (24, 15.15)])
def test_hiding_three_visits_costs_little_more_than_the_best_matrices_of_jax_privacy(
    separation: int, theirs: float
) -> None:
    """72 hourly running sums; the best of its Toeplitz and its banded matrices, by version 2.0.0."""
    visits = Contribution(3, per_bin=1, separation=separation)
    assert error(factor([RunningSum()], 72, contribution=visits), visits) <= 1.05 * theirs


def test_a_person_who_comes_back_for_ever_is_counted_in_full() -> None:
    """Entries of the release beyond the bins that a strategy was made for must count as well."""
    most = Contribution(1000, per_bin=1, separation=24)
    strategy = causal_strategy([WindowSum(24)], 4096, band=1024)
    weights = strategy.weights.astype(float)
    released = np.zeros(24 * 1000 + len(weights))
    for visit in range(1000):
        released[24 * visit : 24 * visit + len(weights)] += weights
    assert np.linalg.norm(released) <= strategy.sensitivity(most)


@pytest.mark.parametrize("n", [5, 8, 64])
def test_no_other_weights_on_a_circle_cost_less(n: int, rng: np.random.Generator) -> None:
    """The least error is ||h^||_1^2 / N for unitary coefficients h^ (Cauchy and Schwarz), and 0.1 % is for rounding."""
    h = rng.normal(size=n)
    least = float(np.abs(np.fft.fft(h)).mean()) ** 2
    strategy = factor([Coefficients(h)], n, circular=True)
    norm = float(strategy.weights @ strategy.weights)
    assert least * (1 - 1e-9) <= float(strategy.variances.mean()) * norm <= least * 1.001
    for _ in range(5):
        other = rng.normal(size=n)
        assert (np.abs(fft.fft(h) / fft.fft(other)) ** 2).mean() * float(other @ other) >= least


@pytest.mark.parametrize(
    ("filters", "options", "says"),
    [
        ([RunningSum()], {"mechanism": "paper"}, "mechanism="),
        ([Trend(5)], {"mechanism": "square-root"}, "look back only"),
        ([RunningSum()], {"mechanism": "square-root", "circular": True}, "look back only"),
        ([WindowSum(9)], {"circular": True}, "around a circle of 8"),
        ([Coefficients([1.0], first=9)], {}, "no tap"),
    ],
)
def test_what_no_strategy_serves_is_refused(filters: list[Filter], options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        factor(filters, 8, **options)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=6))
def test_a_norm_is_never_too_small_however_large_the_weights(weights: list[int]) -> None:
    exact = sum(weight**2 for weight in weights)
    found = norm_above(np.array(weights, dtype=np.int64))
    numerator, denominator = found.as_integer_ratio()
    assert numerator**2 >= exact * denominator**2
    assert found <= math.sqrt(exact) * (1 + 1e-9) + 1e-6
