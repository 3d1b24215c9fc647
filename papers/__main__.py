"""The laboratory on the command line: `python -m papers list | run | show`."""

from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.app import run_app
from cloakwork.cli.arguments import Scheduler
from cloakwork.cli.output import note, working
from cloakwork.cli.report import Table, show
from papers.experiments import EXPERIMENTS, find
from papers.recordings import LICENCES, titles
from papers.result import Result
from papers.runner import run_all
from papers.store import read

ALL = "all"
RESULTS = Path("docs/science/results")

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
    """Run one experiment or all. Valid results in --out are drawn again and not run again."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    with working(f"running {name}") as progress:
        for number, done in enumerate(run_all(chosen, out, quick=quick, seed=seed, jobs=jobs, scheduler=scheduler), 1):
            progress(number, len(chosen))
            result, took = done.result, "already there" if done.kept else f"{done.result.seconds:.0f} s"
            count = f" ({number} of {len(chosen)})" if len(chosen) > 1 else ""
            note(f"{result.name}{count}: {result.title}{' (quick)' if quick else ''}, {took}")
            if len(chosen) == 1:
                _print(result)
    note(f"the results and their pictures are in {out}")


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
    folder: Annotated[Path, typer.Option("--from", help="Folder with NAME.json.")] = RESULTS,
) -> None:
    """Print all numbers of a result that is there, and every claim of the papers with its verdict."""
    _print(read(find(name).name, folder))


if __name__ == "__main__":
    run_app(app)
