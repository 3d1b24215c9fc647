"""README and the pages of the start from an empty folder: every block in its order, as printed."""

import csv
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.privacy.sampler import simulated_words
from tests.cli.conftest import Run, run, succeed  # noqa: F401 - fixtures
from tests.parts import needs
from tests.test_docs import ROOT, blocks

README, START = ROOT / "README.md", ROOT / "docs" / "start"
TUTORIAL, CONCEPTS = START / "tutorial.md", START / "concepts.md"


def follow(block: str, succeed: Run) -> None:  # noqa: F811 - the fixture, handed on
    """Run the commands of a block: ours in this process, others as they are."""
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["cloakwork"]:
            succeed(*words[1:], *(["--no-simulation"] if words[1] == "plan" else []))  # it takes a minute
        elif words:
            subprocess.run(words, check=True)


def test_the_readme_is_short_and_opens_with_a_picture_and_two_commands() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 500
    assert text.count("](") <= 13, "a picture and twelve links"
    [picture] = re.findall(r"^!\[[^]]{40,}\]\((\S+)\)$", text, flags=re.MULTILINE)
    assert (ROOT / picture).stat().st_size < 150_000
    first = blocks(README, "sh")[0]
    targets = re.findall(r"^make (\w+)", first, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    assert text.index(picture) < text.index(first)
    for target in targets:
        assert re.search(rf"^{target}: ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    needs("make")
    subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, check=True, capture_output=True)  # noqa: S607


def test_every_link_of_the_readme_leads_to_a_file_and_a_heading_in_it() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", README.read_text(encoding="utf-8"))
    local = [link.partition("#") for link in links if "://" not in link]
    assert len(local) > 10
    for file, _, heading in local:
        target = ROOT / file if file else README
        assert target.exists(), file
        titles = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE) if heading else []
        slugs = [re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles]
        assert not heading or heading in slugs, f"{file}#{heading}"


def test_the_readme_leads_from_an_empty_folder_to_a_map(
    succeed: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    _, commands = blocks(README, "sh")
    follow(commands, succeed)
    with (tmp_path / "found.csv").open(newline="") as file:
        last = [row for row in csv.DictReader(file) if float(row["weight"]) > 0][-1]
    assert float(last["probability"]) > 0.5
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("seed", range(4))
def test_the_example_of_the_concepts_finds_both_sources_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloakwork.privacy.cloak.private_words", simulated_words(np.random.default_rng(seed)))
    [code] = blocks(CONCEPTS, "python")
    said = StringIO()
    names: dict[str, object] = {}
    with redirect_stdout(said):
        exec(compile(code, "concepts.md", "exec"), names)  # noqa: S102 - our own documentation
    found = [float(place) for place in re.findall(r"at ([\d.]+), within", said.getvalue())]
    assert found == pytest.approx([0.24, 0.76], abs=0.12), "0.05 is usual, and 0.41 and 0.68 was once printed"
    assert isinstance(names["cloak"], cw.Cloak)


def test_the_tutorial_does_what_it_says(
    succeed: Run,  # noqa: F811
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    [site] = blocks(TUTORIAL, "toml")
    (tmp_path / "site.toml").write_text(site, encoding="utf-8")
    plan, *others = blocks(TUTORIAL, "sh")
    follow(plan, succeed)
    follow(others[0], succeed)
    with redirect_stdout(StringIO()) as said:
        exec(compile(blocks(TUTORIAL, "py")[0], "tutorial.md", "exec"), {})  # noqa: S102
    x, y, radius = map(float, re.findall(r"found at ([\d.]+) ([\d.]+) within ([\d.]+)", said.getvalue())[0])
    assert abs(x - 1.25) + abs(y - 2.25) <= 0.5
    assert radius <= 3.0
    follow(others[1], succeed)
    refused = run("recover", "site.toml", "readings.csv")
    printed = re.search(r"^cloakwork: (readings\.csv: .*)'\.\.\.'\.$", TUTORIAL.read_text("utf-8"), re.MULTILINE)
    assert printed is not None
    assert (refused.code, printed[1] in refused.err) == (2, True), refused.err
    follow(others[2], succeed)
    assert "the caretaker" in (tmp_path / "sheet.html").read_text(encoding="utf-8")
