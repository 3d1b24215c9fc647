"""`python -m papers list | run | report`: the laboratory on the command line."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from cloakwork.cli.app import run_app
from cloakwork.cli.arguments import Json
from cloakwork.cli.output import as_json, bars, counted, note, say, table
from cloakwork.demo.recorded import needed
from papers import EXPERIMENTS, Experiment, Result, find
from papers.records import Record
from papers.report import PAGE, write_report
from papers.runs import run_all

ALL = "all"

app = typer.Typer(
    help="Repeat the experiments: every number with its seed, as a table, JSON and a picture.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def run_list(*, json: bool) -> None:
    """Print the names of all experiments, how long they take, what they show and what they repeat."""
    if json:
        keys = ("name", "title", "minutes", "shows")
        as_json({"experiments": [{key: getattr(one, key) for key in keys} for one in EXPERIMENTS.values()]})
        return
    width = max(len(name) for name in EXPERIMENTS)
    for one in EXPERIMENTS.values():
        say(f"{one.name:<{width}}  {one.minutes:>4g} min  {one.title}")
        for shown in one.shows:
            say(f"{'':<{width}}            {shown}")
    note("minutes: of a run at full size on one core, about")


def run_lab(name: str, *, quick: bool, out: Path | None, seed: int, jobs: int, json: bool) -> None:
    """Run one experiment or all, print what they found, and keep it in a folder."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    records: list[Record] = []
    with ExitStack() as stack:
        stack.enter_context(_said_when_stopped(records, chosen, out))
        folder = out or Path(stack.enter_context(TemporaryDirectory()))
        show = stack.enter_context(bars())
        for record in run_all(chosen, folder, quick=quick, seed=seed, jobs=jobs, progress=show):
            records.append(record)
            _note_done(record, len(records), len(chosen))
    order = [one.name for one in chosen]
    records.sort(key=lambda record: order.index(record.result.name))
    if json:
        as_json({"results": [record.result.to_json() for record in records]})
    else:
        for record in records:
            _print(record.result)
    note(f"the results and their pictures are in {out}" if out else "--out DIR keeps the numbers and the pictures")


@contextmanager
def _said_when_stopped(records: Sequence[Record], chosen: Sequence[Experiment], out: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if out is not None:
            done = f"{len(records)} of {counted(len(chosen), 'result')}"
            pieces = ", and pieces of more," if any(out.glob(".*.pieces")) else ""
            note(f"stopped: {done}{pieces} in {out}; the same command goes on")
        raise


def _note_done(record: Record, number: int, total: int) -> None:
    result = record.result
    count = f" ({number} of {total})" if total > 1 else ""
    took = "was there already" if record.kept else f"{record.seconds:.0f} s"
    note(f"{result.name}{count}: {result.title}{' (quick)' if result.quick else ''}, {took}")
    for missing in record.origin.lacking:
        note(f"{result.name} was run without a recording: {needed(Path(missing))}")


def run_report(folder: Path, *, docs: Path) -> None:
    """Write the page of results from a folder with all of them."""
    with bars() as show:
        records = write_report(folder, docs, progress=lambda done, total: show("pictures", done / total))
    for record in records:
        for missing in record.origin.lacking:
            note(f"{record.result.name} was run without the recording {missing}, and the page says so")
    note(f"wrote {docs / PAGE}, and pictures and numbers beside it")


def _print(result: Result) -> None:
    say(f"{result.name}: {result.title}\n")
    for words in result.finding.words():
        say(f"{words}\n")
    for one in result.tables():
        table(one.title, one.columns, one.rows)
    if result.quick:
        say("(A quick run: it shows that the experiment works. Its numbers are rough.)\n")


@app.command("list")
def list_command(json: Json = False) -> None:
    """Say which experiments there are."""
    run_list(json=json)


@app.command("run")
def run_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which experiment; `all` for all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, with rough numbers.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for NAME.json and NAME.png.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other draws.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Experiments at a time.")] = 2,
    json: Json = False,
) -> None:
    """Run one experiment, or all, and print what was found. What --out has already is not run again."""
    run_lab(name, quick=quick, out=out, seed=seed, jobs=jobs, json=json)


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `run all --out FOLDER` wrote.")],
    docs: Annotated[Path, typer.Option("--docs", help="Folder for results.md and results/.")] = Path("docs"),
) -> None:
    """Write the page of results, with its pictures, from a run of all experiments."""
    run_report(folder, docs=docs)


if __name__ == "__main__":
    run_app(app)
