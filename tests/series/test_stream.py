"""Streams: what is published moment by moment, what it costs, what it hides, and that no release is made twice."""

import copy
import pickle
from threading import Thread
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import BudgetError, ReadingError
from cloakwork.privacy import private_words, simulated_words
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Stream,
    WindowSum,
)
from tests.forking import error_in_fork, needs_fork
from tests.series.series_kit import CLAIM, dense

CASES: list[tuple[Filter, int | None]] = [
    (RunningSum(), 200),
    (WindowSum(24), 200),
    (WindowSum(24), None),
    (Decay(0.9), 200),
    (Decay(0.9), None),
    (PowerDecay(0.5), 200),
    (MovingAverage(7), 200),
    (MovingAverage(7), None),
    (Seasonal(12, 3), None),
    (Coefficients([1.0, -0.5, 0.25]), None),
    (Coefficients([0.05, 0.25, 0.4, 0.25, 0.05]), None),
    (Coefficients([1.0, 3.0]), 200),
    (Coefficients([-1.0, 0.0, 2.0], first=3), None),
]
NAMES = [f"{made.name}-{horizon}" for made, horizon in CASES]


def stream(what: Filter, horizon: int | None, **options: Any) -> Stream:
    return Stream(what, horizon, **{**CLAIM, **options})


@pytest.mark.parametrize(("what", "horizon"), CASES, ids=NAMES)
def test_without_its_noise_the_output_is_the_filter(what: Filter, horizon: int | None) -> None:
    made = stream(what, horizon)
    x = np.random.default_rng(1).integers(-1000, 1000, size=(2, 150))
    x[1] = 0
    runs = [made.simulate(row, rng=np.random.default_rng(3)).values for row in x]
    np.testing.assert_allclose(runs[0] - runs[1], dense(what, 150) @ x[0], atol=2e-8)


@pytest.mark.parametrize(("what", "horizon"), CASES, ids=NAMES)
def test_pushing_value_by_value_is_simulating_at_once(
    what: Filter, horizon: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloakwork.series.stream.private_words", simulated_words(np.random.default_rng(5)))
    made = stream(what, horizon)
    x = np.random.default_rng(1).integers(0, 100, size=200)
    simulated = made.simulate(x, rng=np.random.default_rng(5))
    moments = [made.push(int(value)) for value in x[:100]]
    rest = made.extend(x[100:])
    np.testing.assert_allclose([moment.value for moment in moments], simulated.values[:100], atol=1e-7)
    np.testing.assert_allclose(rest.values, simulated.values[100:], atol=1e-7)
    np.testing.assert_array_equal(rest.standard_deviation, simulated.standard_deviation[100:])
    assert [moment.time for moment in moments] == list(range(100))
    assert made.time == 200


def released(made: Stream, n: int) -> FloatArray:
    """The matrix of what a stream releases of its first `n` values."""
    strategy = made.cloak.strategy
    weights = linalg.toeplitz(np.pad(strategy.weights.astype(float), (0, n))[:n], np.zeros(n))
    return np.asarray(weights if strategy.gains is None else weights * strategy.gains[:n])


@pytest.mark.parametrize(("what", "horizon"), CASES, ids=NAMES)
def test_the_stated_variances_are_those_of_the_dense_matrices(what: Filter, horizon: int | None) -> None:
    made, n = stream(what, horizon), 150
    rows = np.linalg.solve(released(made, n).T, dense(what, n).T).T
    np.testing.assert_allclose((rows**2).sum(axis=1) * made.noise.variance, made.variances[:n], rtol=1e-7)


@pytest.mark.parametrize(("what", "horizon"), CASES, ids=NAMES)
def test_the_shift_of_all_releases_together_meets_the_guarantee(what: Filter, horizon: int | None) -> None:
    """A change of three units at any time, by brute force; other neighbours are mixtures of these."""
    made = stream(what, horizon, contribution=3)
    weights = np.trim_zeros(made.cloak.strategy.weights.astype(float), "b")
    n = horizon or 2 * len(weights)
    shift, sigma = 3 * np.linalg.norm(released(made, n), axis=0).max(), made.noise.table.ratio
    deltas = [
        pld.from_gaussian_mechanism(
            factor * sigma, sensitivity=shift, value_discretization_interval=1e-4
        ).get_delta_for_epsilon(1.0)
        for factor in (1.0, 0.8)
    ]
    assert 0.97e-6 < deltas[0] < 1.01e-6, "neither too little noise nor needlessly much"
    assert deltas[1] > 5e-6
    assert made.noise.delta(1.0) <= 1e-6 * (1 + 1e-9)


def test_noise_is_fresh_for_each_push_and_each_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []

    def noted(count: int) -> NDArray[np.uint64]:
        words = private_words(count)
        drawn.append(words.tobytes())
        return words

    monkeypatch.setattr("cloakwork.series.stream.private_words", noted)
    values = [[stream(WindowSum(3), 50).push(5).value for _ in range(20)] for _ in range(2)]
    assert len(drawn) == len(set(drawn)) == 40
    assert len(set(values[0] + values[1])) > 35


def test_nothing_is_released_beyond_the_horizon() -> None:
    made = stream(RunningSum(), 5)
    made.extend([1, 2, 3])
    with pytest.raises(BudgetError, match="2 of 5 left"):
        made.extend([1, 1, 1])
    made.extend([1, 1])
    with pytest.raises(BudgetError, match="0 of 5 left"):
        made.push(0)
    with pytest.raises(ReadingError, match="up to 5"):
        made.simulate(np.zeros(6), rng=np.random.default_rng(1))


def test_threads_share_one_budget_and_one_history() -> None:
    made, times = stream(RunningSum(), 400), list[int]()

    def work() -> None:
        times.extend(made.push(1).time for _ in range(100))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(times) == list(range(400))


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied_or_changed(copied: Any) -> None:
    made = stream(RunningSum(), 5)
    with pytest.raises(BudgetError, match="copied"):
        copied(made)
    with pytest.raises(AttributeError, match="stream"):
        made.epsilon = 2.0


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_go_on_with_a_stream() -> None:
    made = stream(RunningSum(), 5)
    assert error_in_fork(lambda: made.push(1)) == "BudgetError"
    assert made.push(1).time == 0


def test_a_stream_that_was_interrupted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the same values were pushed again, one event would count twice."""
    made = stream(RunningSum(), 100)
    made.push(3)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(made.noise), "draw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.extend([1, 2, 3])
    for again in (lambda: made.push(1), lambda: made.extend([1, 2, 3])):
        with pytest.raises(BudgetError, match="interrupted"):
            again()


@pytest.mark.parametrize(
    ("value", "says"), [(10**400, "value"), (2**60, "too large"), ([3], "one value"), (2.5, "not")]
)
def test_a_value_that_cannot_be_taken_is_refused_and_spends_nothing(value: Any, says: str) -> None:
    made = stream(RunningSum(), 100)
    with pytest.raises(ReadingError, match=says):
        made.push(value)
    with pytest.raises(ReadingError):
        made.extend([[1, 2]])
    assert made.time == 0
    wholes: list[Any] = [3, 3.0, np.int16(3), np.array(3), True]
    assert [made.push(whole).time for whole in wholes] == list(range(5))
