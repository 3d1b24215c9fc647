"""An experiment: a name, a title, and a function that makes a finding from a size and a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar, final

import numpy as np

from cloakwork.errors import InputError
from papers.result import Finding, Result
from papers.rows import numbers_in

T = TypeVar("T")


class Size(Enum):
    """How much work a run does.

    A quick run shows that an experiment works and has rough numbers. A probe is smaller still: its numbers are stored
    with each result, and repeating it shows whether the code still behaves as it did.
    """

    FULL = "full"
    QUICK = "quick"
    PROBE = "probe"


@final
@dataclass(frozen=True)
class Run:
    """The size and the seed of one run."""

    seed: int = 1
    size: Size = Size.FULL

    def choose(self, full: T, quick: T, probe: T) -> T:
        """Return the value for this run's size.

        >>> Run(size=Size.QUICK).choose(1000, 100, 10)
        100
        """
        return {Size.FULL: full, Size.QUICK: quick, Size.PROBE: probe}[self.size]


@final
@dataclass(frozen=True)
class Experiment:
    """A named experiment.

    Parameters
    ----------
    name
        The name that people type.
    title
        One line that says what it shows.
    finding
        The class of its finding, needed to read results back.
    work
        The experiment itself. The same seed gives the same finding, except for times.
    shows
        The figures and tables of the papers that it repeats, with "; " between them.
    minutes
        Approximate time of a full run on one core. Long experiments start first.
    data
        The recordings that it uses, as `data_file` takes them.
    """

    name: str
    title: str
    finding: type[Finding]
    work: Callable[[Run], Finding]
    shows: str = ""
    minutes: float = 0.1
    data: tuple[Path, ...] = ()

    def run(self, *, quick: bool = False, seed: int = 1) -> Result:
        """Run the experiment."""
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed={seed!r}: give a whole number, 0 or above.", seed=seed)
        finding = self.work(Run(seed, Size.QUICK if quick else Size.FULL))
        return Result(self.name, self.title, quick, seed, finding)

    def probe(self, seed: int) -> Mapping[str, float]:
        """Run the probe and return all numbers that it finds, by name."""
        return dict(numbers_in(self.work(Run(seed, Size.PROBE))))


def stream(seed: int, *keys: int) -> np.random.Generator:
    """Return independent random numbers for one part of an experiment.

    >>> len({stream(1).random(), stream(1, 0).random(), stream(1, 0, 0).random()})
    3
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=keys))
