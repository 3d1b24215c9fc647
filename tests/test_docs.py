"""Documentation that runs: README and pages, commands and keys."""

import re
import runpy
import tomllib
from pathlib import Path

import matplotlib as mpl
import pytest
import typer.main

from cloakwork.cli.app import app
from cloakwork.site import parse_site, schema

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, f"{page.name}", "exec"), names)  # noqa: S102 - our own documentation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_site_files_on_a_page_load(page: Path) -> None:
    for block in blocks(page, "toml"):
        if {"name", "physics", "privacy"} <= set(tomllib.loads(block)):
            parse_site(block, name=page.name)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example))
    assert len(capsys.readouterr().out) > 100


def test_the_readme_has_the_contract_word_for_word() -> None:
    assert CONTRACT in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_command_and_option_is_documented() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    for name, command in getattr(group, "commands").items():  # noqa: B009 - not in the stubs
        section = re.search(rf"^## cloakwork {name}$(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
        assert section is not None, f"no section for {name}"
        for each in (command, *getattr(command, "commands", {}).values()):
            for option in (text for parameter in each.params for text in parameter.opts if text.startswith("--")):
                assert option in section.group(1), f"{option} of {name} {each.name} is not documented"


def test_each_key_of_a_site_file_is_documented() -> None:
    page = (ROOT / "docs" / "site-files.md").read_text(encoding="utf-8")
    tables = [value for value in vars(schema).values() if isinstance(value, type) and hasattr(value, "model_fields")]
    for table in tables:
        for key in getattr(table, "model_fields"):  # noqa: B009 - tables are pydantic models
            assert f"`{key}`" in page or f"`[{key}]`" in page or f"`[[{key}]]`" in page, f"{table.__name__}.{key}"


def test_contributing_names_the_targets() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in ("make test", "make check", "make demo", "make bench", "make docs"):
        assert target in text


CONTRACT = """\
import cloakwork as cw

line = cw.HeatLine(n=100, m=50, T=0.05)                    # physics: 100 places, 50 sensors
cloak = cw.Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01)  # hide any move of up to 0.01
readings = line.apply(cw.sources(line, [0.24, 0.76]))      # two unit sources
noisy = cloak.release(readings)                            # what the sensors send
found = cw.recover(noisy, cloak)                           # what the analyst learns
print(found.sources, cw.emd(found.map, cw.sources(line, [0.24, 0.76]), line.space))
"""
