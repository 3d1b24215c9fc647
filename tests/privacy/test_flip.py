"""Randomised response: its claim over a window, its law to the bit, and what can be learned from reports."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import cloakwork as cw
from cloakwork.privacy.losses import report_losses


def joint_delta(flip: cw.Flip, readings: int, epsilon: float) -> float:
    """The delta of a window at `epsilon` by brute force: all reports, all pairs of histories."""
    histories = list(itertools.product(range(flip.values), repeat=readings))
    law = flip.likelihood
    laws = np.array([[math.prod(law[x, y] for x, y in zip(h, r, strict=True)) for r in histories] for h in histories])
    excess = laws[:, None] - math.exp(epsilon) * laws[None]
    return float(np.maximum(excess, 0).sum(axis=2).max())


@pytest.mark.parametrize(("values", "readings"), [(2, 5), (3, 3), (4, 2)])
def test_no_pair_of_histories_exceeds_the_claim_and_one_reaches_it(values: int, readings: int) -> None:
    flip = cw.Flip(epsilon=1.0, delta=0.01, readings_per_window=readings, values=values)
    worst = joint_delta(flip, readings, 1.0)
    assert 0.01 * (1 - 1e-6) <= worst <= 0.01


def exact_delta(flip: cw.Flip, epsilon: float) -> mp.mpf:
    """The delta of a window at `epsilon` from the words that decide reports, to 60 digits."""
    n, total = flip.readings_per_window * flip.sensors, mp.mpf(0)
    other = mp.mpf(flip.words) / 2**127
    truth = 1 - (flip.values - 1) * other
    for right, wrong in itertools.product(range(n + 1), repeat=2):
        rest = n - right - wrong
        if rest >= 0 and right > wrong:
            ways = math.factorial(n) // (math.factorial(right) * math.factorial(wrong) * math.factorial(rest))
            chance = ways * truth**right * other**wrong * ((flip.values - 2) * other) ** rest
            total += chance * max(0, 1 - mp.exp(epsilon) * (other / truth) ** (right - wrong))
    return total


@pytest.mark.parametrize("epsilon", [0.3, 8.0, 49.3, 55.7, 60.0, 77.0, 299.0])
def test_the_words_meet_a_claim_that_is_finer_than_floating_point(epsilon: float) -> None:
    with mp.workdps(60):
        for readings, values, delta in itertools.product((1, 3, 7, 11), (2, 3), (0.0, 1e-18, 1e-15, 1e-12, 1e-6)):
            flip = cw.Flip(epsilon=epsilon, delta=delta, readings_per_window=readings, values=values)
            assert exact_delta(flip, epsilon) <= delta, (readings, values, delta)
            assert exact_delta(flip, flip.compose(readings, delta)) <= delta, "nor is the epsilon of a window too small"


def test_a_delta_of_zero_gives_each_reading_an_equal_part_of_epsilon() -> None:
    flip = cw.Flip(epsilon=1.2, readings_per_window=4)
    assert flip.epsilon_per_reading == pytest.approx(0.3)
    assert joint_delta(flip, 4, 1.2) <= 1e-15


@pytest.mark.parametrize(("readings", "epsilon", "each"), [(60, 2.0, 0.0665), (20, 8.0, 0.4147)])
def test_a_window_is_composed_exactly(readings: int, epsilon: float, each: float) -> None:
    flip = cw.Flip(epsilon=epsilon, delta=1e-5, readings_per_window=readings)
    assert flip.epsilon_per_reading == pytest.approx(each, abs=5e-5)
    one = pld.from_randomized_response(2 * flip.other, 2, value_discretization_interval=1e-5)
    together = one.self_compose(readings).get_delta_for_epsilon(epsilon)
    assert together == pytest.approx(1e-5, rel=0.02)


def test_two_values_reveal_at_least_as_much_as_more_where_sums_are_too_long() -> None:
    exact = report_losses(0.05, 2048, 5).delta(1.0)
    assert exact <= report_losses(0.05, 2048).delta(1.0)
    assert report_losses(0.05, 2049, 5).delta(1.0) == report_losses(0.05, 2049).delta(1.0)


def test_one_person_who_changes_several_sensors_is_covered() -> None:
    two = cw.Flip(epsilon=1.0, delta=0.01, readings_per_window=3, sensors=2)
    assert joint_delta(two, 6, 1.0) <= 0.01


def test_words_decide_reports_exactly_as_often_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    flip = cw.Flip(epsilon=1.0, readings_per_window=10, values=3)
    cut = math.ceil(2**127 / (math.exp(flip.epsilon_per_reading) + 2) * (1 + 2.0**-50))
    words = [0, cut - 1, cut, 2 * cut - 1, 2 * cut, 2**127 - 1, 2**127 + cut]  # the highest bit does not count
    pairs = np.array([divmod(word, 2**64) for word in words], dtype=np.uint64)
    monkeypatch.setattr("cloakwork.privacy.flip.private_words", lambda _: pairs)
    assert flip.release(np.zeros(7, dtype=int)).tolist() == [2, 2, 1, 1, 0, 0, 1]
    assert flip.other == cut / 2**127


def test_shares_are_unbiased_and_their_limits_hold() -> None:
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], [800, 200])
    flip = cw.Flip(epsilon=1.0, readings_per_window=1)
    found = [flip.shares(flip.simulate(truth, rng=rng)) for _ in range(2000)]
    shares = np.array([each.values[1] for each in found])
    assert shares.mean() == pytest.approx(0.2, abs=4 * 0.03287 / math.sqrt(2000))
    assert shares.std() == pytest.approx(0.03287, rel=0.15)  # computed independently
    assert found[0].errors[1] == pytest.approx(0.03287, rel=0.05)
    held = np.mean([low <= 0.2 <= high for low, high in (each.limits[1] for each in found)])
    assert held >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 2000)


def test_a_window_is_never_overspent() -> None:
    flip = cw.Flip(epsilon=1.0, readings_per_window=3)
    flip.release([[0, 1], [1, 1]])
    with pytest.raises(cw.BudgetError) as refused:
        flip.release([0, 1])
    assert (refused.value.left, flip.spent) == (1, 2)


@pytest.mark.parametrize("readings", [[0, 2], [0.5], [float("nan")], ["yes"], [[[1]]], [-1]])
def test_what_is_not_a_bit_is_refused_without_showing_it(readings: object) -> None:
    flip = cw.Flip(epsilon=1.0, readings_per_window=3)
    with pytest.raises(cw.ReadingError):
        flip.release(readings)  # type: ignore[arg-type]
    assert flip.spent == 0


@pytest.mark.parametrize(
    "claim",
    [
        {"epsilon": 0.0},
        {"epsilon": 800.0},
        {"epsilon": 1e-300, "delta": 0.0},
        {"epsilon": 1e-27, "delta": 0.0, "readings_per_window": 10**4},
        {"readings_per_window": 10**9},
        {"delta": -0.1},
        {"delta": 1.0},
        {"values": 1},
        {"values": 65},
        {"readings_per_window": 0},
    ],
)
def test_impossible_claims_are_refused(claim: dict[str, float]) -> None:
    with pytest.raises(cw.CalibrationError):
        cw.Flip(**{"epsilon": 1.0, "delta": 1e-5, "readings_per_window": 10, **claim})  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", [{"epsilon": 1e-16}, {"epsilon": 1e-6, "readings_per_window": 10**6, "values": 64}])
def test_the_truth_is_never_less_likely_than_another_value(claim: dict[str, float]) -> None:
    flip = cw.Flip(**{"readings_per_window": 1, **claim})  # type: ignore[arg-type]
    assert flip.truth >= flip.other
