"""Many sources: whether more are easier to find, and how many sensors are enough."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from papers.curves import COLORS, LINES, SHAPES, draw_limits, draw_methods, legend_of_all, log_axes, symbols
from papers.experiment import Experiment, Progress, part
from papers.result import Agreement, Claim, Finding, Goal, Measure, Table
from papers.style import counted
from papers.sweeps import GUESS, LIMIT, SCENES, Point, Sweep, run_sweep
from papers.trials import Mean, Method, Setting

FIRST = "Gilbert and McMillan, first version"
MANY, QUICK_MANY = (1, 2, 3, 4, 6, 8, 12, 20, 40), (1, 2, 4, 8, 20)  # sources
SENSORS, QUICK_SENSORS = (2, 3, 4, 5, 7, 10, 20, 50), (4, 10, 50)
MOST = 10  # sources that the posterior allows for
TRIALS = 2000  # of R
# trials of the posterior, by the number of sources: it is fast with few
OURS, QUICK_OURS = {1: 500, 2: 500, 3: 120, 4: 120, 6: 60, 8: 60}, {1: 300, 2: 300, 4: 40}
SENSOR_OURS, QUICK_SENSOR_OURS = {1: 100, 2: 100, 4: 80, 8: 80}, {1: 60, 2: 60}
SHOWN = 4  # sources in the words, as in the papers' caption
ALL = 0.99  # a share of a guess's error that is as good as all of it
ENOUGH = 1.25  # times the error with the most sensors
NEAR, FAR = 0.5, 1.0  # EMD below that share of a guess's, normalised l1 above


@dataclass(frozen=True)
class Sensors:
    """The error in the number of sensors, for one number of sources."""

    count: int
    sweep: Sweep

    def enough(self, method: Method) -> int | None:
        """The least number of sensors from which on a method is near, and within 1.25 times of what the most bring.

        Near is nearer than half of a uniform guess. What is above 1.25 times within two standard errors counts as not
        above. None if no number is enough.
        """
        points = self.sweep.of(method)
        last = points[-1].of(method).emd
        found = None
        for point in reversed(points):
            here = point.of(method).emd
            above = here.value - ENOUGH * last.value > 2 * math.hypot(here.error, ENOUGH * last.error)
            if above or here.value >= NEAR * point.guess:
                break
            found = int(point.x)
        return found


@dataclass(frozen=True)
class ManySources(Finding):
    """Errors in the number of sources at sigma = 0.1 and m = 10; and errors in the number of sensors at (10, 0.01)."""

    size: ClassVar[tuple[float, float]] = (12.0, 4.3)
    errors: Sweep
    sensors: tuple[Sensors, ...]

    def over_guess(self, point: Point, method: Method) -> float:
        """Error over that of the uniform guess."""
        return point.of(method).emd.value / point.guess

    @property
    def turn(self) -> Point:
        """The number of sources with the largest error of the papers' R."""
        return max(self.errors.points, key=lambda point: point.of(Method.PAPERS).emd.value)

    @property
    def lost(self) -> int | None:
        """The number of sources from which on the papers' R is no better than a uniform guess, if any."""
        worse = [point.x for point in self.errors.points if self.over_guess(point, Method.PAPERS) >= 1]
        return int(worse[0]) if worse else None

    def tables(self) -> tuple[Table, ...]:
        points = self.errors.points
        rows: list[tuple[str, ...]] = []
        for method in Method:
            shown = [point.of(method) if point.has(method) else None for point in points]
            rows.append((f"EMD, {method}", *("-" if one is None else str(one.emd) for one in shown)))
            rows.append((f"normalised l1, {method}", *("-" if one is None else f"{one.l1.value:.2f}" for one in shown)))
        rows.append((f"EMD, {LIMIT}", *(f"{point.limit:.4f}" for point in points)))
        rows.append(("EMD, uniform guess", *(f"{point.guess:.4f}" for point in points)))
        rows.append(("papers / guess", *(f"{self.over_guess(point, Method.PAPERS):.2f}" for point in points)))
        head = ("sources", *(f"{point.x:g}" for point in points))
        first = Table(f"Error in the number of sources: {by_sources(1).words()}", head, tuple(rows))
        fixed = by_sensors(1, 1).words("m")
        each = [one.sweep.table(f"Mean earth mover distance, {counted(one.count)}: {fixed}") for one in self.sensors]
        return (first, *each, self._enough())

    def _enough(self) -> Table:
        rows = [(str(method), *(str(m or "none") for m in self.needed(method))) for method in Method]
        title = (
            f"Sensors that are enough: from there on nearer than half of a guess, and at most {ENOUGH:g} times the "
            "error with the most"
        )
        return Table(title, ("", *(counted(one.count) for one in self.sensors)), tuple(rows))

    def needed(self, method: Method) -> list[int | None]:
        """Sensors that are enough, for each number of sources."""
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
        near = [point for point in points if self.over_guess(point, Method.PAPERS) < NEAR]
        shares = [self.over_guess(point, Method.PAPERS) for point in points]
        where = ", ".join(f"{point.x:g}" for point in near) or "no number of"
        found = (
            f"EMD is less than half of a uniform guess's with {where} sources, of {points[0].x:g} to {points[-1].x:g} "
            f"tried, and {min(shares):.2f} to {max(shares):.2f} of it in all; normalised l1 is at least {far:.2f} of "
            "at most 2"
        )
        verdict = Agreement.AGREES if len(near) == len(points) and far > FAR else Agreement.WRONG
        return Claim("R is near in EMD and far in normalised l1", f"{FIRST}, Figure 5a", found, verdict)

    def _falls(self) -> Claim:
        first, last = self.errors.points[0].of(Method.PAPERS).emd, self.errors.points[-1].of(Method.PAPERS).emd
        top = self.turn.of(Method.PAPERS).emd
        found = f"{first} with {counted(1)}, largest with {self.turn.x:g}: {top}, then down to {last}"
        verdict = Agreement.AGREES if _below(first, top) and _below(last, top) else Agreement.WRONG
        text = "the error rises for few sources and then falls as they become more"
        return Claim(text, f"{FIRST}, section 4.1 and Figure 5a", found, verdict)

    def _easier(self) -> Claim:
        shares = [self.over_guess(point, Method.PAPERS) for point in self.errors.points]
        found = (
            f"the papers' error goes from {shares[0]:.2f} to {shares[-1]:.2f} times that of a uniform guess, "
            f"which falls by itself"
        )
        if self.lost is not None:
            found += f"; from {self.lost} sources on the guess is better"
        verdict = Agreement.WRONG if shares[-1] > shares[0] else Agreement.AGREES
        text = "with more sources it becomes easier to find where they are, about"
        return Claim(text, f"{FIRST}, section 4.1", found, verdict)

    def _no_more_sensors(self) -> Claim:
        counts = ", ".join(str(one.count) for one in self.sensors)
        found = f"for {counts} sources " + "; ".join(
            f"{', '.join(str(m or 'none') for m in self.needed(method))} for {method}"
            f"{'' if self.grows(method) else ' (no growth)'}"
            for method in Method
        )
        verdict = Agreement.WRONG if self.grows(Method.PAPERS) else Agreement.AGREES
        text = "more sources do not need more sensors"
        return Claim(text, f"{FIRST}, section 4.1 and Figure 5b", found, verdict)

    def goals(self) -> tuple[Goal, ...]:
        points = self.errors.of(Method.POSTERIOR)
        worst = max(self.over_guess(point, Method.POSTERIOR) for point in points)
        text = f"posterior at most {NEAR:g} of a uniform guess, strengths known, up to {counted(int(points[-1].x))}"
        return (Goal(text, f"{worst:.2f}", worst <= NEAR),)

    def measures(self) -> tuple[Measure, ...]:
        found: list[Measure] = []
        for point in self.errors.points:
            named, l1 = counted(int(point.x)), point.of(Method.PAPERS).l1
            if point.x in QUICK_MANY:
                found += _compared(self.errors.measures(by_sources(1).words("n", "m", "T"), [point.x]), point.x)
                found.append(Measure(f"l1 of the papers, {named}", l1.value, l1.error))
            if point.gain is not None and point.x in QUICK_SENSOR_OURS:
                found.append(Measure(f"papers/ours, {named}", point.gain.value, point.gain.error))
        for one in self.sensors:
            if one.count in QUICK_SENSOR_OURS:
                # of the posterior there are too few frames
                each = _compared(one.sweep.measures(counted(one.count), QUICK_SENSORS), one.count)
                found += [measure for measure in each if str(Method.POSTERIOR) not in measure.name]
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        shown = self.errors.at(SHOWN)
        papers, ours = (shown.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        fixed = by_sensors(1, 1)
        return (
            f"Unit sources at random places. Left: more and more of them, {by_sources(1).words()}; {papers.trials:,} "
            f"frames for R and {ours.trials} for the posterior with {SHOWN} sources. The posterior is told that each "
            f"has strength 1 and that there are at most {MOST}, R neither; it is tried with up to "
            f"{self.errors.of(Method.POSTERIOR)[-1].x:g}. An empty map counts as the uniform one. The limit is the "
            f"mean over {SCENES} scenes, in each the Cramer-Rao limit for known strengths or the error of a uniform "
            f"map, whichever is less. {self._by_chance()}",
            f"With {SHOWN} sources R has {papers.emd.value:.3f} and the posterior {ours.emd.value:.3f}, where the "
            f"guess has {shown.guess:.3f} and the limit is {shown.limit:.3f}"
            f"{self._limits(shown)}. In EMD the papers' R is {papers.emd.value / ours.emd.value:.1f} times as far "
            f"as the posterior, in normalised l1 {papers.l1.value / ours.l1.value:.2f} times.",
            f"Right: noise for ({fixed.epsilon:g}, {fixed.delta:g}), which grows like sqrt m, so that more sensors "
            "soon stop to help. Enough are as many as bring the error below half of a guess's and to "
            f"{ENOUGH:g} times that with {SENSORS[-1]}; no dot where none are. {self._by_method()} The papers do not "
            "say what they call enough.",
        )

    def _by_chance(self) -> str:
        """Whether more sources are easier to find, in words."""
        points = self.errors.points
        first, last = (self.over_guess(point, Method.PAPERS) for point in (points[0], points[-1]))
        rise = (
            f"The error of R rises up to {self.turn.x:g} sources and then falls, as in the papers' figure."
            if self._falls().verdict is Agreement.AGREES
            else f"The error of R is largest with {self.turn.x:g} sources."
        )
        lost = f", and from {self.lost} sources on it is worse" if self.lost is not None else ""
        told = (
            f"{rise} The grey line is the error of a uniform map, made without a look at the readings. Middle: as a "
            f"share of that guess R goes from {first:.2f} to {last:.2f}{lost}."
        )
        if last <= first:
            return told
        return f"{told} More are not easier to find; it is easier to be near them by chance, as the authors suspect."

    def _limits(self, point: Point) -> str:
        """What the limit is good for, in words."""
        ours = point.of(Method.POSTERIOR).emd
        equal = [one.x for one in self.errors.points if one.limit and one.limit > ALL * one.guess]
        told = f"; from {equal[0]:g} sources on it is that of the guess" if equal else ""
        if point.limit and ours.value + 2 * ours.error < point.limit:
            told += "; it holds for methods without a bias only, which the posterior is not"
        return told

    def _by_method(self) -> str:
        counts = ", ".join(str(one.count) for one in self.sensors)
        needed = "; ".join(f"{method}: {', '.join(str(m or 'none') for m in self.needed(method))}" for method in Method)
        return f"For {counts} sources: {needed}."

    def draw(self, figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        draw_methods(left, self.errors)
        draw_limits(left, self.errors)
        xs = [point.x for point in self.errors.points]
        l1 = [point.of(Method.PAPERS).l1.value for point in self.errors.points]
        left.plot(xs, l1, color=COLORS[Method.PAPERS], linestyle=":", label="papers, normalised l1")
        log_axes(left)
        left.set_title("Error", fontsize=10)
        left.set_xlabel("sources, k")
        self._draw_shares(middle)
        self._draw_sensors(right)
        legend_of_all(figure, [left, middle, right])

    def _draw_shares(self, axes: Any) -> None:
        for method in Method:
            points = self.errors.of(method)
            shares = [self.over_guess(point, method) for point in points]
            axes.plot([point.x for point in points], shares, color=COLORS[method], marker=SHAPES[method], markersize=4)
        limits = [(point.x, point.limit / point.guess) for point in self.errors.points if point.limit]
        axes.plot(*zip(*limits, strict=True), **LINES[LIMIT])
        axes.axhline(1.0, **LINES[GUESS])
        log_axes(axes)
        axes.set_title("Error as a share of the guess", fontsize=10)
        axes.set_xlabel("sources, k")

    def _draw_sensors(self, axes: Any) -> None:
        counts = [one.count for one in self.sensors]
        for method in Method:
            needed = [math.nan if m is None else m for m in self.needed(method)]
            axes.plot(counts, needed, color=COLORS[method], marker=SHAPES[method], markersize=5)
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        most = max(m or 0 for method in Method for m in self.needed(method))
        axes.set_yticks(range(0, most + 2, max(1, most // 10)))
        axes.set_ylim(0, most + 1)
        axes.grid(visible=True)
        axes.set_title(symbols(f"Sensors that are enough, {by_sensors(1, 1).words('n', 'm', 'T')}"), fontsize=10)
        axes.set_xlabel("sources, k")


def _below(low: Mean, high: Mean) -> bool:
    """Whether one mean is below another beyond doubt."""
    return low.value + 2 * low.error < high.value - 2 * high.error


def _compared(measures: Iterable[Measure], count: float) -> list[Measure]:
    """Those of measures for so many sources that another run gives again: limits of several are of few scenes."""
    return [one for one in measures if count == 1 or not one.name.endswith("limit")]


def by_sources(count: int) -> Setting:
    """The papers' setting with so many sources."""
    return Setting(m=10, sigma=0.1, count=count, most=MOST)


def by_sensors(m: int, count: int) -> Setting:
    """The papers' setting with so many sensors and sources."""
    return Setting(m=m, epsilon=10.0, delta=0.01, count=count, most=MOST)


def _trials(ours: int) -> dict[Method, int]:
    """How many frames each method gets; the posterior is left out where it gets none."""
    given = {Method.PAPERS: TRIALS, Method.PURSUIT: TRIALS, Method.POSTERIOR: ours}
    return {method: frames for method, frames in given.items() if frames}


def _work(*, quick: bool, seed: int, progress: Progress) -> ManySources:
    many, ours = (QUICK_MANY, QUICK_OURS) if quick else (MANY, OURS)
    each, sensors = (QUICK_SENSOR_OURS, QUICK_SENSORS) if quick else (SENSOR_OURS, SENSORS)
    total = 100 * (len(many) + len(each))
    points: list[Point] = []
    for number, k in enumerate(many):
        share = part(progress, 100 * number, 100, total)
        points += run_sweep("k", {k: by_sources(k)}, _trials(ours.get(k, 0)), (seed, 0), share).points
    found = []
    for number, (k, frames) in enumerate(each.items()):
        share = part(progress, 100 * (len(many) + number), 100, total)
        settings = {float(m): by_sensors(m, k) for m in sensors}
        found.append(Sensors(k, run_sweep("m", settings, _trials(frames), (seed, 1, k), share)))
    return ManySources(Sweep("k", tuple(points)), tuple(found))


EXPERIMENT = Experiment(
    "many-sources",
    "Whether more sources are easier to find, and how many sensors are enough",
    ManySources,
    _work,
    shows=(f"{FIRST}, Figure 5a", f"{FIRST}, Figure 5b"),
    minutes=3.0,
)
