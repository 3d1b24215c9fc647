"""The page of results: all of it made from the results themselves."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cloakwork.errors import InputError
from papers.experiment import Progress
from papers.origin import NO_DATA
from papers.records import Record, read_run, write
from papers.registry import EXPERIMENTS
from papers.result import Agreement, Claim, Table

PAGE, FOLDER = "results.md", "results"
ERRATA = "errata"  # has its claims in tables of its own
_KINDS = {".json", ".png"}
_WIDE = 24  # cells of more are sentences, and not lined up at the right
_HEAD = """# Results

`make lab` writes this page: every number, table, picture and verdict on it comes from one run, and the JSON files
beside the pictures hold all of it. A test repeats each experiment in a small size, with another seed, and compares.

A number after ± is one standard error; bars in pictures are two standard errors either way. [The
laboratory](laboratory.md#words-of-the-results) explains the words, [References](references.md) has the papers.
"""


def write_report(source: Path, docs: Path, *, progress: Progress) -> tuple[Record, ...]:
    """Write results.md and the folder results/ into `docs`, from the results of one full run in `source`.

    Pictures are drawn from the numbers. What is there is replaced when all of the new is written; `progress` is told
    (done, in all).
    """
    target = docs / FOLDER
    _refuse_target(source, target)
    records = read_run(tuple(EXPERIMENTS), source)
    docs.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=docs, prefix=f".{FOLDER}-") as name:
        part = Path(name)
        (part / FOLDER).mkdir()
        for done, record in enumerate(records, start=1):
            write(record, part / FOLDER)
            progress(done, len(records))
        (part / PAGE).write_text(page(records), encoding="utf-8")
        _swap(part / FOLDER, target, aside=part / "old")
        (part / PAGE).replace(docs / PAGE)
    return records


def _refuse_target(source: Path, target: Path) -> None:
    """Refuse to replace the results that are read, and anything that is not a report."""
    if source.resolve().is_relative_to(target.resolve()):
        raise InputError(f"{source} is read, and {target} is replaced: keep results elsewhere, or give another --docs.")
    others = sorted(path.name for path in target.iterdir() if path.suffix not in _KINDS) if target.is_dir() else []
    if others or (target.exists() and not target.is_dir()):
        what = f"has {', '.join(others)}" if others else "is a file"
        raise InputError(f"{target} {what}, which no report wrote, and would be replaced: give another --docs.")


def _swap(new: Path, target: Path, *, aside: Path) -> None:
    before = target.exists()
    if before:
        target.rename(aside)
    try:
        new.rename(target)
    except BaseException:
        if before:
            aside.rename(target)
        raise


def page(records: Sequence[Record]) -> str:
    """The whole page."""
    sections = [_section(record) for record in records]
    return "\n".join([_HEAD, _contents(records), _verdicts(records), *sections, _made(records)])


def _contents(records: Sequence[Record]) -> str:
    rows = [
        (f"[{one.result.name}](#{one.result.name})", one.result.title, "; ".join(_shows(one)) or "ours")
        for one in records
    ]
    return _markdown(Table("", ("experiment", "what it shows", "repeats"), tuple(rows)))


def _verdicts(records: Sequence[Record]) -> str:
    claims = [claim for one in records if one.result.name != ERRATA for claim in one.result.finding.claims()]
    rows = [(claim.text, f"**{claim.verdict}**", claim.found, claim.source) for claim in claims]
    counts = f"{len(claims)} claims. {_counted(claims)}."
    more = [claim for one in records if one.result.name == ERRATA for claim in one.result.finding.claims()]
    if more:
        counts += f" The [{ERRATA}](#{ERRATA}) are {len(more)} more, in tables of their own. {_counted(more)}."
    table = _markdown(Table("", ("claim", "verdict", "found", "where"), tuple(rows)))
    return f"\n## What the papers say, and what was found\n\n{counts}\n\n{table}"


def _counted(claims: Iterable[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    return "; ".join(f"{verdict}: {counts[verdict]}" for verdict in Agreement if counts[verdict]).capitalize()


def _section(record: Record) -> str:
    result = record.result
    repeats = "; ".join(_shows(record)) or "nothing, it is ours"
    lines = [
        f"\n## {result.name}\n",
        f"{result.title}. Repeats: {repeats}. Again: `python -m papers run {result.name} --seed {result.seed}`.\n",
        *(f"{words}\n" for words in result.finding.words()),
        f"![{result.title}]({FOLDER}/{result.name}.png)\n",
    ]
    for table in result.tables():
        if table.title != "What the papers say":
            lines += [f"{table.title}:\n", _markdown(table)]
    return "\n".join(lines)


def _made(records: Sequence[Record]) -> str:
    first = records[0]
    libraries = ", ".join(f"{name} {version}" for name, version in first.origin.libraries.items())
    lines = [
        "\n## How this page was made\n",
        f"One run at full size, seed {first.result.seed}, code with the fingerprint `{first.code}`, {libraries}.\n",
    ]
    data = [(one.result.name, name, digest) for one in records for name, digest in one.origin.data.items()]
    if data:
        rows = [(used, name, "was not there" if digest == NO_DATA else f"`{digest}`") for used, name, digest in data]
        lines.append(_markdown(Table("", ("experiment", "recording", "SHA-256"), tuple(rows))))
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
