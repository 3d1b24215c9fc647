"""What tests of the laboratory share: runs that are made once, dice, and what holds for every finding."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from papers import Experiment, Finding, Goal, Result, Run, Table, find, read_result
from papers.experiment import Size, stream
from papers.experiments.estimators import draws_of
from papers.panels import Way
from papers.runner import run_all
from papers.store import Record
from papers.trials import Method

RECORDING = Path("throws.csv")


def probed(name: str, seed: int = 1) -> Result:
    """The probe of an experiment, run once in a session."""
    return _probe(name, seed)


@cache  # behind a function with a default: the cache keeps f(name) and f(name, 1) apart
def _probe(name: str, seed: int) -> Result:
    experiment = find(name)
    return Result(name, experiment.title, True, seed, experiment.work(Run(seed, Size.PROBE)))


FEWER: dict[str, dict[str, object]] = {
    "papers.panels": {
        "QUICK_TRIALS": {Method.PAPERS: 2000, Method.PURSUIT: 2000, Method.POSTERIOR: 25},
        "QUICK_FRAMES": {Way.PAPERS: 2000, Way.PURSUIT: 2000, Way.TOLD: 100, Way.FREE: 2},
    },
    "papers.experiments.many_sources": {"QUICK_OURS": {1: 100, 2: 60, 4: 4}},
    "papers.experiments.estimators": {"QUICK": draws_of(1000, (60, 2), (80, 2))},
    "papers.experiments.movement": {"EVERY_MS": 15_000},
}
"""Smaller numbers of frames of slow methods: their means are compared with larger errors."""


def quick(name: str, seed: int = 2) -> Result:
    """A quick run of an experiment without recordings, slow methods with fewer frames, made once in a session."""
    return _quick_run(name, seed)


@cache
def _quick_run(name: str, seed: int) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLOAKWORK_DATA", raising=False)
        for module, constants in FEWER.items():
            for constant, value in constants.items():
                patch.setattr(import_module(module), constant, value)
        return find(name).run(quick=True, seed=seed)


def check_forms(result: Result, folder: Path) -> None:
    """It travels as JSON, draws itself, and has whole tables, paragraphs without gaps, and measures with own names."""
    text = json.dumps(result.to_json(), allow_nan=False)
    assert read_result(text) == result
    assert len(text) < 200_000
    path = folder / f"{result.name}.png"
    result.draw(path)
    assert path.stat().st_size > 20_000
    assert result.tables()
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)
    paragraphs = result.finding.paragraphs()
    assert paragraphs
    assert not any(gap in paragraph for paragraph in paragraphs for gap in ("nan", "None", "  "))
    names = [one.name for one in result.finding.measures()]
    assert len(set(names)) == len(names)
    assert all(math.isfinite(one.value) and one.error >= 0 for one in result.finding.measures())


def run_without(name: str, sizes: Mapping[str, object]) -> Result:
    """A quick run with other constants in its module, which finds no recordings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLOAKWORK_DATA", raising=False)
        return _run(name, sizes, patch)


def run_with(name: str, sizes: Mapping[str, object], write: Callable[[Path], None], folder: Path) -> Result:
    """The same with the recordings that `write` puts into a folder."""
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKWORK_DATA", str(folder))
        return _run(name, sizes, patch)


def _run(name: str, sizes: Mapping[str, object], patch: pytest.MonkeyPatch) -> Result:
    module = import_module(f"papers.experiments.{name}")
    for constant, value in sizes.items():
        patch.setattr(module, constant, value)
    return find(name).run(quick=True)


def check_measures(few: Result, many: Result) -> None:
    """Everything measured without recordings is measured with recordings too, and is the same."""
    known = {one.name: one.value for one in many.finding.measures()}
    found = {one.name: one.value for one in few.finding.measures()}
    assert found
    assert found == {name: known[name] for name in found}
    assert len(known) > len(found)


@dataclass(frozen=True)
class Dice(Finding):
    """A finding that takes no time."""

    thrown: tuple[int, ...]
    seconds: float = field(compare=False, default=0.0)

    def tables(self) -> tuple[Table, ...]:
        return (Table("Dice", ("throw", "eyes"), tuple((str(k), str(eyes)) for k, eyes in enumerate(self.thrown))),)

    def draw(self, figure: Figure) -> None:
        figure.add_subplot().plot(self.thrown)

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("a six", str(max(self.thrown)), max(self.thrown) == 6),)


def throw(run: Run) -> Dice:
    """Throw 20 dice, 2 in a quick run, 1 in a probe."""
    run.progress(1, 1)
    return Dice(tuple(stream(run.seed, 0).integers(1, 7, run.choose(20, 2, 1)).tolist()))


DICE = Experiment("dice", "What dice show", Dice, throw)


def names(folder: Path) -> list[str]:
    """The names of the files of a folder."""
    return sorted(path.name for path in folder.iterdir())


def run_here(folder: Path, *chosen: Experiment, seed: int = 1, quick: bool = False) -> list[Record]:
    """Run experiments one after the other."""
    return list(run_all(chosen, folder, quick=quick, seed=seed, jobs=1, progress=lambda *_: None))
