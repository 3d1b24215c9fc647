"""The page of results: complete, of one run, and never at the cost of an old one."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.errors import InputError
from papers import Agreement, Claim, Finding, Result, report
from papers.store import Record, read
from tests.papers.conftest import Cup
from tests.papers.kit import RECORDING, Dice, names, run_here


def silent(_done: int, _total: int) -> None:
    """Report progress to no one."""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


@dataclass(frozen=True)
class Claimed(Dice):
    def claims(self) -> tuple[Claim, ...]:
        verdicts = (Agreement.WRONG, Agreement.AGREES, Agreement.WRONG)
        return tuple(
            Claim(f"throw {k} shows | six", "Some paper, Figure 1", str(eyes), verdicts[k])
            for k, eyes in enumerate(self.thrown)
        )

    def paragraphs(self) -> tuple[str, ...]:
        return (f"{len(self.thrown)} throws.",)


def recorded(name: str, finding: Finding, data: dict[str, str] | None = None) -> Record:
    result = Result(name, "What dice show", False, 7, finding)
    return Record(result, (1.0,), "", {"numpy": "2.4", "scipy": "1.17"}, data or {}, 2.0)


@pytest.fixture
def two(cup: Cup, register: Callable[..., None]) -> Cup:
    """Dice and cards, both cheap."""
    register(cup.experiment, replace(cup.experiment, name="cards", data=()))
    return cup


@pytest.fixture(scope="module")
def first_lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs a full run leaves it."""
    return tmp_path_factory.mktemp("lab") / "first"


@pytest.fixture
def lab(two: Cup, first_lab: Path, tmp_path: Path) -> Path:
    """A folder with a full run."""
    if not first_lab.exists():
        run_here(first_lab, two.experiment, replace(two.experiment, name="cards", data=()))
    return shutil.copytree(first_lab, tmp_path / "lab")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a report of old."""
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "gone.png").write_text("old")
    (tmp_path / "docs" / "results.md").write_text("old")
    (tmp_path / "docs" / "errata.md").write_text("old")
    return tmp_path / "docs"


def test_the_page_says_what_was_found_and_another_one_what_is_wrong(cup: Cup) -> None:
    records = [recorded("dice", Claimed((3, 6)))]
    text = report.page(records)
    assert "2 throws." in text
    assert "Claims of the papers: agrees: 1; wrong as printed: 1." in text
    assert "![What dice show](results/dice.png)" in text
    assert "Some paper, Figure 1" in text.split("## dice")[1]
    assert "**Missed:**" not in text
    assert "| Some paper, Figure 1 | throw 0 shows \\| six | 3 | dice |" in report.errata_page(records)


def test_a_report_is_made_of_a_folder_and_leaves_nothing_old(lab: Path, docs: Path) -> None:
    seen: list[tuple[int, int]] = []
    before = contents(lab)
    report.write_report(lab, docs, progress=lambda *said: seen.append(said))
    assert names(docs) == ["errata.md", "results", "results.md"]
    assert names(docs / "results") == ["cards.json", "cards.png", "dice.json", "dice.png"]
    assert contents(docs / "results") == contents(lab) == before
    stored = [read(name, docs / "results") for name in ("dice", "cards")]
    assert (docs / "results.md").read_text(encoding="utf-8") == report.page(stored)
    assert (docs / "errata.md").read_text(encoding="utf-8") == report.errata_page(stored)
    assert seen == [(1, 2), (2, 2)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"quick": True}, "quick"),
    ({"seed": 2, "signature": "2"}, "seed other than 1"),
    ({"signature": "7"}, "stale"),
    ({"signature": ""}, "stale"),
    ({"experiment": "dice"}, "missing or unreadable"),
    ({"finding": {}}, "missing or unreadable"),
]


@pytest.mark.parametrize(("values", "problem"), REFUSED)
def test_a_folder_that_is_not_one_valid_full_run_is_refused(
    values: dict[str, Any], problem: str, lab: Path, docs: Path
) -> None:
    change(lab / "cards.json", **values)
    before = contents(docs)
    with pytest.raises(InputError) as refused:
        report.write_report(lab, docs, progress=silent)
    [(found, (name,))] = problems_of(refused.value).items()
    assert found == problem
    assert name.startswith("cards")
    assert f"`python -m papers run all --out {lab}`" in str(refused.value)
    assert contents(docs) == before


def problems_of(refused: InputError) -> dict[str, list[str]]:
    problems = refused.values["problems"]
    assert isinstance(problems, dict)
    return problems


def test_results_are_not_replaced_by_their_own_report(two: Cup, tmp_path: Path) -> None:
    for source in (tmp_path / "results", tmp_path / "results" / "full"):
        run_here(source, two.experiment, replace(two.experiment, name="cards", data=()))
        before = contents(tmp_path)
        with pytest.raises(InputError, match="results is replaced"):
            report.write_report(source, tmp_path / "results" / "..", progress=silent)
        assert contents(tmp_path) == before


def test_what_no_report_wrote_is_not_replaced(lab: Path, docs: Path) -> None:
    (docs / "results" / "notes.txt").write_text("mine")
    before = contents(docs)
    with pytest.raises(InputError, match=r"notes\.txt"):
        report.write_report(lab, docs, progress=silent)
    assert contents(docs) == before


def test_a_report_that_fails_half_way_changes_nothing(lab: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(docs)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.write_report(lab, docs, progress=stop)
    assert contents(docs) == before
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == "results" and path.parent != docs:
            raise PermissionError
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        report.write_report(lab, docs, progress=silent)
    assert contents(docs) == before


def test_a_result_without_its_recording_is_on_the_page_as_such(lab: Path, docs: Path) -> None:
    (record, _) = report.write_report(lab, docs, progress=silent)
    assert record.lacking == (RECORDING.name,)
    assert f"| dice | {RECORDING} | missing |" in (docs / "results.md").read_text(encoding="utf-8")
