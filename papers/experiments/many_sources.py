"""Many sources: whether more are easier to find, and how many sensors are enough."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from papers.drawing import greek, legend_below, log_axes, log_x, sources_text
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding, Goal, Measure
from papers.statistics import Mean
from papers.sweeps import (
    COLORS,
    GUESS,
    LEGEND,
    LIMIT,
    LINES,
    SCENES,
    SHAPES,
    Point,
    Sweep,
    draw_bounds,
    draw_methods,
    run_sweep,
)
from papers.trials import Method, Setting

FIRST = "Gilbert and McMillan, first version"
MANY, QUICK_MANY = (1, 2, 3, 4, 6, 8, 12, 20, 40), (1, 2, 4, 8, 20)  # sources
SENSORS, QUICK_SENSORS = (2, 3, 4, 5, 7, 10, 20, 50), (4, 10, 50)
MOST = 10  # sources that the posterior considers
# frames of the posterior by the number of sources: it is fast with few
OURS, QUICK_OURS = {1: 500, 2: 500, 3: 120, 4: 120, 6: 60, 8: 60}, {1: 300, 2: 300, 4: 40}
SENSOR_OURS, QUICK_SENSOR_OURS = {1: 100, 2: 100, 4: 80, 8: 80}, {1: 60, 2: 60}
FRAMES = QUICK_FRAMES = 2000  # of basis pursuit
SHOWN = 4  # sources in the text, as in the papers' caption
ENOUGH = 1.25  # times the error with the most sensors
CLOSE, FAR = 0.5, 1.0  # a share of the error of the uniform map, and a normalised l1 distance


@dataclass(frozen=True)
class Sensors:
    """The error in the number of sensors, for one number of sources."""

    count: int
    sweep: Sweep

    def enough(self, method: Method) -> int | None:
        """The least number of sensors from which on a method is close, and within 1.25 times its error with the most.

        Close is below half of the error of the uniform map. An excess within two standard errors does not count. None
        if no number is enough.
        """
        points = self.sweep.of(method)
        last = points[-1].of(method).emd
        least = None
        for point in reversed(points):
            here = point.of(method).emd
            above = here.value - ENOUGH * last.value > 2 * math.hypot(here.error, ENOUGH * last.error)
            if above or here.value >= CLOSE * point.guess:
                break
            least = int(point.x)
        return least


def over_guess(point: Point, method: Method = Method.PAPERS) -> float:
    """The error of a method over that of the uniform map."""
    return point.of(method).emd.value / point.guess


@dataclass(frozen=True)
class ManySources(Finding):
    """Errors in the number of sources at sigma = 0.1 and m = 10; and errors in the number of sensors at (10, 0.01)."""

    size: ClassVar[tuple[float, float]] = (12.0, 4.3)
    errors: Sweep
    sensors: tuple[Sensors, ...]

    @property
    def worst(self) -> Point:
        """The number of sources with the largest error of the papers' method."""
        return max(self.errors.points, key=lambda point: point.of(Method.PAPERS).emd.value)

    @property
    def lost(self) -> int | None:
        """The number of sources from which on the papers' method is worse than the uniform map, if any."""
        return next((int(point.x) for point in self.errors.points if over_guess(point) >= 1), None)

    def needed(self, method: Method) -> list[int | None]:
        return [one.enough(method) for one in self.sensors]

    def grows(self, method: Method) -> bool:
        """Whether the most sources need more sensors than the fewest: by more than one step of those tried."""
        steps = [len(SENSORS) if m is None else SENSORS.index(m) for m in self.needed(method)]
        return steps[-1] > steps[0] + 1

    def claims(self) -> tuple[Claim, ...]:
        return (self._two_norms(), self._falls(), self._easier(), self._no_more_sensors())

    def _two_norms(self) -> Claim:
        points = self.errors.points
        far = min(point.of(Method.PAPERS).l1.value for point in points)
        close = [f"{point.x:g}" for point in points if over_guess(point) < CLOSE]
        shares = [over_guess(point) for point in points]
        return Claim(
            "R is close in EMD and far in normalised l1",
            f"{FIRST}, Figure 5a",
            f"EMD is less than half of that of the uniform map with {', '.join(close) or 'no number of'} sources, of "
            f"{points[0].x:g} to {points[-1].x:g} tried, and {min(shares):.2f} to {max(shares):.2f} of it overall; "
            f"normalised l1 is at least {far:.2f} of at most 2",
            Agreement.AGREES if len(close) == len(points) and far > FAR else Agreement.WRONG,
        )

    def _falls(self) -> Claim:
        first, top, last = (
            point.of(Method.PAPERS).emd for point in (self.errors.points[0], self.worst, self.errors.points[-1])
        )
        return Claim(
            "the error rises for few sources and then falls as they become more",
            f"{FIRST}, section 4.1 and Figure 5a",
            f"{first} with 1 source, largest with {self.worst.x:g}: {top}, then down to {last}",
            Agreement.AGREES if _below(first, top) and _below(last, top) else Agreement.WRONG,
        )

    def _easier(self) -> Claim:
        shares = [over_guess(point) for point in self.errors.points]
        found = f"the papers' error goes from {shares[0]:.2f} to {shares[-1]:.2f} times that of the uniform map"
        if self.lost is not None:
            found += f"; from {self.lost} sources on the uniform map is better"
        return Claim(
            "with more sources it becomes easier to find roughly where they are",
            f"{FIRST}, section 4.1",
            found,
            Agreement.WRONG if shares[-1] > shares[0] else Agreement.AGREES,
        )

    def _no_more_sensors(self) -> Claim:
        needed = {method: ", ".join(str(m or "none") for m in self.needed(method)) for method in Method}
        each = (f"{text}{'' if self.grows(one) else ' (no growth)'} for {one}" for one, text in needed.items())
        return Claim(
            "more sources do not need more sensors",
            f"{FIRST}, section 4.1 and Figure 5b",
            f"for {', '.join(str(one.count) for one in self.sensors)} sources {'; '.join(each)}",
            Agreement.WRONG if self.grows(Method.PAPERS) else Agreement.AGREES,
        )

    def goals(self) -> tuple[Goal, ...]:
        points = self.errors.of(Method.POSTERIOR)
        worst = max(over_guess(point, Method.POSTERIOR) for point in points)
        text = f"strengths known, up to {points[-1].x:g} sources: posterior at most {CLOSE:g} times the uniform map"
        return (Goal(text, f"{worst:.2f}", worst <= CLOSE),)

    def measures(self) -> tuple[Measure, ...]:
        measures: list[Measure] = []
        for point in self.errors.points:
            name, l1 = sources_text(int(point.x)), point.of(Method.PAPERS).l1
            if point.x in QUICK_MANY:
                measures += self.errors.measures(by_sources(1).describe("n", "m", "T"), [point.x])
                measures.append(Measure(f"l1 of the papers' method, {name}", l1.value, l1.error))
            if point.gain is not None and point.x in QUICK_SENSOR_OURS:
                measures.append(Measure(f"papers/ours, {name}", point.gain.value, point.gain.error))
        for one in self.sensors:
            if one.count in QUICK_SENSOR_OURS:  # the posterior has too few frames
                each = one.sweep.measures(sources_text(one.count), QUICK_SENSORS)
                measures += [measure for measure in each if str(Method.POSTERIOR) not in measure.name]
        # the bound of several sources comes from few scenes
        alone = ("k = 1, ", "1 source, ")
        return tuple(one for one in measures if not one.name.endswith(LIMIT) or any(k in one.name for k in alone))

    def text(self) -> str:
        shown = self.errors.at(SHOWN)
        papers, ours = (shown.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        return (
            f"Sources of strength 1 at random places. Left: the error by the number of sources, "
            f"{by_sources(1).describe()}, with {papers.trials:,} frames for basis pursuit and {ours.trials} for the "
            f"posterior at {SHOWN} sources. The posterior knows the strengths and that there are at most {MOST} "
            f"sources; basis pursuit knows neither. The bound is the mean over {SCENES} scenes of the Cramer-Rao bound "
            "for known strengths or the error of the uniform map, whichever is less. As in the papers' figure, the "
            f"error of their method rises up to {self.worst.x:g} sources and then falls. But so does the error of the "
            "uniform map, which ignores the readings. Middle: relative to the uniform map, the papers' error rises. "
            "More sources are not easier to find; it is easier to be near them by chance, as the authors suspect."
        )

    def draw(self, figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        draw_methods(left, self.errors)
        draw_bounds(left, self.errors)
        xs, l1 = zip(*((point.x, point.of(Method.PAPERS).l1.value) for point in self.errors.points), strict=True)
        left.plot(xs, l1, color=COLORS[Method.PAPERS], linestyle=":", label="papers' method, normalised l1")
        log_axes(left)
        left.set_title("Error", fontsize=10)
        self._draw_shares(middle)
        self._draw_sensors(right)
        for axes in (left, middle, right):
            axes.set_xlabel("sources, k")
        legend_below(figure, [left, middle, right], first=LEGEND)

    def _draw_shares(self, axes: Any) -> None:
        for method in Method:
            points = self.errors.of(method)
            look = {"color": COLORS[method], "marker": SHAPES[method], "markersize": 4}
            axes.plot([point.x for point in points], [over_guess(point, method) for point in points], **look)
        limits = [(point.x, point.limit / point.guess) for point in self.errors.points if point.limit]
        axes.plot(*zip(*limits, strict=True), **LINES[LIMIT])
        axes.axhline(1.0, **LINES[GUESS])
        log_axes(axes)
        axes.set_title("Error relative to the uniform map", fontsize=10)

    def _draw_sensors(self, axes: Any) -> None:
        counts = [one.count for one in self.sensors]
        for method in Method:
            needed = [math.nan if m is None else m for m in self.needed(method)]
            axes.plot(counts, needed, color=COLORS[method], marker=SHAPES[method], markersize=5)
        log_x(axes, counts)
        most = max(m or 0 for method in Method for m in self.needed(method))
        axes.set_yticks(range(0, most + 2, max(1, most // 10)))
        axes.set_ylim(0, most + 1)
        axes.grid(visible=True)
        axes.set_title(greek(f"Sensors that are enough, {by_sensors(1, 1).describe('n', 'm', 'T')}"), fontsize=10)


def _below(low: Mean, high: Mean) -> bool:
    """Whether one mean is clearly below another."""
    return low.value + 2 * low.error < high.value - 2 * high.error


def by_sources(count: int) -> Setting:
    """The papers' setting with a number of sources."""
    return Setting(m=10, sigma=0.1, count=count, most=MOST)


def by_sensors(m: int, count: int) -> Setting:
    """The papers' setting with a number of sensors and of sources."""
    return Setting(m=m, epsilon=10.0, delta=0.01, count=count, most=MOST)


def _work(run: Run) -> ManySources:
    many, ours = run.choose((MANY, OURS), (QUICK_MANY, QUICK_OURS), ((1, 4, 20), {1: 4, 4: 2}))
    sensors, each = run.choose((SENSORS, SENSOR_OURS), (QUICK_SENSORS, QUICK_SENSOR_OURS), ((4, 50), {1: 2}))
    frames = run.choose(FRAMES, QUICK_FRAMES, 20)

    def trials(posterior: int) -> dict[Method, int]:
        counts = {Method.PAPERS: frames, Method.PURSUIT: frames, Method.POSTERIOR: posterior}
        return {method: count for method, count in counts.items() if count}

    points: list[Point] = []
    for k in run.each(many, after=len(each)):
        points += run_sweep("k", {k: by_sources(k)}, trials(ours.get(k, 0)), (run.seed, 0)).points
    found = []
    for k, count in run.each(each.items(), before=len(many)):
        settings = {float(m): by_sensors(m, k) for m in sensors}
        found.append(Sensors(k, run_sweep("m", settings, trials(count), (run.seed, 1, k))))
    return ManySources(Sweep("k", tuple(points)), tuple(found))


EXPERIMENT = Experiment(
    "many-sources",
    "Whether more sources are easier to find, and how many sensors are enough",
    ManySources,
    _work,
    shows=f"{FIRST}, Figure 5a; {FIRST}, Figure 5b",
    minutes=3.0,
)
