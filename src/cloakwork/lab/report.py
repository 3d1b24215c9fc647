"""The page of results: all of it made from the results themselves."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from cloakwork.lab.records import Record, read
from cloakwork.lab.registry import EXPERIMENTS
from cloakwork.lab.result import Table

PAGE, FOLDER = "results.md", "results"
_WIDE = 24  # cells of more are sentences, and not lined up at the right
_HEAD = """# Results

`make lab` writes this page: every number, table, picture and verdict on it comes from the run itself, and the JSON
files beside the pictures hold all of it. A test repeats each experiment in a small size, with another seed, and
compares.
"""


def write_report(source: Path, docs: Path) -> None:
    """Write results.md and the folder results/ into `docs`, from the results of a full run in `source`."""
    records = [read(name, source) for name in EXPERIMENTS]
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name in EXPERIMENTS:
        for kind in ("json", "png"):
            shutil.copyfile(source / f"{name}.{kind}", folder / f"{name}.{kind}")
    (docs / PAGE).write_text(page(records), encoding="utf-8")


def page(records: Sequence[Record]) -> str:
    """The whole page."""
    parts = [_HEAD, _contents(records), _verdicts(records), *(_section(record) for record in records)]
    return "\n".join(parts)


def _contents(records: Sequence[Record]) -> str:
    rows = [
        (f"[{one.result.name}](#{one.result.name})", one.result.title, "; ".join(_shows(one)) or "ours")
        for one in records
    ]
    return _markdown(Table("", ("experiment", "what it shows", "repeats"), tuple(rows)))


def _verdicts(records: Sequence[Record]) -> str:
    rows = [
        (claim.text, claim.source, claim.found, f"**{claim.verdict}**")
        for one in records
        for claim in one.result.finding.claims()
    ]
    title = "\n## What the papers say, and what was found\n"
    return title + "\n" + _markdown(Table("", ("claim", "where", "found", "verdict"), tuple(rows)))


def _section(record: Record) -> str:
    result = record.result
    size = "small run, rough numbers" if result.quick else "full run"
    repeats = "; ".join(_shows(record)) or "nothing, it is ours"
    lines = [
        f"\n## {result.name}\n",
        f"{result.title} ({size}, seed {result.seed}). Repeats: {repeats}.\n",
        *(f"{words}\n" for words in result.finding.words()),
        f"![{result.title}]({FOLDER}/{result.name}.png)\n",
    ]
    for table in result.tables():
        if table.title != "What the papers say":
            lines += [f"{table.title}:\n", _markdown(table)]
    return "\n".join(lines)


def _shows(record: Record) -> Iterable[str]:
    return EXPERIMENTS[record.result.name].shows


def _markdown(table: Table) -> str:
    columns = list(zip(*table.rows, strict=True))
    numbers = [bool(place) and max(map(len, cells)) <= _WIDE for place, cells in enumerate(columns)]
    rows = [table.columns, tuple("---:" if right else "---" for right in numbers), *table.rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
