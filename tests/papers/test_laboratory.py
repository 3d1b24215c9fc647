"""The framework: runs that continue where they stopped, results that travel, the pages, and the command."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.cli.app import run_app
from cloakwork.errors import CloakworkError, InputError
from cloakwork.parallel import PartOutcome, part_outcomes
from papers import EXPERIMENTS, find, report, runner
from papers.__main__ import app
from papers.experiment import Experiment, stream
from papers.recordings import LICENCES, data_file
from papers.result import Agreement, Claim, Result
from papers.rows import Mean, Row, numbers_in, tables_of
from papers.store import difference, parse, read
from tests.cli.conftest import Outcome
from tests.cli.conftest import runner as command_runner
from tests.papers.conftest import Cup
from tests.papers.kit import DICE, RECORDING, Dice, names, quick, run_here

Command = Callable[..., Outcome]
PAGES = Path(__file__).parents[2] / "docs"


def test_quick_is_smaller_and_its_goals_are_not_judged() -> None:
    quick, full = DICE.run(quick=True), DICE.run()
    assert len(quick.finding.thrown) == 2
    assert [table.title for table in quick.tables()] == ["numbers"]
    assert full.tables()[-1].rows == (("a six", "6", "met"),)


def test_all_numbers_of_a_finding_are_in_its_tables() -> None:
    rows = (
        Row(name="a", mean=Mean(1.0, 0.5), inner=(Mean(3.0, 0.0),)),
        Row(name="b", mean=Mean(2.0, 0.5), inner=()),
    )
    own, outer, inner = tables_of(Row(thrown=(1, 6), seconds=0.0, rows=rows))
    assert own.rows == (("1 6", "0"),)
    assert (outer.columns, outer.rows[1][:2]) == (("name", "mean", "inner"), ("b", "2.0000 ± 0.5000"))
    assert inner.title == "rows.inner"
    assert inner.rows[0] == ("a", "1.0000 ± 0.5000", "3", "0"), "an inner row begins with the values of its row"


def test_a_probe_has_all_numbers_but_times() -> None:
    assert list(DICE.probe(3)) == ["thrown[0]"]
    assert dict(numbers_in(Dice(thrown=(1, 2), seconds=9.0))) == {"thrown[0]": 1.0, "thrown[1]": 2.0}
    assert stream(1).random() != stream(1, 0).random()


@pytest.mark.parametrize("seed", [-1, True, "1"])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed: int) -> None:
    with pytest.raises(InputError) as refused:
        DICE.run(seed=seed)
    assert refused.value.values["seed"] == seed


@pytest.mark.parametrize(("name", "near"), [("nonsense", None), ("typicl", "typical")])
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, near: str | None) -> None:
    with pytest.raises(InputError) as refused:
        find(name)
    assert refused.value.values == {"name": name, "near": near}


def test_a_valid_result_is_not_run_again_and_another_seed_size_or_behaviour_is(cup: Cup, tmp_path: Path) -> None:
    first, second = (run_here(tmp_path, cup.experiment, quick=True)[0] for _ in range(2))
    assert cup.thrown == [1]
    assert (first.kept, second.kept, second.result.finding) == (False, True, first.result.finding)
    run_here(tmp_path, cup.experiment, seed=2, quick=True)
    run_here(tmp_path, cup.experiment, seed=2)
    assert cup.thrown == [1, 2, 2]
    with pytest.raises(InputError, match="would replace"):
        run_here(tmp_path, cup.experiment, seed=2, quick=True)
    again = tmp_path / "dice.json"
    again.write_text(again.read_text(encoding="utf-8").replace("thrown", "eyes"), encoding="utf-8")
    assert "no thrown" in difference(read("dice", tmp_path)), "a result of another form is stale"
    again.write_text(again.read_text(encoding="utf-8").replace("eyes", "thrown"), encoding="utf-8")
    cup.loaded = 1
    assert "thrown[0]" in difference(read("dice", tmp_path))
    run_here(tmp_path, cup.experiment, seed=2)
    assert cup.thrown == [1, 2, 2, 2]
    assert names(tmp_path) == ["dice.json", "dice.png"]


def test_on_another_processor_a_few_numbers_may_differ(
    cup: Cup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [done] = run_here(tmp_path, cup.experiment)
    result = replace(done.result, finding=Dice(**{str(k): 1.0 for k in range(100)}))
    monkeypatch.setattr(Experiment, "probe", lambda *_: {str(k): 1.0 for k in range(100)})
    for differing, stale_here, stale_there in ((0, False, False), (15, True, False), (16, True, True)):
        numbers = (1.0,) * (100 - differing) + (2.0,) * differing
        for processor, stale in ((result.processor, stale_here), ("another", stale_there)):
            probed = replace(result, signature=numbers, processor=processor)
            assert bool(difference(probed)) is stale, (differing, processor)


def test_other_data_is_run_again(cup: Cup, tmp_path: Path) -> None:
    found = []
    for content in ("one", "one", "two"):
        data_file(RECORDING).write_text(content, encoding="utf-8")
        found += run_here(tmp_path, cup.experiment)
    assert cup.thrown == [1, 1]
    assert [one.kept for one in found] == [False, True, False]
    assert len({one.result.data[RECORDING.name] for one in found}) == 2


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda content: content[:50],
    "not UTF-8": lambda content: content.replace(b"What dice show", b"\xff\xfe"),
    "signature in words": lambda content: content.replace(b'"signature": "1"', b'"signature": "one"'),
    "no finding": lambda content: content.replace(b'"finding"', b'"found"'),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_damaged_file_is_not_a_result(cup: Cup, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    run_here(tmp_path, cup.experiment)
    path = tmp_path / "dice.json"
    content = path.read_bytes()
    assert spoil(content) != content
    path.write_bytes(spoil(content))
    with pytest.raises(InputError) as refused:
        read("dice", tmp_path)
    assert refused.value.values["experiment"] == "dice"
    run_here(tmp_path, cup.experiment)
    assert cup.thrown == [1, 1]


def test_an_interrupted_write_leaves_no_picture_beside_other_numbers(
    cup: Cup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(tmp_path, cup.experiment)
    move = Path.replace

    def stop(path: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise KeyboardInterrupt
        return move(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        run_here(tmp_path, cup.experiment, seed=2)
    monkeypatch.undo()
    assert names(tmp_path) == ["dice.png"]


def test_a_cluster_runs_experiments_by_name_and_a_failure_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(work: Any, parts: Any, **_: object) -> Iterator[PartOutcome]:
        return part_outcomes(work, parts, workers=1)

    monkeypatch.setattr(runner, "part_outcomes", here)
    chosen = [EXPERIMENTS["sensitivity"], replace(DICE, name="nowhere", minutes=9.0)]
    found = runner.run_all(chosen, tmp_path, quick=True, seed=2, jobs=2)
    assert next(found).result.finding == quick("sensitivity").finding
    with pytest.raises(CloakworkError, match="nowhere"):
        next(found)
    assert names(tmp_path) == ["sensitivity.json", "sensitivity.png"]


class Claimed(Dice):
    def claims(self) -> tuple[Claim, ...]:
        verdicts = (Agreement.WRONG, Agreement.AGREES)
        rows = zip(self.thrown, verdicts, strict=True)
        return tuple(Claim("it shows | six", "Some paper", str(eyes), verdict) for eyes, verdict in rows)


def test_the_page_says_what_was_found_and_another_one_what_is_wrong(cup: Cup) -> None:
    finding, data = Claimed(thrown=(3, 6)), {RECORDING.name: "abc"}
    results = [Result("dice", "What dice show", False, 7, finding, (1.0,), "", {"numpy": "2.4"}, data, 2.0)]
    text = report.results_page(results)
    assert "Some throws." in text
    assert "Claims of the papers: agrees: 1; wrong as printed: 1." in text
    assert "![What dice show](results/dice.png)" in text
    assert f"| dice | {RECORDING} | `abc` |" in text
    assert "| Some paper | it shows \\| six | 3 | dice |" in report.errata_page(results)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run one command of the laboratory, however it ends."""
    return command_runner("papers", lambda: run_app(app), monkeypatch, capsys)


