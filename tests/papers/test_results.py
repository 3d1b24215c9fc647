"""The committed results: a small run with another seed gives them again, and the page is made of nothing else."""

from pathlib import Path

import pytest

from papers import EXPERIMENTS, Agreement, Measure
from papers.records import read
from papers.report import FOLDER, PAGE, page

DOCS = Path(__file__).parents[2] / "docs"
FEW = 0.1  # of the comparisons may be vague
FEW_OPEN = 5  # claims that no experiment of ours can decide


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_small_run_with_another_seed_gives_the_committed_numbers(name: str) -> None:
    committed = read(name, DOCS / FOLDER).result
    assert not committed.quick
    again = EXPERIMENTS[name].run(quick=True, seed=committed.seed + 1)
    known = {one.name: one for one in committed.finding.measures()}
    found = again.finding.measures()
    assert found
    missing = Measure("", float("nan"))
    assert [one for one in found if not one.agrees(known.get(one.name, missing))] == []
    vague = [one.name for one in found if not known[one.name].telling(one)]
    assert len(vague) <= FEW * len(found), f"comparisons that could hardly fail: {vague}"


def test_the_page_is_made_of_the_committed_results_alone() -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == page([read(name, DOCS / FOLDER) for name in EXPERIMENTS])


def test_no_claim_is_left_without_a_verdict_and_no_goal_missed() -> None:
    results = [read(name, DOCS / FOLDER).result for name in EXPERIMENTS]
    assert [f"{one.name}: {goal.text}" for one in results for goal in one.finding.goals() if not goal.met] == []
    assert sum(len(one.finding.claims()) for one in results) >= 100
    open_still = [
        claim.text for one in results for claim in one.finding.claims() if claim.verdict is Agreement.UNDECIDED
    ]
    assert len(open_still) <= FEW_OPEN, open_still


def test_the_committed_results_are_of_one_run() -> None:
    records = [read(name, DOCS / FOLDER) for name in EXPERIMENTS]
    assert len({(one.code, one.result.seed, one.result.quick) for one in records}) == 1
