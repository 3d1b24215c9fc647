"""Streams hide what they claim to, and no release is ever made twice."""

import copy
import pickle
from threading import Thread

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy import linalg

from cloakwork.auditing import Verdict, audit
from cloakwork.errors import BudgetError, ReadingError
from cloakwork.privacy import private_words
from cloakwork.series import Filter, RunningSum, Stream, WindowSum
from tests.forking import error_in_fork, needs_fork
from tests.series.stream_kit import CASES, NAMES, ratio, stream


@pytest.mark.parametrize(("what", "horizon", "band"), CASES, ids=NAMES)
def test_the_shift_of_all_releases_together_meets_the_claim(
    what: Filter, horizon: int | None, band: int | None
) -> None:
    """A change of one unit at any time, by brute force; neighbours are mixtures of these."""
    contribution = 3
    one = Stream(what, horizon, epsilon=1.0, delta=1e-6, contribution=contribution, band=band)
    n = one.horizon or 2 * one.band
    columns = linalg.toeplitz(np.pad(one.weights, (0, n))[:n], np.zeros(n))
    shift = contribution * np.linalg.norm(columns, axis=0).max()
    theirs = pld.from_gaussian_mechanism(ratio(one), sensitivity=shift, value_discretization_interval=1e-4)
    found = theirs.get_delta_for_epsilon(1.0)
    assert 0.97e-6 < found < 1.01e-6, "neither too little noise nor needlessly much"
    assert one.noise.delta(1.0) <= 1e-6
    less = pld.from_gaussian_mechanism(0.8 * ratio(one), sensitivity=shift, value_discretization_interval=1e-4)
    assert less.get_delta_for_epsilon(1.0) > 5e-6


def test_an_audit_of_the_outputs_finds_nothing_and_half_the_claim_false() -> None:
    one = stream(RunningSum(), 3, epsilon=1.0, delta=1e-2)

    def outputs(database: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        x = np.zeros((size, 3))
        x[:, 1] = database
        return one.simulate(x, rng=rng).values

    def judged(epsilon: float) -> Verdict:
        rng = np.random.default_rng(4)
        return audit(outputs, epsilon=epsilon, delta=1e-2, reports=6_000, rng=rng).verdict

    assert judged(1.0) is not Verdict.VIOLATION
    assert judged(0.5) is Verdict.VIOLATION


def test_noise_is_fresh_for_each_push(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []

    def noted(count: int) -> NDArray[np.uint64]:
        words = private_words(count)
        drawn.append(words.tobytes())
        return words

    monkeypatch.setattr("cloakwork.series.stream.private_words", noted)
    one = stream(WindowSum(3), 50)
    values = [one.push(5).value for _ in range(50)]
    assert len(drawn) == len(set(drawn)) == 50
    assert len(set(values)) == 50


def test_two_streams_of_the_same_values_differ() -> None:
    first, second = (stream(RunningSum(), 30).extend(np.ones(30)).values for _ in range(2))
    assert (first != second).all()


def test_nothing_is_released_beyond_the_horizon() -> None:
    one = stream(RunningSum(), 5)
    one.extend([1, 2, 3])
    with pytest.raises(BudgetError, match="2 of 5 left"):
        one.extend([1, 1, 1])
    assert one.time == 3
    one.extend([1, 1])
    with pytest.raises(BudgetError, match="0 of 5 left"):
        one.push(0)


def test_threads_share_one_budget_and_one_history() -> None:
    one = stream(RunningSum(), 400)
    times: list[int] = []

    def work() -> None:
        times.extend(one.push(1).time for _ in range(100))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(times) == list(range(400))


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied(copied: object) -> None:
    assert callable(copied)
    with pytest.raises(BudgetError, match="copied"):
        copied(stream(RunningSum(), 5))


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_go_on_with_a_stream() -> None:
    one = stream(RunningSum(), 5)
    assert error_in_fork(lambda: one.push(1)) == "BudgetError"
    assert one.push(1).time == 0


def test_a_stream_does_not_change() -> None:
    with pytest.raises(AttributeError, match="stream"):
        stream(RunningSum(), 5).epsilon = 2.0


def test_a_stream_that_was_interrupted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the same values pushed again, one event would count twice."""
    stream = Stream(RunningSum(), 100, epsilon=1.0, delta=1e-6)
    stream.push(3)
    with monkeypatch.context() as patch:
        patch.setattr(type(stream.noise), "draw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.extend([1, 2, 3])
    for again in (lambda: stream.push(1), lambda: stream.extend([1, 2, 3])):
        with pytest.raises(BudgetError, match="interrupted"):
            again()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("value", "says"), [(10**400, "too large"), ([3], "push takes one value")])
def test_what_is_no_value_is_refused_before_it_is_spent(value: float, says: str) -> None:
    stream = Stream(RunningSum(), 100, epsilon=1.0, delta=1e-6)
    with pytest.raises(ReadingError, match=says):
        stream.push(value)
    assert stream.time == 0
