"""A laboratory with dice only, for tests of runs and of the page."""

from pathlib import Path

from papers import Experiment, records, registry, runs

RECORDING = Path("throws.csv")


def told(_name: str, _done: float) -> None:
    """Nobody listens."""


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def run(folder: Path, *chosen: Experiment, seed: int = 1, quick: bool = False) -> list[records.Record]:
    """Run experiments one after the other; if none are given, all of the registry."""
    what = chosen or tuple(registry.EXPERIMENTS.values())
    return list(runs.run_all(what, folder, quick=quick, seed=seed, jobs=1, progress=told))
