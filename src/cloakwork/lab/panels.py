"""Figures of two rows of panels: the source in the middle as in the papers, and anywhere; an axis a panel."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from matplotlib.figure import Figure

from cloakwork.lab.curves import draw_panels
from cloakwork.lab.experiment import Progress, part
from cloakwork.lab.result import Finding
from cloakwork.lab.sweeps import Sweep, run_sweep
from cloakwork.lab.trials import Method, Place, Setting

TRIALS = {Method.PAPERS: 2000, Method.PURSUIT: 2000, Method.POSTERIOR: 400}
QUICK_TRIALS = {Method.PAPERS: 300, Method.PURSUIT: 300, Method.POSTERIOR: 40}


class Axis(Protocol):
    """What is varied in a panel; as a string, its name."""

    @property
    def values(self) -> tuple[float, ...]:
        """Where it is measured."""
        ...

    @property
    def quick_values(self) -> tuple[float, ...]:
        """Where a small run measures it."""
        ...

    @property
    def fixed(self) -> str:
        """The values of the others."""
        ...

    def setting(self, x: float, place: Place) -> Setting:
        """The caption's values, but for this one."""
        ...


@dataclass(frozen=True)
class Panels(Finding):
    """One sweep for each axis, with the source in the middle and anywhere."""

    size: ClassVar[tuple[float, float]] = (12.0, 6.6)
    axes: ClassVar[Iterable[Axis]]
    middle: tuple[Sweep, ...]
    anywhere: tuple[Sweep, ...]

    def of(self, place: Place, axis: Axis) -> Sweep:
        """One panel."""
        sweeps = self.middle if place is Place.MIDDLE else self.anywhere
        return next(sweep for sweep in sweeps if sweep.name == str(axis))

    def draw(self, figure: Figure) -> None:
        rows = {str(place): [self.of(place, axis) for axis in self.axes] for place in Place}
        draw_panels(figure, rows, [axis.fixed for axis in self.axes])


def run_panels(
    axes: Iterable[Axis], *, quick: bool, seed: int, progress: Progress
) -> tuple[tuple[Sweep, ...], tuple[Sweep, ...]]:
    """The sweeps of both rows."""
    panels = [(place, axis) for place in Place for axis in axes]
    found: dict[Place, list[Sweep]] = {place: [] for place in Place}
    for number, (place, axis) in enumerate(panels):
        share = part(progress, 100 * number, 100, 100 * len(panels))
        settings = {x: axis.setting(x, place) for x in (axis.quick_values if quick else axis.values)}
        trials = QUICK_TRIALS if quick else TRIALS
        found[place].append(run_sweep(str(axis), settings, trials, (seed, number), share))
    return tuple(found[Place.MIDDLE]), tuple(found[Place.ANYWHERE])
