"""An experiment: a name, a line that says what it shows, and a function that finds out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, final

import numpy as np

from cloakwork._checks import count
from cloakwork.errors import InputError
from papers.result import Finding, Result

Progress = Callable[[int, int], None]


class Work(Protocol):
    """What an experiment does: the same seed gives the same finding, but for times."""

    def __call__(self, *, quick: bool, seed: int, progress: Progress) -> Finding:
        """`quick` is a small version that shows that it works; `progress` is told (done, in all)."""


@final
@dataclass(frozen=True)
class Experiment:
    """A named experiment.

    Parameters
    ----------
    name
        What people type.
    title
        One line.
    finding
        The class of what it finds, for reading results back.
    work
        The experiment itself.
    shows
        The figures and tables of the papers that it repeats, such as "Gilbert and McMillan, Figure 2a".
    minutes
        How long a run at full size takes on one core, about: long ones are begun first.
    data
        The recordings that it uses where they are there, as `data_file` of `cloakwork.demo.recorded` takes them: with
        other data a result is another one.
    """

    name: str
    title: str
    finding: type[Finding]
    work: Work
    shows: tuple[str, ...] = ()
    minutes: float = 0.1
    data: tuple[Path, ...] = ()

    def run(self, *, quick: bool = False, seed: int = 1, progress: Progress | None = None) -> Result:
        """Do it; `progress` is told (done, in all) from time to time."""
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed={seed!r}: give a whole number, 0 or above.", seed=seed)
        finding = self.work(quick=quick, seed=seed, progress=progress or _silent)
        return Result(self.name, self.title, quick, seed, finding)


def _silent(done: int, total: int) -> None:
    """Tell nobody."""


def stream(seed: int, *keys: int) -> np.random.Generator:
    """Random numbers of their own for each part of an experiment, so that parts do not depend on each other.

    >>> len({stream(1).random(), stream(1, 0).random(), stream(1, 0, 0).random()})
    3
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=keys))


def part(progress: Progress, before: int, size: int, total: int) -> Progress:
    """Progress for one part of the work: `size` of `total`, after `before`.

    >>> part(print, 10, 20, 40)(1, 2)
    20 40
    """
    count("total", total)
    return lambda done, of: progress(before + size * done // max(of, 1), total)
