"""The framework: runs, results and how they travel."""

import json
from pathlib import Path

import pytest

from cloakwork.errors import InputError
from papers import Measure, Result, Run, find, read_result
from papers.experiment import Size, stream
from papers.result import numbers_in, tabulate
from tests.papers.kit import DICE, Dice


def test_a_run_depends_on_its_seed_alone() -> None:
    assert DICE.run(seed=3) == DICE.run(seed=3)
    assert DICE.run(seed=3) != DICE.run(seed=4)


def test_quick_is_smaller_and_its_goals_are_not_judged() -> None:
    quick, full = DICE.run(quick=True), DICE.run()
    assert isinstance(quick.finding, Dice)
    assert len(quick.finding.thrown) == 2
    assert [table.title for table in quick.tables()] == ["Dice"]
    assert [table.title for table in full.tables()] == ["Dice", "Goals"]
    assert full.tables()[-1].rows == (("a six", "6", "met"),)
    assert full.met


def test_a_missed_goal_is_marked() -> None:
    result = Result("dice", "What dice show", False, 1, Dice((1, 2)))
    assert result.tables()[-1].rows == (("a six", "2", "MISSED"),)
    assert not result.met


def test_a_probe_has_all_numbers_but_times() -> None:
    probe = DICE.probe(3)
    assert list(probe) == ["thrown[0]"]
    assert dict(numbers_in(Dice((1, 2), seconds=9.0))) == {"thrown[0]": 1.0, "thrown[1]": 2.0}
    assert Run(size=Size.PROBE).data(Path("anything")) is None


def test_progress_reaches_the_caller() -> None:
    seen: list[tuple[int, int]] = []
    DICE.run(quick=True, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]


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


def test_streams_of_different_parts_are_different() -> None:
    assert stream(1, 2, 3).random() == stream(1, 2, 3).random()
    keys = [(1,), (1, 0), (1, 0, 0), (1, 2), (2, 1)]
    assert len({stream(*key).random() for key in keys}) == len(keys)


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


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_is_written_in_the_format_of_its_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"dice.{kind}"
    DICE.run(quick=True).draw(path)
    assert path.read_bytes()[:5] == {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[kind]


def test_a_table_has_its_headings_beside_its_cells() -> None:
    table = tabulate("Title", "a | b | b", [f"{x} | {2 * x} | {3 * x}" for x in (1.5,)])
    assert table.columns == ("a", "b", "b")
    assert table.rows == (("1.5", "3.0", "4.5"),)


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
