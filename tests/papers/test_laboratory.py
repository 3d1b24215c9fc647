"""The framework: runs, results and how they travel."""

import json
from pathlib import Path

import pytest

from cloakwork.errors import InputError
from papers import Measure, Run, find, read_result
from papers.experiment import Size
from papers.result import numbers_in
from tests.papers.kit import DICE, Dice


def test_quick_is_smaller_and_its_goals_are_not_judged() -> None:
    quick, full = DICE.run(quick=True), DICE.run()
    assert isinstance(quick.finding, Dice)
    assert len(quick.finding.thrown) == 2
    assert [table.title for table in quick.tables()] == ["Dice"]
    assert [table.title for table in full.tables()] == ["Dice", "Goals"]
    assert full.tables()[-1].rows == (("a six", "6", "met"),)
    assert full.met


def test_a_probe_has_all_numbers_but_times() -> None:
    probe = DICE.probe(3)
    assert list(probe) == ["thrown[0]"]
    assert dict(numbers_in(Dice((1, 2), seconds=9.0))) == {"thrown[0]": 1.0, "thrown[1]": 2.0}
    assert Run(size=Size.PROBE).data(Path("anything")) is None


def test_parts_of_the_progress_add_up() -> None:
    seen: list[tuple[int, int]] = []
    run = Run(progress=lambda *now: seen.append(now))
    assert [*run.each("ab", after=1), *run.each("c", before=2)] == ["a", "b", "c"]
    assert seen == [(0, 3), (1, 3), (2, 3), (2, 3), (3, 3)]
    assert list(run.each(())) == []
    assert seen[-1] == (0, 0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed: int) -> None:
    with pytest.raises(InputError) as refused:
        DICE.run(seed=seed)
    assert refused.value.values["seed"] == seed


@pytest.mark.parametrize(
    ("name", "near"),
    [("nonsense", None), ("", None), ("Estimators", "estimators"), ("typicl", "typical"), ("typical ", "typical")],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, near: str | None) -> None:
    with pytest.raises(InputError) as refused:
        find(name)
    assert refused.value.values == {"name": name, "near": near}


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"experiment": "estimators", "title": "", "finding": {"cases": 1}}']
)
def test_text_that_is_not_a_result_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_result(text)


def test_the_json_of_a_result_has_plain_values_only() -> None:
    values = DICE.run(quick=True, seed=5).to_json()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert [values[key] for key in ("experiment", "title", "quick", "seed")] == ["dice", "What dice show", True, 5]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (Measure("a", 1.0, 0.1), Measure("a", 1.6, 0.1), True),
        (Measure("a", 1.0, 0.1), Measure("a", 1.8, 0.1), False),
        (Measure("a", 1.0), Measure("a", 1.0 + 1e-9), True),
        (Measure("a", 1.0), Measure("a", 1.001), False),
        (Measure("a", 1.0, slack=0.2), Measure("a", 1.1), True),
        (Measure("a", float("nan")), Measure("a", 1.0, 1.0), False),
    ],
)
def test_measures_agree_within_the_errors_of_both(first: Measure, second: Measure, same: bool) -> None:
    assert first.agrees(second) is same
    assert second.agrees(first) is same
