"""What tests of the laboratory share: runs that are made once, dice, and what holds for every finding."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from papers.experiment import Experiment, Run, Size, stream
from papers.experiments import find, graphons, tracking
from papers.result import Finding, Goal, Result
from papers.rows import Mean, Row
from papers.runner import Done, run_all
from papers.store import as_json, parse

RECORDING = Path("throws.csv")


def probed(name: str, seed: int = 1) -> Result:
    """The probe of an experiment, run once in a session."""
    return _probe(name, seed)


@cache  # behind a function with a default: the cache keeps f(name) and f(name, 1) apart
def _probe(name: str, seed: int) -> Result:
    experiment = find(name)
    return Result(name, experiment.title, True, seed, experiment.work(Run(seed, Size.PROBE)))


def quick(name: str, seed: int = 2) -> Result:
    """A quick run of an experiment, once in a session."""
    return _quick_run(name, seed)


@cache
def _quick_run(name: str, seed: int) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        for slow in ("single_counted", "minute", "smoothed"):  # few runs have no errors of these; probes run them
            patch.setattr(tracking, slow, lambda readings, *_: [[] for _ in readings])
        return find(name).run(quick=True, seed=seed)


KEYS = (
    *("name", "kind", "method", "way", "noise", "calibration", "network", "game", "part", "where", "quantity"),
    *("place", "sized", "office", "room", "month", "assumed", "spread", "strengths", "tester", "along", "lemma"),
    *("epsilon", "readings", "tau", "n", "nodes", "x", "size", "count", "people", "inside"),
)
"""What a row is about: rows of two runs that have all this in common are compared."""
COUNTS, ENOUGH = ("trials", "frames", "draws", "pictures"), 20
"""How many trials a mean has, and how many its error has to come from."""


def means_in(value: object, name: str = "") -> Iterator[tuple[str, Mean]]:
    """Yield all means of a finding that come from enough trials, by names that do not depend on seed and size."""
    if isinstance(value, Mean):
        if value.error:
            yield name, value
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from means_in(item, name if isinstance(item, Row) else f"{name}[{number}]")
    elif isinstance(value, Row):
        own = {key: one for key, one in vars(value).items() if not isinstance(one, tuple)}
        about = ", ".join(str(one) for key, one in own.items() if key in KEYS)
        counts = [getattr(value, one, ENOUGH) for one in COUNTS]
        if not any(isinstance(one, int) and one < ENOUGH for one in counts):
            for part, item in vars(value).items():
                yield from means_in(item, f"{name}[{about}].{part}")


def check_forms(result: Result, folder: Path) -> None:
    """It travels as JSON, draws itself, and has tables and a text without gaps."""
    text = as_json(result)
    assert parse(text) == result
    assert len(text) < 200_000
    path = folder / f"{result.name}.png"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphons, "CURVE", graphons.CURVE[::14])  # each point of its lines takes long
        result.draw(path)
    assert path.stat().st_size > 20_000
    assert result.tables()
    text = result.finding.text()
    assert text
    assert not any(gap in text for gap in ("nan", "None", "  "))


class Dice(Finding):
    """A finding that takes no time."""

    def text(self) -> str:
        return "Some throws."

    def draw(self, figure: Figure) -> None:
        figure.add_subplot().plot(self.thrown)

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("a six", str(max(self.thrown)), max(self.thrown) == 6),)


def throw(run: Run) -> Dice:
    """Throw 20 dice, 2 in a quick run, 1 in a probe."""
    return Dice(thrown=tuple(stream(run.seed, 0).integers(1, 7, run.choose(20, 2, 1)).tolist()))


DICE = Experiment("dice", "What dice show", Dice, throw)


def names(folder: Path) -> list[str]:
    """The names of the files of a folder."""
    return sorted(path.name for path in folder.iterdir())


def run_here(folder: Path, *chosen: Experiment, seed: int = 1, quick: bool = False) -> list[Done]:
    """Run experiments one after the other."""
    return list(run_all(chosen, folder, quick=quick, seed=seed, jobs=1))