def test_the_commands_list_run_and_show_experiments(run: Command, tmp_path: Path) -> None:
    listed = run("list").out
    for one in EXPERIMENTS.values():
        assert re.search(rf"^{one.name} +[0-9.]+ min  \S", listed, flags=re.MULTILINE)
        assert all(shown in listed for shown in one.shows.split("; "))
    assert all(re.search(rf"^{name} +{licence} +\S", listed, flags=re.MULTILINE) for name, licence in LICENCES.items())
    outcome = run("run", "sensitivity", "--quick", "--out", tmp_path / "new", "--seed", "3")
    assert outcome.code == 0
    assert names(tmp_path / "new") == ["sensitivity.json", "sensitivity.png"]
    result = parse((tmp_path / "new" / "sensitivity.json").read_text(encoding="utf-8"))
    assert (result.seed, result.quick) == (3, True)
    assert result.finding.text() in outcome.out
    assert result.finding.text() in run("show", "sensitivity", "--from", tmp_path / "new").out
    unknown = run("run", "nonsense", "--out", tmp_path / "out")
    assert unknown.code == 2
    assert not (tmp_path / "out").exists()


def test_every_experiment_is_documented() -> None:
    laboratory = (PAGES / "science" / "laboratory.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in laboratory for name in EXPERIMENTS)
