"""Runs that go on where they were, and the page that is made of results."""

from pathlib import Path

import pytest
from tests.lab.test_laboratory import DICE, Dice

from cloakwork.errors import CloakworkError, InputError
from cloakwork.lab import EXPERIMENTS, Agreement, Claim, Experiment, Measure, Result, records, registry, report, runs
from cloakwork.lab.experiment import Progress


def told(_name: str, _done: float) -> None:
    """Nobody listens."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The laboratory with dice only; counts how often they are thrown."""
    thrown: list[int] = []

    def work(*, quick: bool, seed: int, progress: Progress) -> Dice:
        thrown.append(seed)
        return Dice((seed, 6) if quick else (seed, 6, 6))

    experiment = Experiment("dice", "What dice show", Dice, work, shows=("Some paper, Figure 1",))
    for module in (records, registry, report, runs):
        monkeypatch.setattr(f"{module.__name__}.code", lambda: "1", raising=False)
    monkeypatch.setattr("cloakwork.lab.registry.EXPERIMENTS", {"dice": experiment})
    monkeypatch.setattr(report, "EXPERIMENTS", {"dice": experiment})
    return thrown


def run(folder: Path, *, seed: int = 1, quick: bool = False) -> list[records.Record]:
    return list(
        runs.run_all(tuple(registry.EXPERIMENTS.values()), folder, quick=quick, seed=seed, jobs=1, progress=told)
    )


def test_what_is_there_is_not_run_again(dice: list[int], tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert dice == [1]
    assert first[0].result == second[0].result
    assert names(tmp_path) == ["dice.json", "dice.png"]


def test_another_size_another_seed_and_other_code_are_run_again(
    dice: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    run(tmp_path, seed=2)
    run(tmp_path, seed=2, quick=True)
    monkeypatch.setattr(records, "code", lambda: "2")
    run(tmp_path, seed=2, quick=True)
    assert dice == [1, 2, 2, 2]


def test_half_a_file_is_no_result(dice: list[int], tmp_path: Path) -> None:
    run(tmp_path)
    path = tmp_path / "dice.json"
    path.write_text(path.read_text(encoding="utf-8")[:50], encoding="utf-8")
    run(tmp_path)
    assert dice == [1, 1]


def test_a_fingerprint_changes_with_the_code() -> None:
    assert len(records.code()) == 16
    assert records.code() == records.code()


def test_experiments_side_by_side_give_what_they_give_alone(tmp_path: Path) -> None:
    chosen = [EXPERIMENTS[name] for name in ("sensitivity", "graph-table")]
    seen: dict[str, float] = {}
    done = list(
        runs.run_all(
            chosen, tmp_path, quick=True, seed=3, jobs=2, progress=lambda name, part: seen.update({name: part})
        )
    )
    assert seen == {"sensitivity": 1.0, "graph-table": 1.0}
    for record in done:
        assert record.result == EXPERIMENTS[record.result.name].run(quick=True, seed=3)


def test_a_failure_in_a_process_is_said_when_the_others_are_done(tmp_path: Path) -> None:
    chosen = [EXPERIMENTS["graph-table"], Experiment("nowhere", "", Dice, DICE.work, minutes=9.0)]
    with pytest.raises(CloakworkError, match=r"nowhere failed.*is not an experiment"):
        list(runs.run_all(chosen, tmp_path, quick=True, seed=1, jobs=2, progress=told))
    assert names(tmp_path) == ["graph-table.json", "graph-table.png"]


class Told(Dice):
    def claims(self) -> tuple[Claim, ...]:
        return (Claim("dice show | six", "Some paper, Figure 1", str(self.thrown[0]), Agreement.WRONG),)

    def words(self) -> tuple[str, ...]:
        return (f"{len(self.thrown)} throws.",)


def test_the_page_says_all_that_the_results_say(dice: list[int]) -> None:
    record = records.Record(Result("dice", "What dice show", False, 7, Told((3, 6))), "1", 2.0)
    text = report.page([record])
    assert "| dice show \\| six | Some paper, Figure 1 | 3 | **wrong as printed** |" in text
    assert "2 throws." in text
    assert "![What dice show](results/dice.png)" in text
    assert "seed 7" in text
    assert "| a six | 6 | met |" in text
    assert "Some paper, Figure 1" in text.split("## dice")[1]


def test_a_report_is_made_of_a_folder_and_leaves_nothing_old(dice: list[int], tmp_path: Path) -> None:
    run(tmp_path / "lab")
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "gone.png").write_text("")
    report.write_report(tmp_path / "lab", tmp_path / "docs")
    assert names(tmp_path / "docs" / "results") == ["dice.json", "dice.png"]
    assert (tmp_path / "docs" / "results.md").read_text(encoding="utf-8").startswith("# Results")


def test_a_folder_that_lacks_one_is_refused(dice: list[int], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no dice\.json: write it with"):
        report.write_report(tmp_path, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


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
