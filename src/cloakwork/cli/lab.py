"""`cloakwork lab`."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from cloakwork.cli.output import as_json, bars, note, say, table
from cloakwork.lab import EXPERIMENTS, Result, find
from cloakwork.lab.report import PAGE, write_report
from cloakwork.lab.runs import run_all

ALL = "all"


def run_list(*, json: bool) -> None:
    """Print the names of all experiments and what they show."""
    if json:
        as_json({"experiments": [{"name": one.name, "title": one.title} for one in EXPERIMENTS.values()]})
    else:
        width = max(len(name) for name in EXPERIMENTS)
        say("\n".join(f"{one.name:<{width}}  {one.title}" for one in EXPERIMENTS.values()))


def run_lab(name: str, *, quick: bool, out: Path | None, seed: int, jobs: int, json: bool) -> None:
    """Run one experiment or all, print what they found, and keep it in a folder."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory()))
        show = stack.enter_context(bars())
        records = []
        for record in run_all(chosen, folder, quick=quick, seed=seed, jobs=jobs, progress=show):
            records.append(record)
            note(f"{record.result.name}: {record.result.title}{' (quick)' if quick else ''}, {record.seconds:.0f} s")
    order = [one.name for one in chosen]
    records.sort(key=lambda record: order.index(record.result.name))
    if json:
        as_json({"results": [record.result.to_json() for record in records]})
    else:
        for record in records:
            _print(record.result)
    if out is not None:
        note(f"the results and their pictures are in {out}")


def run_report(folder: Path, *, docs: Path) -> None:
    """Write the page of results from a folder with all of them."""
    write_report(folder, docs)
    note(f"wrote {docs / PAGE}, and pictures and numbers beside it")


def _print(result: Result) -> None:
    for one in result.tables():
        table(one.title, one.columns, one.rows)
    if result.quick:
        say("(A quick run: it shows that the experiment works. Its numbers are rough.)\n")
