"""The laboratory on the command line: `python -m papers list | run | show | report`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.progress import TaskID

from cloakwork.cli.app import run_app
from cloakwork.cli.arguments import Json, Scheduler
from cloakwork.cli.output import as_json, counted, note, progress_bars, say, table
from papers import EXPERIMENTS, Experiment, Result, find
from papers.recordings import missing_text
from papers.report import PAGE, write_report
from papers.runner import run_all
from papers.store import Record, read

ALL = "all"
PAGES = Path("docs/science")

app = typer.Typer(
    help="Repeat the experiments: every number with its seed, as a table, JSON and a picture.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("list")
def list_command(json: Json = False) -> None:
    """List the experiments, how long they take and what they repeat."""
    if json:
        keys = ("name", "title", "minutes", "shows")
        as_json({"experiments": [{key: getattr(one, key) for key in keys} for one in EXPERIMENTS.values()]})
        return
    width = max(len(name) for name in EXPERIMENTS)
    for one in EXPERIMENTS.values():
        say(f"{one.name:<{width}}  {one.minutes:>4g} min  {one.title}")
        for shown in filter(None, one.shows.split("; ")):
            say(f"{'':<{width}}            {shown}")
    note("minutes: approximate time of a full run on one core")


@app.command("run")
def run_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment, or `all`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version with rough numbers.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for NAME.json and NAME.png.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Number of experiments to run in parallel.")] = 2,
    scheduler: Scheduler = None,
    json: Json = False,
) -> None:
    """Run one experiment or all, and print the findings. Valid results in --out are not run again."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    records: list[Record] = []
    with ExitStack() as stack:
        stack.enter_context(_note_when_stopped(records, chosen, out))
        folder = out or Path(stack.enter_context(TemporaryDirectory()))
        show = stack.enter_context(_bars())
        found = run_all(chosen, folder, quick=quick, seed=seed, jobs=jobs, progress=show, scheduler=scheduler)
        for record in found:
            records.append(record)
            _note_done(record, len(records), len(chosen))
    order = [one.name for one in chosen]
    results = sorted((record.result for record in records), key=lambda result: order.index(result.name))
    if json:
        as_json({"results": [result.to_json() for result in results]})
    else:
        for result in results:
            _print(result)
    note(f"the results and their pictures are in {out}" if out else "add --out DIR to keep the numbers and pictures")


@contextmanager
def _bars() -> Iterator[Callable[[str, float], None]]:
    """A progress bar for each name, called with the share done from 0 to 1; it vanishes at 1."""
    with progress_bars() as progress:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: float) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=1.0)
            progress.update(tasks[name], completed=done, visible=done < 1)

        yield show


@contextmanager
def _note_when_stopped(records: Sequence[Record], chosen: Sequence[Experiment], out: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if out is not None:
            done = f"{len(records)} of {counted(len(chosen), 'result')}"
            parts = ", and parts of others," if any(out.glob(".*.pieces")) else ""
            note(f"stopped: {done}{parts} in {out}; run the same command to continue")
        raise


def _note_done(record: Record, number: int, total: int) -> None:
    result = record.result
    count = f" ({number} of {total})" if total > 1 else ""
    took = "already there" if record.kept else f"{record.seconds:.0f} s"
    note(f"{result.name}{count}: {result.title}{' (quick)' if result.quick else ''}, {took}")
    for missing in record.lacking:
        note(f"{result.name} ran without a recording: {missing_text(Path(missing))}")


def _print(result: Result) -> None:
    say(f"{result.name}: {result.title}\n")
    for paragraph in result.finding.paragraphs():
        say(f"{paragraph}\n")
    for one in result.tables():
        table(one.title, one.columns, one.rows)
    if result.quick:
        say("(A quick run shows that the experiment works; its numbers are rough.)\n")


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment.")],
    folder: Annotated[Path, typer.Option("--from", help="Folder with NAME.json.")] = PAGES / "results",
) -> None:
    """Print all tables of a result that is there, and every claim of the papers with its verdict."""
    _print(read(find(name).name, folder).result)


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of `run all --out FOLDER`.")],
    docs: Annotated[Path, typer.Option("--docs", help="Folder for results.md, errata.md and results/.")] = PAGES,
) -> None:
    """Write the pages of results and errata, with their pictures, from a full run of all experiments."""
    with _bars() as show:
        records = write_report(folder, docs, progress=lambda done, total: show("report", done / total))
    for record in records:
        for missing in record.lacking:
            note(f"{record.result.name} ran without the recording {missing}, and the page says so")
    note(f"wrote {docs / PAGE}, and pictures and numbers beside it")


if __name__ == "__main__":
    run_app(app)
