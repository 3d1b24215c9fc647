"""McMillan's table, measured."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.lab import Agreement, Result, find, read_result
from cloakwork.lab.complexity import Along, Cell, Point, Share, Sweep
from cloakwork.lab.experiments import testers
from cloakwork.lab.experiments.testers import Complexities, Effort, rate_verdict
from cloakwork.lab.printed_testers import Mistakes
from cloakwork.lab.slopes import Slope


def run_small(seed: int = 1) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testers, "QUICK", Effort(2, 40, 1))
        patch.setattr(testers, "QUICK_COUNTS", (16, 32, 64))
        patch.setattr(testers, "QUICK_GAPS", (0.2, 0.4))
        return find("testers").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


def made_up(tester: Cell, along: Along, power: float, *, printed: float) -> Sweep:
    x = (1 / 16, 1 / 4, 1.0) if along is not Along.OUTCOMES else (64.0, 256.0, 1024.0)
    points = [Point(v, 1e4 * v**power, 100 * v**power, 10**6, 1e7 * v**printed, 10, 2e3 * v**-0.5, 1.0) for v in x]
    return Sweep(tester, along, tuple(points))


def complexities(*, beta: float = -1.0, known: float = 0.5, one_way: float = 1.0, left: float = 0.2) -> Complexities:
    sweeps = (
        made_up(Cell.UNKNOWN, Along.OUTCOMES, 1.0, printed=1.0),
        made_up(Cell.UNKNOWN, Along.GAP, -2.0, printed=-2.0),
        made_up(Cell.KNOWN, Along.OUTCOMES, known, printed=0.5),
        made_up(Cell.KNOWN, Along.GAP, -2.0, printed=-2.0),
        made_up(Cell.PURE, Along.LEAST, beta, printed=-2.0),
        made_up(Cell.PURE, Along.GAP, -2.0, printed=-2.0),
    )
    shares = (Share(0.1, 20, 600.0, 4, 5, 33, left, 0.025),)
    return Complexities(sweeps, shares, Mistakes(300, 0.21, one_way, 0.0, 0.0, 1.0))


def verdicts(found: Complexities) -> dict[str, Agreement]:
    return {claim.text: claim.verdict for claim in found.claims()}


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result
    assert run_small(seed=2) != result


def test_json_round_trip_tables_and_picture(result: Result, tmp_path: Path) -> None:
    assert read_result(json.dumps(result.to_json(), allow_nan=False)) == result
    result.draw(tmp_path / "testers.png")
    assert (tmp_path / "testers.png").stat().st_size > 20_000
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_every_cell_is_between_its_limit_and_its_plan(result: Result) -> None:
    assert isinstance(result.finding, Complexities)
    assert {(one.tester, one.along) for one in result.finding.sweeps} == {
        *((cell, Along.OUTCOMES) for cell in Cell),
        *((cell, Along.GAP) for cell in Cell),
        (Cell.PURE, Along.LEAST),
    }
    for sweep in result.finding.sweeps:
        assert all(one.limit < one.needed < one.planned for one in sweep.points)
        assert all(one.printed > one.needed for one in sweep.points)


def test_exponents_are_fitted_and_the_printed_ones_follow_from_the_formulas(result: Result) -> None:
    assert isinstance(result.finding, Complexities)
    claimed = {(one.tester, one.along): one.claimed for one in result.finding.sweeps}
    assert claimed[Cell.UNKNOWN, Along.OUTCOMES] == pytest.approx(1.0)
    assert claimed[Cell.KNOWN, Along.OUTCOMES] == pytest.approx(0.5)
    assert claimed[Cell.PURE, Along.LEAST] == pytest.approx(-2.0)
    assert claimed[Cell.PURE, Along.GAP] == pytest.approx(-2.0)
    assert made_up(Cell.KNOWN, Along.OUTCOMES, 0.5, printed=0.5).slope.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("found", "claimed", "verdict"),
    [
        (-1.0, -2.0, Agreement.LOOSER),
        (-2.05, -2.0, Agreement.AGREES),
        (-2.4, -2.0, Agreement.WRONG),
        (0.9, 1.0, Agreement.AGREES),
        (0.5, 1.0, Agreement.LOOSER),
        (1.5, 1.0, Agreement.WRONG),
    ],
)
def test_a_rate_is_judged_by_its_exponent(found: float, claimed: float, verdict: Agreement) -> None:
    assert rate_verdict(Slope(found, 0.02), claimed) is verdict


def test_verdicts_follow_the_numbers() -> None:
    names = list(verdicts(complexities()))
    usual = list(verdicts(complexities()).values())
    agrees, looser, wrong = Agreement.AGREES, Agreement.LOOSER, Agreement.WRONG
    assert usual == [agrees, agrees, agrees, agrees, looser, agrees, agrees, wrong, wrong, wrong]
    squared = verdicts(complexities(beta=-2.0))
    assert squared[names[4]] is agrees
    assert squared[names[6]] is Agreement.UNDECIDED
    assert verdicts(complexities(known=1.0))[names[2]] is wrong
    assert verdicts(complexities(one_way=0.2))[names[7]] is agrees
    assert verdicts(complexities(left=0.02))[names[9]] is agrees


def test_a_number_below_the_limit_would_be_a_contradiction() -> None:
    found = complexities()
    pure = found.of(Cell.PURE, Along.LEAST)
    below = replace(pure, points=tuple(replace(one, limit=10**9) for one in pure.points))
    other = replace(found, sweeps=tuple(below if one is pure else one for one in found.sweeps))
    assert verdicts(other)["pure, full information: at least 1 / (beta alpha^2) queries"] is Agreement.WRONG


def test_audits_that_found_nothing_are_said_and_not_fitted() -> None:
    sweep = made_up(Cell.UNKNOWN, Along.OUTCOMES, 1.0, printed=1.0)
    assert sweep.audited is not None
    assert sweep.audited.value == pytest.approx(-0.5)
    without = replace(sweep, points=tuple(replace(one, found=0.0) for one in sweep.points))
    assert without.audited is None
    found = replace(complexities(), sweeps=(without, *complexities().sweeps[1:]))
    assert found.tables()[1].rows[0][-1] == "above 200,000"
    assert "0 %" not in found.tables()[0].rows[0]


def test_measures_and_words_have_the_numbers_of_the_run(result: Result) -> None:
    found = result.finding
    assert isinstance(found, Complexities)
    names = [one.name for one in found.measures()]
    assert len(set(names)) == len(names)
    needed = found.of(Cell.UNKNOWN, Along.OUTCOMES).points[-1].needed
    assert f"{needed:,.0f}" in found.words()[1]
    assert all(math.isfinite(one.value) and one.error >= 0 for one in found.measures())
