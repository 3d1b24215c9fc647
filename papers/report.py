"""Writes the page of results, entirely from the results themselves."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cloakwork.errors import InputError
from papers.experiment import Progress
from papers.experiments import EXPERIMENTS
from papers.result import Agreement, Claim, Table
from papers.store import MISSING, Record, read_run, write

PAGE, FOLDER = "results.md", "results"
ERRATA = "errata"  # its claims are in tables of its own
_SUFFIXES = {".json", ".png"}
_WIDE = 24  # characters; cells with more are sentences and are not aligned at the right
_HEAD = """# Results

`make lab` writes this page: every number, table, picture and verdict comes from one run, and the JSON files beside the
pictures hold all of it. A test repeats each experiment in a small size with another seed and compares the numbers.

A number after ± is one standard error; bars in pictures are two standard errors. [The
laboratory](laboratory.md#terms) explains the terms, [References](references.md) lists the papers. Recorded people by
their number and by epsilon, over ten seeds, and the sequences that no fit has seen are [there
too](laboratory.md#recordings).
"""


def write_report(source: Path, docs: Path, *, progress: Progress) -> tuple[Record, ...]:
    """Write results.md and the folder results/ into `docs`, from the results of one full run in `source`.

    Repeats the probe of each result and refuses stale ones. Draws the pictures from the numbers, and replaces an old
    report only when the new one is complete.
    """
    target = docs / FOLDER
    _refuse_target(source, target)
    records = read_run(tuple(EXPERIMENTS), source, progress)
    docs.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=docs, prefix=f".{FOLDER}-") as name:
        new = Path(name)
        (new / FOLDER).mkdir()
        for record in records:
            write(record, new / FOLDER)
        (new / PAGE).write_text(page(records), encoding="utf-8")
        _swap(new / FOLDER, target, aside=new / "old")
        (new / PAGE).replace(docs / PAGE)
    return records


def _refuse_target(source: Path, target: Path) -> None:
    """Refuse to replace the results that are read, and anything that is not a report."""
    if source.resolve().is_relative_to(target.resolve()):
        raise InputError(
            f"{target} is replaced, so {source} cannot be read from it: keep results in another folder.",
            folder=str(source),
        )
    others = sorted(path.name for path in target.iterdir() if path.suffix not in _SUFFIXES) if target.is_dir() else []
    if others or (target.exists() and not target.is_dir()):
        what = f"has {', '.join(others)}" if others else "is a file"
        raise InputError(f"{target} {what}, which no report wrote: give another folder.", folder=str(target))


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
    """Return the whole page."""
    sections = [_section(record) for record in records]
    return "\n".join([_HEAD, _contents(records), _verdicts(records), *sections, _origin(records)])


def _contents(records: Sequence[Record]) -> str:
    rows = [(f"[{one.result.name}](#{one.result.name})", one.result.title, _shows(one) or "-") for one in records]
    return _markdown(Table("", ("experiment", "shows", "repeats"), tuple(rows)))


def _shows(record: Record) -> str:
    return EXPERIMENTS[record.result.name].shows


def _verdicts(records: Sequence[Record]) -> str:
    claims = [claim for one in records if one.result.name != ERRATA for claim in one.result.finding.claims()]
    errata = [claim for one in records if one.result.name == ERRATA for claim in one.result.finding.claims()]
    counts = f"{len(claims)} claims. {_count(claims)}."
    if errata:
        counts += f" The [{ERRATA}](#{ERRATA}) are {len(errata)} more, in tables of their own. {_count(errata)}."
    rows = tuple((claim.text, f"**{claim.verdict}**", claim.found, claim.source) for claim in claims)
    table = _markdown(Table("", ("claim", "verdict", "found", "source"), rows))
    return f"\n## Claims of the papers\n\n{counts}\n\n{table}"


def _count(claims: Iterable[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    return "; ".join(f"{verdict}: {counts[verdict]}" for verdict in Agreement if counts[verdict]).capitalize()


def _section(record: Record) -> str:
    result, shows = record.result, _shows(record)
    lines = [
        f"\n## {result.name}\n",
        f"{result.title}. {f'Repeats {shows}. ' if shows else ''}Run it again with "
        f"`python -m papers run {result.name} --seed {result.seed}`.\n",
        *(f"{paragraph}\n" for paragraph in result.finding.paragraphs()),
        f"![{result.title}]({FOLDER}/{result.name}.png)\n",
    ]
    for table in result.tables():
        if table.columns != ("claim", "source", "found", "verdict"):
            lines += [f"{table.title}:\n", _markdown(table)]
    return "\n".join(lines)


def _origin(records: Sequence[Record]) -> str:
    first = records[0]
    libraries = ", ".join(f"{name} {version}" for name, version in first.libraries.items())
    lines = [
        "\n## Origin of this page\n",
        f"One full run with seed {first.result.seed} and {libraries}.\n",
    ]
    data = [(one.result.name, name, digest) for one in records for name, digest in one.data.items()]
    if data:
        rows = tuple((used, name, "missing" if digest == MISSING else f"`{digest}`") for used, name, digest in data)
        lines.append(_markdown(Table("", ("experiment", "recording", "SHA-256"), rows)))
    return "\n".join(lines)


def _markdown(table: Table) -> str:
    columns = list(zip(*table.rows, strict=True))
    numbers = [bool(place) and max(map(len, cells)) <= _WIDE for place, cells in enumerate(columns)]
    rows = [table.columns, tuple("---:" if right else "---" for right in numbers), *table.rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
