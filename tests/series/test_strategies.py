"""What is released and what is made of it, against dense matrices; exact norms, and what whole coefficients cost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft
from scipy.linalg import toeplitz

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    Fourier,
    Least,
    Mechanism,
    RunningSum,
    SquareRoot,
    Trend,
    WindowSum,
)
from cloakwork.series.strategies import (
    CausalStrategy,
    CircularStrategy,
    Task,
    finest,
    ideal_cost,
    multiplicity,
    norm_above,
    rounding_cost,
)
from papers.paper_laplace import PaperLaplace
from tests.series.series_kit import TEN, answer_matrix, circulant, released_matrix, task_of

LENGTHS = [1, 2, 3, 5, 8, 13, 30]
MECHANISMS: dict[str, Mechanism] = {"Fourier": Fourier(), "Least": Least(), "PaperLaplace": PaperLaplace()}
BACK_ONLY: dict[str, Filter] = {name: TEN[name] for name in ("running sum", "window", "average", "decay", "power")}


def whole_line(filters: Filter, n: int) -> FloatArray:
    """The filter as a dense matrix, from its taps."""
    taps = filters.taps(n)
    matrix = np.zeros((n, n))
    for t in range(n):
        for k, value in enumerate(taps.values):
            if 0 <= t - taps.first - k < n:
                matrix[t, t - taps.first - k] += value
    return matrix * taps.scale(n)[:, None]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", TEN)
def test_outputs_and_variances_are_those_of_dense_matrices(name: str, mechanism: str, n: int) -> None:
    strategy = MECHANISMS[mechanism].strategy(task_of(TEN[name], n))
    answers = answer_matrix(strategy)[0]
    made = answers @ released_matrix(strategy, n)
    assert made == pytest.approx(whole_line(TEN[name], n), abs=1e-8)
    assert strategy.variances.shape == (1, n)
    assert strategy.variances[0] == pytest.approx((answers**2).sum(axis=1), rel=1e-9)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", BACK_ONLY)
def test_the_square_root_is_that_of_the_dense_matrix(name: str, n: int) -> None:
    task = task_of(BACK_ONLY[name], n)
    strategy = SquareRoot().strategy(task)
    released, answers = released_matrix(strategy, n), answer_matrix(strategy)[0]
    assert np.array_equal(released, np.tril(released))
    assert np.allclose(answers, np.tril(answers), atol=1e-15)
    wanted = whole_line(BACK_ONLY[name], n)
    assert answers @ released == pytest.approx(wanted, abs=1e-9)
    square, unscaled = released @ released, wanted / task.scales[0][:, None]
    assert square / square[0, 0] == pytest.approx(unscaled / unscaled[0, 0], abs=1e-2)
    assert strategy.variances[0] == pytest.approx((answers**2).sum(axis=1), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 17, 30, 31])
def test_circles_of_every_length_even_odd_and_prime_are_right(n: int, rng: np.random.Generator) -> None:
    h = rng.normal(size=n)
    for mechanism in (Fourier(), PaperLaplace()):
        strategy = mechanism.strategy(task_of(Coefficients(h), n, circular=True))
        answers = answer_matrix(strategy)[0]
        assert answers @ released_matrix(strategy, n) == pytest.approx(circulant(h, n), abs=1e-7)
        assert strategy.variances[0] == pytest.approx((answers**2).sum(axis=1), rel=1e-9)


@pytest.mark.parametrize("mechanism", [Fourier(), PaperLaplace()])
def test_several_filters_share_one_release(mechanism: Mechanism) -> None:
    n, filters = 20, [TEN["running sum"], TEN["average"], TEN["looking ahead"]]
    strategy = mechanism.strategy(task_of(filters, n))
    released, answers = released_matrix(strategy, n), answer_matrix(strategy)
    for k, one in enumerate(filters):
        assert answers[k] @ released == pytest.approx(whole_line(one, n), abs=1e-8)
        assert strategy.variances[k] == pytest.approx((answers[k] ** 2).sum(axis=1), rel=1e-9)
    apart = sum(mechanism.strategy(task_of(one, n)).ideal for one in filters) / len(filters)
    assert strategy.ideal < 3 * apart  # each with a third of mu^2 would cost three times as much


@pytest.mark.parametrize("n", [12, 15, 37, 64])
def test_coefficients_that_are_zero_cost_nothing(n: int) -> None:
    """A filter of two frequencies alone costs what these cost, and nothing of x at others is released."""
    times = np.arange(n)
    h = 2 * np.cos(2 * np.pi * 2 * times / n) + 0.5 * np.sin(2 * np.pi * 5 * times / n)
    task = task_of(Coefficients(h), n, circular=True)
    spectrum = np.abs(np.fft.fft(h))
    assert np.flatnonzero(task.magnitude).tolist() == [2, 5]
    assert ideal_cost(task) == pytest.approx((spectrum[spectrum > 1e-9].sum() / n) ** 2, rel=1e-12)
    strategy = PaperLaplace().strategy(task)
    assert strategy.length == 4
    unused = np.cos(2 * np.pi * 3 * times / n)
    assert np.abs(strategy.weights @ unused).max() < n  # of 2^30: roundings
    constant = Fourier().strategy(task_of(Coefficients(np.ones(n)), n, circular=True))
    assert constant.variances[0] * norm_above(constant.weights) ** 2 == pytest.approx(1.0, rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(weights=st.lists(st.integers(-(1 << 30), 1 << 30), min_size=1, max_size=50).filter(any))
def test_the_norm_is_rounded_up_and_by_less_than_a_billionth(weights: list[int]) -> None:
    square = sum(weight**2 for weight in weights)
    found = Fraction(norm_above(np.array(weights)))
    assert found**2 > square
    assert found**2 < square * (1 + Fraction(2, 10**9))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11])
def test_the_best_cost_on_a_circle_is_the_l1_norm_squared(n: int, rng: np.random.Generator) -> None:
    h = rng.normal(size=n)
    unitary = np.abs(np.fft.fft(h)) / np.sqrt(n)
    assert ideal_cost(task_of(Coefficients(h), n, circular=True)) == pytest.approx(unitary.sum() ** 2 / n, rel=1e-12)


@pytest.mark.parametrize("n", [4, 9])
def test_no_other_weights_on_a_circle_cost_less(n: int, rng: np.random.Generator) -> None:
    task = task_of(Coefficients(rng.normal(size=n)), n, circular=True)
    best = ideal_cost(task)
    for _ in range(200):
        other = CircularStrategy(task, rng.integers(-1000, 1000, size=n))
        assert rounding_cost(other) > -1e-9
        assert float(other.variances.mean()) * norm_above(other.weights) ** 2 >= best * (1 - 1e-9)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("n", [1, 3, 50, 1000])
def test_whole_coefficients_cost_less_than_a_tenth_of_a_percent(name: str, n: int) -> None:
    for mechanism in (Fourier(), Least()):
        assert abs(rounding_cost(mechanism.strategy(task_of(TEN[name], n)))) <= 1e-3


def test_the_fewest_bits_are_taken_that_cost_so_little() -> None:
    task = task_of(RunningSum(), 100)
    tried: list[int] = []

    def made(weights: IntArray) -> CircularStrategy:
        tried.append(int(np.abs(weights).max()))
        return CircularStrategy(task, weights)

    root = fft.irfft(np.sqrt(task.magnitude), task.period)
    chosen = finest(root, made)
    assert np.array_equal(chosen.weights, np.rint(root * (2.0**10 / np.linalg.norm(root))))
    assert len(tried) == 1
    coarse = CircularStrategy(task, np.rint(root * (2.0**4 / np.linalg.norm(root))).astype(np.int64))
    assert rounding_cost(coarse) > 1e-3 >= rounding_cost(chosen)


def test_weights_that_lose_a_frequency_have_no_finite_variance() -> None:
    task = task_of(Coefficients([1.0, 0.5]), 4, circular=True)
    assert np.isinf(CircularStrategy(task, np.array([1, 1, 1, 1])).variances).all()


def test_weights_that_start_with_zero_have_no_inverse() -> None:
    assert np.isnan(CausalStrategy(task_of(RunningSum(), 4), np.array([0, 1, 1, 1]), 1.0).variances).all()


@pytest.mark.parametrize("coefficients", [[1.0, 1.05], [1e-9, 1.0], [1.0, 5.0]])
def test_a_filter_whose_square_root_grows_is_released_as_one_of_the_same_size_that_does_not(
    coefficients: list[float],
) -> None:
    task = Task(400, (Coefficients(coefficients).taps(400),))
    causal, circular = SquareRoot().strategy(task), Fourier().strategy(task)
    assert causal.ideal < 1.02 * circular.ideal
    assert 0 <= rounding_cost(causal) + 1e-3 < 3e-3


@pytest.mark.parametrize(
    "task",
    [
        task_of([RunningSum(), WindowSum(3)], 8),
        task_of(RunningSum(), 8, circular=True),
        task_of(Coefficients([1.0, 1.0], first=-1), 8),
    ],
)
def test_the_square_root_serves_one_causal_filter_only(task: Task) -> None:
    with pytest.raises(InputError, match="causal"):
        SquareRoot().strategy(task)


def test_the_better_of_two_is_chosen() -> None:
    for one in (RunningSum(), Decay(0.9), Coefficients([1.0, -0.5])):
        task = task_of(one, 100)
        costs = [mechanism.strategy(task).ideal for mechanism in (Fourier(), SquareRoot())]
        assert Least().strategy(task).ideal == min(costs)
    assert isinstance(Least().strategy(task_of(RunningSum(), 100)), CausalStrategy)
    assert isinstance(Least().strategy(task_of(Trend(5), 8)), CircularStrategy)


def test_circles_are_as_long_as_the_filter_needs() -> None:
    """A circle on which linear outputs are right, and no more than a few per cent longer than that needs."""
    for filters, n, needed in ((RunningSum(), 100, 199), (WindowSum(7), 100, 106), (Coefficients([1.0]), 100, 100)):
        assert needed <= task_of(filters, n).period <= 1.05 * needed
    assert task_of(TEN["looking ahead"], 97).period >= 99
    assert task_of(RunningSum(), 97, circular=True).period == 97


@pytest.mark.parametrize("period", [1, 2, 3, 8, 9])
def test_frequencies_are_counted_as_often_as_they_stand_for(period: int) -> None:
    assert multiplicity(period).sum() == period
    series = np.random.default_rng(period).normal(size=period)
    stored = np.abs(np.fft.rfft(series)) ** 2
    assert (stored * multiplicity(period)).sum() / period == pytest.approx((series**2).sum())


def test_released_numbers_are_a_shifted_filter_for_each_place() -> None:
    """So that no place moves the release further than another."""
    n = 9
    circle = Fourier().strategy(task_of(Coefficients([1.0, 2.0, -0.5]), n, circular=True))
    released = released_matrix(circle, n)
    assert np.array_equal(released, toeplitz(released[:, 0], np.roll(released[:, 0], -1)[::-1]))
    assert len({int((column.astype(object) ** 2).sum()) for column in released.T}) == 1
    back = SquareRoot().strategy(task_of(RunningSum(), n))
    norms = np.linalg.norm(released_matrix(back, n), axis=0)
    assert (np.diff(norms) <= 0).all()
    assert norms[0] <= norm_above(back.weights)


@pytest.mark.parametrize("weights", [[2**48], [2**62 - 1, 2**62 - 1], [-(2**31), 1], [3, 4]])
def test_a_norm_is_never_too_small_however_large_the_weights(weights: list[int]) -> None:
    norm = norm_above(np.array(weights))
    square = sum(weight**2 for weight in weights)
    assert square <= Fraction(norm) ** 2 <= square * (1 + Fraction(1, 2**31))
