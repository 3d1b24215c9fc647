"""Figures of two rows of panels: the source in the middle as in the papers, and anywhere; an axis a panel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from matplotlib.figure import Figure

from papers.cells import Cells
from papers.curves import draw_panels
from papers.experiment import Progress, part
from papers.rates import judged
from papers.result import Claim, Finding, Table
from papers.sweeps import Sweep, run_sweep
from papers.trials import PAPERS_TRIALS, Method, Place, Setting

TRIALS = {Method.PAPERS: 2000, Method.PURSUIT: 2000, Method.POSTERIOR: 300}
QUICK_TRIALS = TRIALS | {Method.POSTERIOR: 100}


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

    def setting(self, x: float, place: Place) -> Setting:
        """The caption's values, but for this one."""
        ...


def fixed(axis: Axis) -> str:
    """The values of the others."""
    return axis.setting(axis.values[0], Place.MIDDLE).words(str(axis))


@dataclass(frozen=True)
class Panels(Finding):
    """One sweep for each axis, with the source in the middle and anywhere; `cells` tells noise and recovery apart."""

    size: ClassVar[tuple[float, float]] = (12.0, 6.8)
    axes: ClassVar[Iterable[Axis]]
    middle: tuple[Sweep, ...]
    anywhere: tuple[Sweep, ...]
    cells: Cells

    def of(self, place: Place, axis: Axis) -> Sweep:
        """One panel."""
        sweeps = self.middle if place is Place.MIDDLE else self.anywhere
        return next(sweep for sweep in sweeps if sweep.name == str(axis))

    def panel_tables(self) -> tuple[Table, ...]:
        """One for each panel, and that of the cells."""
        panels = [
            self.of(place, axis).table(f"Mean earth mover distance, {place}, {fixed(axis)}")
            for place in Place
            for axis in self.axes
        ]
        return (*panels, self.cells.table())

    def frames(self) -> str:
        """How many trials there are, and what they count, in words."""
        point = self.middle[0].points[0]
        frames, ours = (point.of(method).trials for method in (Method.PAPERS, Method.POSTERIOR))
        return (
            f"The shaded band holds 95 % of means of {PAPERS_TRIALS} trials, as many as the papers took; here there "
            f"are {frames:,} frames for R and {ours:,} for the posterior at each point. An empty map counts as the "
            "uniform one. The posterior is told that the source has strength 1, R is not."
        )

    def draw(self, figure: Figure) -> None:
        rows = {str(place): [self.of(place, axis) for axis in self.axes] for place in Place}
        draw_panels(figure, rows, [fixed(axis) for axis in self.axes])


def rate_claim(text: str, where: str, sweeps: Sequence[Sweep], claimed: float, *, growing: bool) -> Claim:
    """A claim on the error of the papers' method, judged as they tried it: the first sweep has the source at 0.5.

    The second has it anywhere; where that would be judged otherwise it is said.
    """
    slope, other = (sweep.slope(Method.PAPERS) for sweep in sweeps)
    found = (
        f"exponent {slope} of the papers' method at 0.5; anywhere {other}, posterior "
        f"{sweeps[1].slope(Method.POSTERIOR)}, limit {sweeps[1].limit_slope()}"
    )
    verdict, elsewhere = (judged(one, claimed, growing=growing) for one in (slope, other))
    if elsewhere is not verdict:
        found += f"; with the source anywhere the verdict would be: {elsewhere}"
    return Claim(text, where, found, verdict)


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
