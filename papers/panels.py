"""Figures with a panel for each parameter that varies, for a source at 0.5 as in the papers and anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray
from cloakwork.recovery import BasisPursuit, Estimator, PointSources
from papers.calibration import Calibration, PapersPursuit
from papers.drawing import greek, legend_below
from papers.experiment import Run, stream
from papers.result import Claim, Finding
from papers.rows import Mean, Row, pick
from papers.statistics import judge_upper
from papers.sweeps import LEGEND, bound_slope, draw_sweep, of, run_sweep, slope
from papers.trials import PAPERS_TRIALS, PLACES, Method, Place, Setting, try_with

TRIALS = {Method.PAPERS: 2000, Method.PURSUIT: 2000, Method.POSTERIOR: 300}
QUICK_TRIALS = {Method.PAPERS: 700, Method.PURSUIT: 700, Method.POSTERIOR: 25}
PROBE_TRIALS = {Method.PAPERS: 20, Method.PURSUIT: 20, Method.POSTERIOR: 4}


class Way(StrEnum):
    """A way of recovery, whatever the noise."""

    PAPERS = "basis pursuit, papers' radius"
    PURSUIT = "basis pursuit, calibrated radius"
    TOLD = "posterior, strength known"
    FREE = "posterior, strength unknown"

    def estimator(self, most: int) -> Estimator:
        made: dict[Way, Callable[[], Estimator]] = {
            Way.PAPERS: PapersPursuit,
            Way.PURSUIT: BasisPursuit,
            Way.TOLD: lambda: PointSources(1.0, max_sources=most),
            Way.FREE: lambda: PointSources((0.0, 1.0), max_sources=most),
        }
        return made[self]()


FRAMES = {Way.PAPERS: 2000, Way.PURSUIT: 2000, Way.TOLD: 2000, Way.FREE: 150}
QUICK_FRAMES = {Way.PAPERS: 700, Way.PURSUIT: 700, Way.TOLD: 100, Way.FREE: 2}
PROBE_FRAMES = {Way.PAPERS: 20, Way.PURSUIT: 20, Way.TOLD: 8, Way.FREE: 2}


def run_cells(run: Run, setting: Setting, key: tuple[int, ...]) -> Row:
    """Try every calibration of the noise with every way of recovery, on the same frames.

    Three ratios of mean errors: `gain` is the papers' noise and recovery over the exact noise and the posterior with
    known strength; `noise` is the part of it that remains with the same posterior on both sides; `untold` is what not
    knowing the strength costs the posterior, which is slow then and gets the exact noise only.
    """
    frames = run.choose(FRAMES, QUICK_FRAMES, PROBE_FRAMES)
    noises = [Calibration.EXACT] if setting.sigma is not None else [Calibration.EXACT, Calibration.PAPER]
    truth = setting.truth(max(frames.values()), stream(*key, PLACES))
    errors: dict[tuple[Way, Calibration], FloatArray] = {}
    cells = []
    for noise in noises:
        for way in Way if noise is Calibration.EXACT else (Way.PAPERS, Way.PURSUIT, Way.TOLD):
            with threadpool_limits(1, user_api="blas"):
                trial = try_with(setting, noise, way.estimator(setting.most), truth[: frames[way]], key)
            errors[way, noise] = trial.distances.emd
            emd = Mean.of(trial.distances.emd)
            cells.append(Row(noise=noise, way=way, sigma=trial.sigma, trials=frames[way], emd=emd))
    ours = errors[Way.TOLD, Calibration.EXACT]
    return Row(
        setting=Row(**asdict(setting)),
        cells=tuple(cells),
        gain=Mean.ratio(errors[Way.PAPERS, noises[-1]], ours),
        noise=Mean.ratio(errors[Way.TOLD, noises[-1]], ours),
        untold=Mean.ratio(errors[Way.FREE, Calibration.EXACT], ours),
    )


@dataclass(frozen=True)
class Axis:
    """A parameter that varies in a panel, as it is called in `Setting`, and where; the other parameters are `fixed`."""

    name: str
    values: tuple[float, ...]
    quick_values: tuple[float, ...]
    fixed: Setting

    def setting(self, x: float, place: Place = Place.MIDDLE) -> Setting:
        value = int(x) if self.name in {"n", "m"} else x
        changes: Any = {self.name: value, "at": place.at}
        return replace(self.fixed, **changes)


class Panels(Finding):
    """A sweep for each parameter, for a source in the middle and anywhere; `cells` separates noise from recovery."""

    size = (12.0, 6.8)
    axes: Sequence[Axis]

    def points(self, place: Place, name: str, low: float = 0.0, high: float = float("inf")) -> list[Row]:
        """The points of one panel, or those between two values."""
        sweep = pick(self.middle if place is Place.MIDDLE else self.anywhere, name=name)
        return [point for point in sweep.points if low <= point.x <= high]

    def rate(
        self, text: str, source: str, stretch: tuple[str, float, float], claimed: float, *, growing: bool = True
    ) -> Claim:
        """Judge a printed rate of the papers' method as they tried it, with the source at 0.5.

        `stretch` is the panel, and the values between which exponents are fitted; beyond, errors are as large as the
        line allows. The claim mentions the verdict for a source anywhere if it differs.
        """
        both = [self.points(place, *stretch) for place in Place]
        middle, anywhere = (slope(points, Method.PAPERS) for points in both)
        found = (
            f"exponent {middle:+.2f} for the papers' method at 0.5; anywhere {anywhere:+.2f}, posterior "
            f"{slope(both[1], Method.POSTERIOR):+.2f}, Cramer-Rao bound {bound_slope(both[1]):+.2f}"
        )
        verdict, elsewhere = (judge_upper(one, claimed, growing=growing) for one in (middle, anywhere))
        if elsewhere is not verdict:
            found += f"; anywhere the verdict is: {elsewhere}"
        return Claim(text, source, found, verdict)

    def how_to_read(self) -> str:
        point = self.middle[0].points[0]
        frames, ours = (of(point, method).trials for method in (Method.PAPERS, Method.POSTERIOR))
        return (
            "Upper row: the papers' figure, with the source always at 0.5. Lower row: the source at a random place. "
            f"The shaded band contains 95 % of the means of {PAPERS_TRIALS} trials, as many as the papers took; here "
            f"each point has {frames:,} frames for basis pursuit and {ours:,} for the posterior. An empty map counts "
            "as the uniform map. The posterior knows that the source has strength 1; basis pursuit does not."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(len(Place), len(self.axes), squeeze=False)
        for row, place in zip(panels, Place, strict=True):
            for letter, axes, axis in zip("abcd", row, self.axes, strict=True):
                draw_sweep(axes, self.points(place, axis.name))
                axes.set_xlabel(greek(axis.name))
                if place is Place.MIDDLE:
                    others = axis.setting(axis.values[0]).describe(axis.name)
                    axes.set_title(f"{letter})  {greek(others)}", fontsize=9)
            row[0].set_ylabel(f"EMD error, {place}")
        legend_below(figure, panels.ravel(), first=LEGEND)


def run_panels(run: Run, axes: Sequence[Axis]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Run the sweeps of both rows; a probe takes the first two values of each axis that a quick run has."""
    panels = [(place, axis) for place in Place for axis in axes]
    trials = run.choose(TRIALS, QUICK_TRIALS, PROBE_TRIALS)
    sweeps = []
    for number, (place, axis) in enumerate(panels):  # the cells take as long as two panels
        values = run.choose(axis.values, axis.quick_values, axis.quick_values[:2])
        settings = {x: axis.setting(x, place) for x in values}
        sweeps.append(run_sweep(axis.name, settings, trials, (run.seed, number)))
    return tuple(sweeps[: len(axes)]), tuple(sweeps[len(axes) :])
