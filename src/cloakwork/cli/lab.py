"""`cloakwork lab`."""

import json as text
from pathlib import Path

from cloakwork.cli.output import as_json, bar, note, say, table, written
from cloakwork.lab import EXPERIMENTS, Experiment, Result, find

ALL = "all"
STEPS = 1000  # of a progress bar


def run_list(*, json: bool) -> None:
    """Print the names of all experiments and what they show."""
    if json:
        as_json({"experiments": [{"name": one.name, "title": one.title} for one in EXPERIMENTS.values()]})
    else:
        width = max(len(name) for name in EXPERIMENTS)
        say("\n".join(f"{one.name:<{width}}  {one.title}" for one in EXPERIMENTS.values()))


def run_lab(name: str, *, quick: bool, out: Path | None, seed: int, json: bool) -> None:
    """Run one experiment or all, print what they found, and write it to a folder."""
    chosen = tuple(EXPERIMENTS.values()) if name == ALL else (find(name),)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    results = []
    for experiment in chosen:
        result = _run(experiment, quick=quick, seed=seed)
        results.append(result.to_json())
        if not json:
            _print(result)
        if out is not None:
            _write(result, out)
    if json:
        as_json({"results": results})


def _run(experiment: Experiment, *, quick: bool, seed: int) -> Result:
    note(f"{experiment.name}: {experiment.title}{' (quick)' if quick else ''} ...")
    with bar(experiment.name, STEPS) as show:
        return experiment.run(quick=quick, seed=seed, progress=lambda done, total: show(STEPS * done // max(total, 1)))


def _print(result: Result) -> None:
    for one in result.tables():
        table(one.title, one.columns, one.rows)
    if result.quick:
        say("(A quick run: it shows that the experiment works. Its numbers are rough.)\n")


def _write(result: Result, folder: Path) -> None:
    picture = folder / f"{result.name}.png"
    with written(folder / f"{result.name}.json") as file:
        file.write(text.dumps(result.to_json(), indent=2, allow_nan=False) + "\n")
    result.draw(picture)
    note(f"wrote {folder / result.name}.json and {picture}")
