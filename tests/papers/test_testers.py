"""McMillan's table, measured."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from papers import Agreement, Result
from papers.complexity import EPSILON, Along, Cell, Mistakes, Point, Rare, Setting, Share, Sweep, hidden_pairs, rare
from papers.experiments.testers import Complexities, lower_verdict
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("testers")


def made_up(tester: Cell, along: Along, power: float, *, rate: float, limit: float = 0.5) -> Sweep:
    x = (1 / 64, 1 / 16, 1 / 8) if along is not Along.OUTCOMES else (256.0, 1024.0, 4096.0)
    points = [
        Point(
            v,
            needed=1e4 * v**power,
            error=100 * v**power,
            planned=10**6,
            printed=None if tester is Cell.KNOWN else 1e7 * v**rate,
            rate=v**rate,
            limit=round(100 * v**limit),
            audited=2e3 * v**-0.5,
            found=1.0,
        )
        for v in x
    ]
    return Sweep(tester, along, tuple(points))


def complexities(
    *, beta: float = -1.0, known: float = 0.5, one_way: float = 1.0, left: float = 0.2, hidden: float = 1.0
) -> Complexities:
    sweeps = (
        made_up(Cell.UNKNOWN, Along.OUTCOMES, 1.0, rate=1.0),
        made_up(Cell.UNKNOWN, Along.GAP, -2.0, rate=-2.0, limit=-2.0),
        made_up(Cell.KNOWN, Along.OUTCOMES, known, rate=0.5),
        made_up(Cell.KNOWN, Along.GAP, -2.0, rate=-2.0, limit=-2.0),
        made_up(Cell.PURE, Along.LEAST, beta, rate=-2.0, limit=-1.0),
        made_up(Cell.PURE, Along.GAP, -2.0, rate=-2.0, limit=-2.0),
    )
    rares = tuple(Rare(A, A - 1.0, round(math.exp(hidden * A)), 1.0, 2e5, 0.0) for A in (4.0, 8.0, 12.0))
    shares = (Share(0.1, 20, 600.0, 4, 5, 33, left, 0.025),)
    return Complexities(sweeps, rares, shares, Mistakes(300, 0.21, one_way, 0.0, 0.0, 1.0))


def verdicts(found: Complexities) -> dict[str, Agreement]:
    return {claim.text: claim.verdict for claim in found.claims()}


def test_every_cell_is_between_its_limit_and_its_plan(result: Result) -> None:
    assert isinstance(result.finding, Complexities)
    assert {(one.tester, one.along) for one in result.finding.sweeps} == {
        *((cell, Along.OUTCOMES) for cell in Cell),
        *((cell, Along.GAP) for cell in Cell),
        (Cell.PURE, Along.LEAST),
    }
    for sweep in result.finding.sweeps:
        assert all(one.limit < one.needed < one.planned for one in sweep.points)
        assert all(one.printed is None or one.printed > one.needed for one in sweep.points)


def test_no_number_is_printed_where_the_thesis_has_a_rate_alone(result: Result) -> None:
    assert isinstance(result.finding, Complexities)
    for sweep in result.finding.sweeps:
        assert {one.printed is None for one in sweep.points} == {sweep.tester is Cell.KNOWN}
        assert sweep.rate_through_first[0] == pytest.approx(sweep.points[0].needed)
    table = next(one for one in result.tables() if one.title.endswith(str(Cell.KNOWN)))
    assert {row[table.columns.index("printed")] for row in table.rows} == {"-"}
    claims = [claim for claim in result.finding.claims() if claim.text.startswith(str(Cell.KNOWN))]
    assert all("no constant is printed" in claim.found for claim in claims)


def test_the_printed_numbers_are_those_of_the_algorithms() -> None:
    assert Setting(Cell.UNKNOWN, 64, 0.1).printed == pytest.approx(4 * 64 * (1 + math.exp(2)) / 0.05**2)
    pure = Setting(Cell.PURE, 16, 0.5, 1 / 64)
    assert pure.printed == pytest.approx(math.log(16) / (0.05**2 * pure.least**2))


def test_exponents_are_fitted_and_the_printed_ones_follow_from_the_formulas(result: Result) -> None:
    assert isinstance(result.finding, Complexities)
    claimed = {(one.tester, one.along): one.claimed for one in result.finding.sweeps}
    assert claimed[Cell.UNKNOWN, Along.OUTCOMES] == pytest.approx(1.0)
    assert claimed[Cell.KNOWN, Along.OUTCOMES] == pytest.approx(0.5)
    assert claimed[Cell.PURE, Along.LEAST] == pytest.approx(-2.0)
    assert claimed[Cell.PURE, Along.GAP] == pytest.approx(-2.0)
    assert made_up(Cell.KNOWN, Along.OUTCOMES, 0.5, rate=0.5).slope.value == pytest.approx(0.5)


def test_verdicts_follow_the_numbers() -> None:
    found = verdicts(complexities())
    names = list(found)
    agrees, looser, wrong, open_still = Agreement.AGREES, Agreement.LOOSER, Agreement.WRONG, Agreement.UNDECIDED
    uppers, lowers = [agrees, agrees, agrees, agrees, looser, agrees], [Agreement.CONSISTENT] * 3
    assert list(found.values()) == [agrees, *uppers, *lowers, wrong, wrong, wrong]
    assert verdicts(complexities(hidden=0.5))[names[0]] is open_still
    squared = verdicts(complexities(beta=-2.0))
    assert squared[names[5]] is agrees
    assert squared[names[7]] is looser
    assert verdicts(complexities(known=1.0))[names[3]] is wrong
    assert verdicts(complexities(one_way=0.2))[names[10]] is agrees
    assert verdicts(complexities(left=0.02))[names[12]] is agrees


@pytest.mark.parametrize(
    ("needed", "proved", "verdict"),
    [
        (1.0, 1.0, Agreement.CONSISTENT),
        (1.0, 0.5, Agreement.UNDECIDED),
        (0.5, 0.5, Agreement.WRONG),
        (1.5, 1.0, Agreement.LOOSER),
    ],
)
def test_a_lower_bound_has_to_be_proved_and_not_contradicted(needed: float, proved: float, verdict: Agreement) -> None:
    sweep = made_up(Cell.UNKNOWN, Along.OUTCOMES, needed, rate=1.0, limit=proved)
    assert lower_verdict(sweep, 1.0) is verdict
    known = Agreement.CONSISTENT if verdict is Agreement.UNDECIDED else verdict
    assert lower_verdict(sweep, 1.0, elsewhere=True) is known


class TestUnverifiable:
    @pytest.mark.parametrize("depth", [4.0, 8.0])
    def test_the_pairs_have_the_stated_parameters(self, depth: float) -> None:
        private, far = hidden_pairs(depth)
        assert private.epsilon == pytest.approx(EPSILON)
        assert far.epsilon == pytest.approx(depth - EPSILON)
        assert private.zero.tolist() == far.zero.tolist()

    @pytest.mark.parametrize("depth", [3.0, 5.0])
    def test_the_number_is_what_the_best_test_needs(self, depth: float) -> None:
        """Power at a false alarm of 1/3 of the likelihood ratio test of the counts, over all thresholds."""
        private, far = hidden_pairs(depth)
        r = rare(depth, 1, (1,)).needed

        def power(queries: int) -> float:
            counts = np.arange(queries + 1)
            p, q = (stats.binom.pmf(counts, queries, one.one[0]) for one in (private, far))
            alarm, found = np.r_[0, np.cumsum(q[::-1])], np.r_[0, np.cumsum(p[::-1])]
            return float(np.interp(1 / 3, alarm, found))

        assert power(r) >= 2 / 3
        assert power(r - 1) < 2 / 3

    def test_it_has_no_end(self, result: Result) -> None:
        assert isinstance(result.finding, Complexities)
        assert result.finding.hidden.value == pytest.approx(1.0, abs=0.03)
        assert all(one.printed < one.needed for one in result.finding.rares)

    def test_audits_that_find_nothing_are_said(self) -> None:
        table = complexities().tables()[1]
        assert {row[-1] for row in table.rows} == {"above 200,000"}


def test_audits_that_found_nothing_are_said_and_not_fitted() -> None:
    sweep = made_up(Cell.UNKNOWN, Along.OUTCOMES, 1.0, rate=1.0)
    assert sweep.audited is not None
    assert sweep.audited.value == pytest.approx(-0.5)
    without = replace(sweep, points=tuple(replace(one, found=0.0) for one in sweep.points))
    assert without.audited is None
    found = replace(complexities(), sweeps=(without, *complexities().sweeps[1:]))
    assert found.tables()[2].rows[0][-1] == "above 200,000"
    assert "None" not in " ".join(found.paragraphs())
    assert "0 %" not in found.tables()[0].rows[0]
