"""The laboratory on the command line: `python -m papers list | run | show | report`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TaskID

from cloakwork.cli.app import run_app
from cloakwork.cli.arguments import Scheduler
from cloakwork.cli.output import note, progress_bars
from cloakwork.cli.report import Table, show
from papers.experiments import EXPERIMENTS, find
from papers.recordings import LICENCES, titles
from papers.report import FOLDER, write_report
from papers.result import Result
from papers.runner import Done, run_all
from papers.store import read

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
def list_command() -> None:
    """List the experiments, how long they take on one core and what they repeat, and the recordings."""
    width = max(len(name) for name in EXPERIMENTS)
    for one in EXPERIMENTS.values():
        show(f"{one.name:<{width}}  {one.minutes:>4g} min  {one.title}")
        for shown in filter(None, one.shows.split("; ")):
            show(f"{'':<{width}}            {shown}")
    show("\nrecordings in papers/recordings:")
    for name, title in titles().items():
        show(f"{name:<{max(map(len, LICENCES))}}  {LICENCES[name]:<9}  {title}")


@app.command("run")
def run_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment, or `all`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for NAME.json and NAME.png.")] = Path("out/lab"),
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version with rough numbers.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Number of experiments to run in parallel.")] = 2,
    scheduler: Scheduler = None,
) -> None:
    """Run one experiment or all. Valid results in --out are not run again."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    with _bars() as show:
        found = run_all(chosen, out, quick=quick, seed=seed, jobs=jobs, progress=show, scheduler=scheduler)
        for number, done in enumerate(found, start=1):
            _note_done(done, f" ({number} of {len(chosen)})" if len(chosen) > 1 else "")
            if len(chosen) == 1:
                _print(done.result)
    note(f"the results and their pictures are in {out}")


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


def _note_done(done: Done, count: str) -> None:
    result = done.result
    took = "already there" if done.kept else f"{result.seconds:.0f} s"
    note(f"{result.name}{count}: {result.title}{' (quick)' if result.quick else ''}, {took}")


def _print(result: Result) -> None:
    show(f"{result.name}: {result.title}", "")
    show(result.finding.text(), "")
    for one in result.tables():
        show(one.title, Table.of(one.columns, one.rows), "")
    if result.quick:
        show("(A quick run shows that the experiment works; its numbers are rough.)", "")


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment.")],
    folder: Annotated[Path, typer.Option("--from", help="Folder with NAME.json.")] = PAGES / "results",
) -> None:
    """Print all numbers of a result that is there, and every claim of the papers with its verdict."""
    _print(read(find(name).name, folder))


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of `run all --out FOLDER`.")],
    docs: Annotated[Path, typer.Option("--docs", help="Folder that gets results/.")] = PAGES,
) -> None:
    """Keep the numbers and pictures of a full run of all experiments for the documentation."""
    with _bars() as show:
        write_report(folder, docs, progress=lambda done, total: show("report", done / total))
    note(f"wrote {docs / FOLDER}; `make docs` makes the pages of results and errata from it")


if __name__ == "__main__":
    run_app(app)
