"""What tests of the laboratory share: runs that are made once, dice, and what holds for every finding."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from papers.experiment import Experiment, Run, Size, stream
from papers.experiments import find, graphons, recorded_warmth
from papers.experiments.estimators import draws_of
from papers.panels import Way
from papers.result import Finding, Goal, Result
from papers.rows import Mean, Row
from papers.runner import Done, run_all
from papers.store import as_json, parse
from papers.trials import Method

RECORDING = Path("throws.csv")


def probed(name: str, seed: int = 1) -> Result:
    """The probe of an experiment, run once in a session."""
    return _probe(name, seed)


@cache  # behind a function with a default: the cache keeps f(name) and f(name, 1) apart
def _probe(name: str, seed: int) -> Result:
    experiment = find(name)
    return Result(name, experiment.title, True, seed, experiment.work(Run(seed, Size.PROBE)))


_PANELS: dict[str, object] = {
    "papers.panels.QUICK_TRIALS": {Method.PAPERS: 700, Method.PURSUIT: 700, Method.POSTERIOR: 25},
    "papers.panels.QUICK_FRAMES": {Way.PAPERS: 700, Way.PURSUIT: 700, Way.TOLD: 100, Way.FREE: 2},
}
_UNMEASURED = ("single_counted", "minute", "smoothed")


def _unmeasured(readings: FloatArray, *_: object) -> list[list[int]]:
    """Marks of no one, for the methods of following people whose errors are no measures: probes run them."""
    return [[] for _ in readings]


SMALLER: dict[str, dict[str, object]] = {
    "communities": {
        "papers.experiments.communities.QUICK": {"figure": (500, 160), "named": (500, 80), "other": (20, 10)}
    },
    "convolution": {"papers.experiments.convolution.QUICK_TRIALS": 60},
    "estimators": {
        "papers.experiments.estimators.QUICK": draws_of(300, 60, 2),
        "papers.experiments.estimators.COUNTS": (1, 2),
    },
    "graph-table": {"papers.experiments.graph_table.QUICK_MATRICES": 300},
    "graphons": {
        "papers.experiments.graphons.SIZES": ((), (400,), (100, 200)),
        "papers.experiments.graphons.REPEATS": ((), (18, 2), (2, 2)),
    },
    "recorded-warmth": {"papers.experiments.recorded_warmth.QUICK": recorded_warmth.Sizes(0, 15, 100, 5, 1)},
    "many-sources": {
        "papers.experiments.many_sources.QUICK_FRAMES": 700,
        "papers.experiments.many_sources.QUICK_OURS": {1: 60, 2: 40, 4: 2},
        "papers.experiments.many_sources.QUICK_SENSOR_OURS": {1: 10, 2: 10},
    },
    "noisy-recovery": _PANELS,
    "private-recovery": _PANELS,
    "testers": {"papers.experiments.testers.QUICK": (3, 60, 1, 20), "papers.complexity.MAX_REPORTS": 5_000},
    "tracking": {
        "papers.experiments.tracking.QUICK": ((2,), 2, 4, 2, 33),
        **dict.fromkeys((f"papers.experiments.tracking.{name}" for name in _UNMEASURED), _unmeasured),
    },
    "typical": {"papers.experiments.typical.QUICK": (70, 3_000)},
}
"""Experiments whose quick runs take long: the sizes that tests replace, and by what."""


@contextmanager
def replaced(constants: Mapping[str, object]) -> Iterator[pytest.MonkeyPatch]:
    """Replace constants, named with their modules."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(name, value)
        yield patch


def quick(name: str, seed: int = 2) -> Result:
    """A quick run of an experiment, of a smaller size where it takes long; once in a session."""
    return _quick_run(name, seed)


@cache
def _quick_run(name: str, seed: int) -> Result:
    with replaced(SMALLER.get(name, {})):
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
    with replaced({"papers.experiments.graphons.CURVE": graphons.CURVE[::14]}):  # each point of its lines takes long
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
