"""`cloakwork lab`."""

import json
import re
from pathlib import Path

import pytest
import typer.main
from tests.cli.conftest import Run

from cloakwork.cli.app import app
from cloakwork.cli.groups import lab
from cloakwork.lab import EXPERIMENTS, read_result
from cloakwork.lab.experiments import estimators, vicinities

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command of the laboratory, with experiments that are very small."""
    monkeypatch.setattr(estimators, "QUICK_DRAWS", 2)
    monkeypatch.setattr(vicinities, "QUICK_FRAMES", 4)
    return lambda *words: run("lab", *words)


def test_list_names_every_experiment(run: Run) -> None:
    outcome = run("list")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()] == list(EXPERIMENTS)
    names = [one["name"] for one in json.loads(run("list", "--json").out)["experiments"]]
    assert names == list(EXPERIMENTS)


def test_run_prints_tables_and_writes_two_files(run: Run, tmp_path: Path) -> None:
    outcome = run("run", "vicinities", "--quick", "--out", tmp_path / "new" / "folder", "--seed", "3")
    assert outcome.code == 0
    assert "Percent of sources held" in outcome.out
    assert "rough" in outcome.out
    assert f"are in {tmp_path / 'new' / 'folder'}" in outcome.err
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["vicinities.json", "vicinities.png"]
    assert read_result((folder / "vicinities.json").read_text(encoding="utf-8")).seed == 3
    assert (folder / "vicinities.png").read_bytes().startswith(b"\x89PNG")


def test_run_all_with_json_prints_one_object(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: EXPERIMENTS[name] for name in ("vicinities", "estimators")}
    monkeypatch.setattr("cloakwork.cli.lab.EXPERIMENTS", chosen)
    outcome = run("run", "all", "--quick", "--jobs", "1", "--json")
    assert outcome.code == 0
    results = json.loads(outcome.out)["results"]
    assert [one["experiment"] for one in results] == ["vicinities", "estimators"]
    assert all(one["quick"] for one in results)


def test_an_unknown_name_is_bad_input_and_lists_the_known_ones(run: Run, tmp_path: Path) -> None:
    outcome = run("run", "nonsense", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert outcome.out == ""
    assert "'nonsense' is not an experiment" in outcome.err
    assert all(name in outcome.err for name in EXPERIMENTS)
    assert not (tmp_path / "out").exists()


def test_an_out_that_is_a_file_is_a_failure_before_the_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = run("run", "estimators", "--quick", "--out", tmp_path / "file")
    assert outcome.code == 1
    assert "file" in outcome.err
    assert "internal error" not in outcome.err


def test_the_experiments_and_the_options_of_every_command_are_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = re.search(r"^## cloakwork lab$(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert section is not None
    commands = getattr(typer.main.get_command(lab), "commands")  # noqa: B009 - not in the stubs
    assert set(commands) == {"list", "run", "report"}
    for name, command in commands.items():
        assert f"cloakwork lab {name}" in section.group(1)
        for parameter in command.params:
            for option in (text for text in parameter.opts if text.startswith("--")):
                assert f"`{option}`" in section.group(1), f"{option} of lab {name} is not documented"
    laboratory = (PAGE.parent / "laboratory.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in laboratory for name in EXPERIMENTS)


def test_help_is_there() -> None:
    assert "lab" in getattr(typer.main.get_command(app), "commands")  # noqa: B009 - not in the stubs
