"""The parts of the auditor: fair bets, events and their words, features, the learned score, the band of the curve."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace as exact

from benchmarks.mechanisms import laplace
from cloakwork.auditing import audit
from cloakwork.auditing.betting import _LARGEST_STAKE, _PARTS, Book, _best_stakes, _payments
from cloakwork.auditing.events import AuditedClaim, Cells, Event
from cloakwork.auditing.features import entry
from cloakwork.auditing.portfolio import Bet
from cloakwork.auditing.reports import Reader, ReportPair, Reports

CLAIM = AuditedClaim(1.0, 0.0)


def pair(x: Any, y: Any) -> ReportPair:
    return Reader(lambda database, _: (x, y)[database]).pair(len(x))


def reports(values: Any) -> Reports:
    return pair(values, values).x


def shown(event: Event, values: Any) -> str:
    reader = Reader(lambda _database, _size: values)
    return event.describe(reader.shown, reader.pair(len(values)))


def above(cut: float) -> Event:
    return Event(Cells(entry(0, 1), np.array([cut])), np.array([False, True, False]), 0, 0.6, 0.1, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 5.0, 700.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.3])
def test_a_bet_pays_nothing_on_average_at_the_boundary_and_less_within_the_claim(epsilon: float, delta: float) -> None:
    pays = _payments(np.array([epsilon]), np.array([delta]))[:, 0]
    for q in (0.0, 0.001, 0.3):
        for slack in (0.0, 0.01):
            p = math.exp(epsilon) * q + delta - slack
            if 0 <= p <= 1:
                expected = -slack / (math.exp(epsilon) + delta)
                for both in (p * q, min(p, q), max(p + q - 1, 0.0)):  # whether or not x and y of a pair are independent
                    chances = np.array([both, p - both, q - both, 1 - p - q + both])
                    assert float(chances @ pays) == pytest.approx(expected, abs=1e-12)
    assert (1 + _LARGEST_STAKE * pays > 0).all()


def test_the_wealth_of_a_bet_is_what_the_pairs_pay() -> None:
    book = Book([Bet("half-lines", 1.0, (above(0.5), None))], CLAIM, 0.95)
    book.settle(pair([1.0] * 9 + [0.0, 0.0, 1.0], [0.0] * 9 + [0.0, 1.0, 1.0]))
    best = _best_stakes(np.array([[0.6]]), np.array([[0.1]]), _payments(np.array([1.0]), np.array([0.0])))[0, 0]
    won = [(1 + stake / math.e) ** 9 * (1 - stake) * (1 + stake * (1 / math.e - 1)) for stake in best * _PARTS]
    # the other direction has no event, and keeps its half of the stake
    most = math.exp(vars(book)["_most"][vars(book)["_at_claim"]])
    assert most == pytest.approx(0.5 + 0.5 * np.mean(won))


def test_a_bound_on_delta_is_one_test_and_not_the_better_of_two() -> None:
    book = Book([Bet("half-lines", 1.0, (above(0.5), None))], AuditedClaim(1.0, 0.1), 0.95)
    most, deltas = vars(book)["_most"], vars(book)["_deltas"]
    most[:] = math.log(100)
    assert (book.violation, book.delta_lower > 0.9) == (True, True)
    most[len(most) - len(deltas) + np.searchsorted(deltas, 0.05)] = 0.0  # this delta stands, below the claimed one
    assert (book.violation, 0.0 < book.delta_lower < 0.05) == (True, True)


@pytest.mark.parametrize(
    ("inside", "held", "words"),
    [
        ("1000", "-inf 0", "at most 0"),
        ("0110", "1 2 inf", "above 0"),
        ("0010", "2 inf", "above 1"),
        ("1010", "-inf 0 2 inf", "at most 0 or above 1"),
        ("0001", "nan", "not a number"),
        ("0101", "1 nan", "above 0 and at most 1 or not a number"),
        ("1110", "-inf 0 1 2 inf", "a number"),
    ],
)
def test_an_event_holds_what_it_says(inside: str, held: str, words: str) -> None:
    values = [-np.inf, 0.0, 1.0, 2.0, np.inf, np.nan]
    mask = np.array([part == "1" for part in inside])
    event = Event(Cells(entry(0, 1), np.array([0.0, 1.0])), mask, 0, 0.5, 0.1, 1.0)
    assert str(np.array(values)[event.holds(reports(values))]) == str(np.array(held.split(), dtype=float))
    assert shown(event, values) == f"the output is {words}"


def test_the_band_holds_the_true_curve_at_all_epsilons() -> None:
    curve = audit(laplace(1.0), epsilon=1.0, reports=30_000, rng=np.random.default_rng(1)).profile
    cuts = np.linspace(-3, 4, 200)[:, None]
    true = np.maximum((exact.cdf(cuts) - np.exp(curve.epsilons) * exact.cdf(cuts, 1.0)).max(axis=0), 0.0)
    assert (curve.lower <= true + 1e-9).all()
    assert (true <= curve.upper + 0.01).all()  # events of the band are coarser than all half-lines
    assert abs(curve.estimate[0] - true[0]) < 0.02
    assert curve.upper[0] - curve.lower[0] < 0.15
    assert (np.diff(curve.lower) <= 0).all()
    assert (np.diff(curve.upper) <= 0).all()
