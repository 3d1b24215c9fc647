"""`python -m papers`."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typer.main

from cloakwork.cli.app import run_app
from papers import EXPERIMENTS, Experiment, Finding, Run, __main__, experiments, read_result
from papers.__main__ import app
from papers.experiment import Size
from papers.recordings import INFRARED
from tests.cli.conftest import Outcome, runner
from tests.papers.kit import DICE

Command = Callable[..., Outcome]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run one command of the laboratory, however it ends."""
    return runner("papers", lambda: run_app(app), monkeypatch, capsys)


def test_list_names_every_experiment_its_time_and_what_it_repeats(run: Command) -> None:
    outcome = run("list")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(EXPERIMENTS)
    assert all(re.search(rf"^{name} +[0-9.]+ min  \S", outcome.out, flags=re.MULTILINE) for name in EXPERIMENTS)
    listed = json.loads(run("list", "--json").out)["experiments"]
    assert [one["name"] for one in listed] == list(EXPERIMENTS)
    for one in listed:
        assert one["minutes"] > 0
        assert all(shown in outcome.out for shown in one["shows"].split("; "))


def test_run_prints_tables_and_writes_two_files(run: Command, tmp_path: Path) -> None:
    outcome = run("run", "sensitivity", "--quick", "--out", tmp_path / "new" / "folder", "--seed", "3")
    assert outcome.code == 0
    assert outcome.out.startswith("sensitivity: ")
    assert "rough" in outcome.out
    assert str(tmp_path / "new" / "folder") in outcome.err
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["sensitivity.json", "sensitivity.png"]
    result = read_result((folder / "sensitivity.json").read_text(encoding="utf-8"))
    assert result.seed == 3
    assert result.finding.paragraphs()[0] in outcome.out
    assert (folder / "sensitivity.png").read_bytes().startswith(b"\x89PNG")


def dict_of_experiments() -> dict[str, Experiment]:
    """The experiments that a test has registered."""
    assert isinstance(experiments.EXPERIMENTS, dict)
    return experiments.EXPERIMENTS


@pytest.fixture
def dice(register: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """An experiment that takes no time and lacks its recording; there is no other."""
    dice = replace(DICE, data=(INFRARED,))
    register(dice)
    monkeypatch.setattr(__main__, "EXPERIMENTS", experiments.EXPERIMENTS)
    return dice


def test_an_interrupted_run_says_how_far_it_is_and_that_it_goes_on(
    run: Command, dice: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(run: Run) -> Finding:
        if run.size is not Size.PROBE:
            raise KeyboardInterrupt
        return DICE.work(run)

    monkeypatch.setitem(dict_of_experiments(), "cards", replace(dice, name="cards", work=stop, minutes=0.0))
    outcome = run("run", "all", "--jobs", "1", "--out", tmp_path)
    assert outcome.code == 130
    assert f"stopped: 1 of 2 results in {tmp_path}" in outcome.err


def test_an_unknown_name_is_bad_input_and_lists_the_known_ones(run: Command, tmp_path: Path) -> None:
    outcome = run("run", "nonsense", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert outcome.out == ""
    assert all(name in outcome.err for name in EXPERIMENTS)
    assert not (tmp_path / "out").exists()


def test_a_report_says_where_it_is_and_what_it_lacks(run: Command, dice: Experiment, tmp_path: Path) -> None:
    run("run", "all", "--out", tmp_path / "lab")
    outcome = run("report", tmp_path / "lab", "--docs", tmp_path / "docs")
    assert outcome.code == 0
    assert "dice ran without the recording thermo_presence/ir38.npz" in outcome.err
    assert f"wrote {tmp_path / 'docs' / 'results.md'}" in outcome.err
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == ["errata.md", "results", "results.md"]


def test_the_experiments_and_the_options_of_every_command_are_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = re.search(r"^## The laboratory$(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert section is not None
    commands = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - not in the stubs
    assert set(commands) == {"list", "run", "show", "report"}
    for name, command in commands.items():
        assert f"python -m papers {name}" in section.group(1)
        for parameter in command.params:
            for option in (text for text in parameter.opts if text.startswith("--")):
                assert f"`{option}`" in section.group(1), f"{option} of lab {name} is not documented"
    laboratory = (PAGE.parent.parent / "science" / "laboratory.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in laboratory for name in EXPERIMENTS)
