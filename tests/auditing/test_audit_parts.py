"""The parts of the practical auditor: fair bets, the watch over dependence, the band, and the words."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace as law

from benchmarks.mechanisms import laplace
from cloakwork.auditing import Audit, PrivacyCurve, Verdict, Witness, audit
from cloakwork.auditing.betting import LARGEST_STAKE, PARTS, Book, best_stakes, payments
from cloakwork.auditing.event_search import AuditedClaim, CandidateEvent, interval
from cloakwork.auditing.features import SPECIAL, VALUE, combination, entry, figure, low_bits, lowest_bit, spacing_of
from cloakwork.auditing.output_events import OneOf, Ranges
from cloakwork.auditing.portfolio import portfolio
from cloakwork.auditing.report_samples import Feature, Past, ReportKind, Reports, ask, kind_of, read
from cloakwork.errors import InputError

Rng = np.random.Generator


def reports(values: Any) -> Reports:
    answers = ask(lambda _d, _n, _r: values, len(values), np.random.default_rng(0))
    return read(answers[0], kind_of(answers))


def past(x: Any, y: Any) -> Past:
    return Past(reports(x), reports(y), np.random.default_rng(0))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 5.0, 700.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.3])
def test_a_bet_pays_nothing_on_average_at_the_boundary_and_less_within_the_claim(epsilon: float, delta: float) -> None:
    pays = payments(np.array([epsilon]), np.array([delta]))[:, 0]
    for q in (0.0, 0.001, 0.3):
        for slack in (0.0, 0.01):
            p = math.exp(epsilon) * q + delta - slack
            if 0 <= p <= 1:
                expected = -slack / (math.exp(epsilon) + delta)
                for both in (p * q, min(p, q), max(p + q - 1, 0.0)):  # whether or not x and y of a pair hang together
                    chances = np.array([both, p - both, q - both, 1 - p - q + both])
                    assert float(chances @ pays) == pytest.approx(expected, abs=1e-12)
    assert (1 + LARGEST_STAKE * pays > 0).all()


def test_a_stake_is_kellys() -> None:
    pays = payments(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    p, q = np.array([[0.4]]), np.array([[0.05]])
    stake = best_stakes(p, q, pays)
    grid = np.linspace(0, LARGEST_STAKE, 20_001)
    chances = [0.4 * 0.05, 0.4 * 0.95, 0.6 * 0.05, 0.6 * 0.95]
    for place in (0, 1):
        growth = sum(c * np.log1p(grid * pay) for c, pay in zip(chances, pays[:, place], strict=True))
        assert stake[0, place] == pytest.approx(grid[np.argmax(growth)], abs=1e-4)
    assert best_stakes(q, p, pays)[0].tolist() == [0.0, 0.0]


def test_wealth_is_what_the_pairs_pay() -> None:
    slot = replace(portfolio(reports([0.0]).kind, 1, None)[0], share=1.0)
    book = Book([slot], epsilon=1.0, delta=0.0, confidence=0.95)
    event = Ranges(VALUE, [0.5], lowest=False)
    book.choose([(CandidateEvent(event, 0.6, 0.1, 1.0), None)])
    book.settle(reports([1.0, 1.0, 0.0, 0.0, 1.0]), reports([0.0, 0.0, 0.0, 1.0, 1.0]))
    best = best_stakes(np.array([[0.6]]), np.array([[0.1]]), payments(np.array([1.0]), np.array([0.0])))[0, 0]
    won = [(1 + stake / math.e) ** 2 * (1 - stake) * (1 + stake * (1 / math.e - 1)) for stake in best * PARTS]
    # the other direction has no event, and keeps its half
    assert book.wealth == pytest.approx(0.5 + 0.5 * np.mean(won))


@pytest.mark.parametrize(
    ("event", "held", "words"),
    [
        (Ranges(VALUE, [1.0], lowest=False), [False, False, True, False], "the output is above 1"),
        (Ranges(VALUE, [1.0], lowest=True), [True, True, False, False], "the output is at most 1"),
        (Ranges(VALUE, [0.0, 1.0], lowest=False), [False, True, False, False], "the output is 1"),
        (Ranges(VALUE, [0.0, 1.0], lowest=True), [True, False, True, False], "at most 0 or above 1"),
        (OneOf(SPECIAL, np.array([1.0])), [False, False, False, True], "the output is not a number"),
    ],
)
def test_an_event_holds_what_it_says(event: Any, held: list[bool], words: str) -> None:
    found = reports([0.0, 1.0, 2.0, np.nan])
    assert event.holds(found).tolist() == held
    assert words in event.describe(Past(found, found, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("event", "held", "words"),
    [
        (Ranges(VALUE, [1.0], lowest=True), "-inf 0 1", "at most 1"),
        (Ranges(VALUE, [1.0], lowest=False), "2 inf", "above 1"),
        (Ranges(VALUE, [-np.inf, 1.0], lowest=False), "0 1", "above minus infinity and at most 1"),
        (Ranges(VALUE, [-np.inf, 1.0], lowest=True), "-inf 2 inf", "minus infinity or above 1"),
        (Ranges(VALUE, [-np.inf], lowest=True), "-inf", "minus infinity"),
        (Ranges(VALUE, [-np.inf], lowest=False), "0 1 2 inf", "above minus infinity"),
        (Ranges(VALUE, [1.0, np.inf], lowest=False), "2 inf", "above 1"),
        (Ranges(VALUE, [1.0, np.inf], lowest=True), "-inf 0 1", "at most 1"),
        (Ranges(VALUE, [2.0, np.inf], lowest=False), "inf", "infinity"),
        (Ranges(VALUE, [-np.inf, 0.0, 1.0], lowest=True), "-inf 1", "minus infinity or above 0 and at most 1"),
        (Ranges(VALUE, [0.0, 1.0, np.inf], lowest=False), "1", "above 0 and at most 1"),
    ],
)
def test_infinities_are_in_an_event_when_its_words_say_so(event: Any, held: str, words: str) -> None:
    found = reports([-np.inf, 0.0, 1.0, 2.0, np.inf, np.nan])
    assert found.values[event.holds(found), 0].tolist() == [float(part) for part in held.split()]
    assert event.describe(Past(found, found, np.random.default_rng(0))) == f"the output is {words}"


@pytest.mark.parametrize("leak", [-np.inf, np.inf])
def test_an_interval_is_chosen_for_what_it_holds_when_infinities_leak(leak: float) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=2000), rng.normal(size=2000)
    x[:400] = leak
    kept = past(x, y)
    for way, choice in enumerate(interval(VALUE, kept, AuditedClaim(0.5, 0.0))):
        assert choice is not None
        favoured = (kept.x, kept.y)[way]
        assert choice.event.holds(favoured).mean() == pytest.approx(choice.p)


def test_places_of_entries_are_counted_from_1_in_words() -> None:
    rows = Reports(ReportKind.FLOAT, np.eye(3), np.eye(3).view(np.uint64))
    kept = Past(rows, rows, np.random.default_rng(0))
    place = OneOf(figure("the place of the largest entry"), np.array([0.0, 2.0]))
    assert place.holds(rows).tolist() == [True, False, True]
    assert place.describe(kept) == "the place of the largest entry (counted from 1) is 1 or 3"
    lines: dict[str, Feature] = {
        "entry 2 of 3 (counted from 1)": entry(1, 3),
        "entry 1 minus entry 3 of 3 (counted from 1)": combination(0, 2, -1, 3),
        "the lowest bit of entry 1 of 3 (counted from 1)": low_bits(1, 0, 3),
    }
    for name, line in lines.items():
        assert Ranges(line, [0.5], lowest=False).describe(kept) == f"{name} is above 0.5"


def test_the_lowest_bit_and_the_lattice_are_read_from_floats() -> None:
    values = reports([1.0, 0.75, 6.0, 0.1, np.inf, 0.0])
    assert values.feature(lowest_bit())[:4].tolist() == [0.0, -2.0, 1.0, -55.0]
    steps = np.asarray(0.37 + 0.1 * np.random.default_rng(0).integers(-40, 40, size=500), dtype=np.float64)
    assert spacing_of(steps) == pytest.approx(0.1)
    assert spacing_of(np.random.default_rng(0).normal(size=500)) == 0.0


def test_what_is_remembered_is_an_even_sample_of_pairs() -> None:
    kept = past(np.arange(200.0), np.arange(200.0))
    for start in range(200, 400_000, 20_000):
        part = np.arange(start, start + 20_000, dtype=float)
        kept.add(reports(part), reports(part))
    assert len(kept.x) == 1 << 16
    assert (kept.x.values == kept.y.values).all()
    assert kept.x.values.mean() == pytest.approx(200_000, rel=0.02)


def test_other_slots_share_what_was_won() -> None:
    slots = portfolio(reports([0.0]).kind, 1, None)
    book = Book([replace(slots[0], share=1.0)], epsilon=1.0, delta=0.0, confidence=0.95)
    book.choose([(CandidateEvent(Ranges(VALUE, [0.5], lowest=False), 0.6, 0.1, 1.0), None)])
    book.settle(reports([1.0] * 9), reports([0.0] * 9))
    won, bounds = book.wealth, (book.epsilon_lower, book.delta_lower)
    assert won > 2
    book.reopen(slots)
    assert book.wealth == pytest.approx(won)
    assert (book.epsilon_lower, book.delta_lower) == bounds


def test_a_bound_on_delta_is_one_test_and_not_the_better_of_two() -> None:
    book = Book(portfolio(reports([0.0]).kind, 1, None), epsilon=1.0, delta=0.1, confidence=0.95)
    most = vars(book)["_most"]
    most[:] = math.log(100)
    assert book.violation
    assert book.delta_lower > 0.9
    deltas = vars(book)["_deltas"]
    most[len(most) - len(deltas) + np.searchsorted(deltas, 0.05)] = 0.0  # this delta stands, below the claimed one
    assert book.violation
    assert 0.0 < book.delta_lower < 0.05


def test_the_band_holds_the_true_profile_at_all_epsilons() -> None:
    for seed in range(4):
        profile = audit(laplace(1.0), epsilon=1.0, reports=30_000, rng=np.random.default_rng(seed)).profile
        cuts = np.linspace(-3, 4, 200)[:, None]
        true = np.maximum((law.cdf(cuts) - np.exp(profile.epsilons) * law.cdf(cuts, 1.0)).max(axis=0), 0.0)
        assert (profile.lower <= true + 1e-9).all()
        assert (true <= profile.upper + 0.01).all()  # events of the band are coarser than all half-lines
        assert abs(profile.estimate[0] - true[0]) < 0.02
        assert profile.upper[0] - profile.lower[0] < 0.15
        assert (np.diff(profile.lower) <= 0).all()
        assert (np.diff(profile.upper) <= 0).all()


def test_more_reports_never_give_a_much_wider_band_and_its_events_are_good_ones_from_the_start() -> None:
    widths = []
    for reports in (500, 1_000, 3_000, 5_000, 8_000, 16_000, 20_000, 50_000):
        profile = audit(laplace(1.0), epsilon=1.0, reports=reports, rng=np.random.default_rng(1)).profile
        assert profile.reports >= 0.6 * reports - 100
        assert profile.upper[0] >= 1 - math.exp(-0.5)  # the total variation of two Laplace laws that are 1 apart
        assert abs(profile.estimate[0] - (1 - math.exp(-0.5))) < 3 / math.sqrt(reports)
        widths.append(profile.upper[0] - profile.lower[0])
    assert (np.diff(widths) < 0.1 * np.array(widths[1:])).all()


def test_the_band_is_of_reports_that_came_after_its_order() -> None:
    def never_twice(_database: int, size: int, rng: Rng) -> np.ndarray:
        return np.array([f"{number:.17f}" for number in rng.random(size)])

    profile = audit(never_twice, epsilon=1.0, reports=300, rng=np.random.default_rng(1)).profile
    assert profile.reports == 100
    assert profile.estimate.max() == 0.0


def result() -> Audit:
    return audit(laplace(0.5), epsilon=1.0, reports=3_000, rng=np.random.default_rng(1))


def test_a_result_reads_as_text_json_and_picture() -> None:
    found = result()
    text = str(found)
    assert text.startswith("Violation\n")
    assert "No audit can verify a claim" in text
    again = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert again["verdict"] == "violation"
    assert again["witness"]["event"] in text
    assert len(again["profile"]["lower"]) == len(found.profile.epsilons)
    axes = found.plot()
    assert axes.get_xlabel() == "epsilon"
    assert found.plot(axes) is axes


def test_a_withheld_result_has_no_band_and_no_curve() -> None:
    found = audit(lambda _d, n, r: np.repeat(r.normal(size=n), 2)[:n], epsilon=1.0, rng=np.random.default_rng(1))
    assert found.verdict is Verdict.WITHHELD
    assert found.profile.reports == len(found.profile.epsilons) == 0
    assert "band" not in str(found)
    assert json.loads(json.dumps(found.to_json()))["profile"]["upper"] == []
    axes = found.plot()
    assert [line.get_label() for line in axes.get_lines()] == ["claim"]
    assert not axes.collections


def test_where_the_band_and_the_bets_disagree_the_result_says_which_counts() -> None:
    found = audit(laplace(1.0), epsilon=1.0, reports=1_000, rng=np.random.default_rng(1))
    assert "the verdict counts" not in str(found)
    above = replace(found.profile, lower=np.full_like(found.profile.lower, 0.25), estimate=found.profile.upper)
    text = str(replace(found, profile=replace(above, upper=np.ones_like(above.upper))))
    assert text.startswith("No violation found\n")
    assert "lies above the claim (delta at least 0.25): the verdict counts" in text


@pytest.mark.parametrize("epsilon", [0.0, 3.0, 700.0])
def test_no_result_says_verified(epsilon: float) -> None:
    good = audit(laplace(1.0), epsilon=epsilon, delta=0.9, reports=1_000, rng=np.random.default_rng(1))
    assert good.verdict is Verdict.NONE_FOUND
    assert "verified" not in str(good)
    assert "verified" not in " ".join(Verdict)
    json.dumps(good.to_json(), allow_nan=False)


def test_results_that_contradict_themselves_are_refused() -> None:
    found = result()
    with pytest.raises(InputError, match="bound above"):
        replace(found, epsilon_lower=0.5)
    with pytest.raises(InputError, match="withheld"):
        replace(found, independent=False, dependence="x")
    with pytest.raises(InputError, match="dependence"):
        replace(found, dependence="x")
    with pytest.raises(InputError, match="direction"):
        Witness(event="e", direction="up", counts=(1, 2), reports=5, source="s")
    with pytest.raises(InputError, match="counts"):
        Witness(event="e", direction="0->1", counts=(1, 6), reports=5, source="s")
    with pytest.raises(InputError, match="within its band"):
        PrivacyCurve(
            epsilons=np.array([0.0]),
            estimate=np.array([0.5]),
            lower=np.array([0.6]),
            upper=np.ones(1),
            events="e",
            reports=1,
        )
    with pytest.raises(InputError, match="one value per epsilon"):
        PrivacyCurve(
            epsilons=np.array([0.0]), estimate=np.zeros(2), lower=np.zeros(1), upper=np.ones(1), events="e", reports=1
        )
