"""Many sources: whether more are easier to find, and how many sensors are enough."""

import math

from matplotlib.figure import Figure

from papers.drawing import curve, finish, greek, legend_below, log_axes
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding, Goal
from papers.rows import Mean, Row, pick
from papers.sweeps import BOUNDS, LEGEND, LOOKS, SCENES, draw_sweep, of, run_sweep, tried
from papers.trials import Method, Setting

FIRST = "Gilbert and McMillan, first version"
MANY, QUICK_MANY = (1, 2, 3, 4, 6, 8, 12, 20, 40), (1, 2, 4, 8, 20)  # sources
SENSORS, QUICK_SENSORS = (2, 3, 4, 5, 7, 10, 20, 50), (4, 10, 50)
MOST = 10  # sources that the posterior considers
# frames of the posterior by the number of sources: it is fast with few
OURS, QUICK_OURS = {1: 500, 2: 500, 3: 120, 4: 120, 6: 60, 8: 60}, {1: 60, 2: 40, 4: 2}
SENSOR_OURS, QUICK_SENSOR_OURS = {1: 100, 2: 100, 4: 80, 8: 80}, {1: 10, 2: 10}
FRAMES, QUICK_FRAMES = 2000, 700  # of basis pursuit
SHOWN = 4  # sources in the text, as in the papers' caption
ENOUGH = 1.25  # times the error with the most sensors
CLOSE, FAR = 0.5, 1.0  # a share of the error of the uniform map, and a normalised l1 distance


def enough(points: tuple[Row, ...], method: Method) -> int | None:
    """The least number of sensors from which on a method is close, and within 1.25 times its error with the most.

    Close is below half of the error of the uniform map. An excess within two standard errors does not count. None if no
    number is enough.
    """
    own = tried(points, method)
    last, least = of(own[-1], method).emd, None
    for point in reversed(own):
        here = of(point, method).emd
        above = here.value - ENOUGH * last.value > 2 * math.hypot(here.error, ENOUGH * last.error)
        if above or here.value >= CLOSE * point.guess:
            break
        least = int(point.x)
    return least


def over_guess(point: Row, method: Method = Method.PAPERS) -> float:
    """The error of a method over that of the uniform map."""
    return float(of(point, method).emd.value / point.guess)


class ManySources(Finding):
    """Errors in the number of sources at sigma = 0.1 and m = 10; and errors in the number of sensors at (10, 0.01)."""

    size = (12.0, 4.3)

    @property
    def worst(self) -> Row:
        """The number of sources with the largest error of the papers' method."""
        points: tuple[Row, ...] = self.errors.points
        return max(points, key=lambda point: of(point, Method.PAPERS).emd.value)

    def needed(self, method: Method) -> list[int | None]:
        return [enough(one.sweep.points, method) for one in self.sensors]

    def grows(self, method: Method) -> bool:
        """Whether the most sources need more sensors than the fewest: by more than one step of those tried."""
        steps = [len(SENSORS) if m is None else SENSORS.index(m) for m in self.needed(method)]
        return steps[-1] > steps[0] + 1

    def claims(self) -> tuple[Claim, ...]:
        return (self._two_norms(), self._falls(), self._easier(), self._no_more_sensors())

    def _two_norms(self) -> Claim:
        points = self.errors.points
        far = min(of(point, Method.PAPERS).l1.value for point in points)
        close = [f"{point.x:g}" for point in points if over_guess(point) < CLOSE]
        shares = [over_guess(point) for point in points]
        return Claim(
            "R is close in EMD and far in normalised l1",
            f"{FIRST}, Figure 5a",
            f"EMD is less than half of that of the uniform map with {', '.join(close) or 'no number of'} sources, of "
            f"{points[0].x:g} to {points[-1].x:g} tried, and {min(shares):.2f} to {max(shares):.2f} of it overall; "
            f"normalised l1 is at least {far:.2f} of at most 2",
            Agreement.of(len(close) == len(points) and far > FAR),
        )

    def _falls(self) -> Claim:
        points = self.errors.points
        first, top, last = (of(point, Method.PAPERS).emd for point in (points[0], self.worst, points[-1]))
        return Claim(
            "the error rises for few sources and then falls as they become more",
            f"{FIRST}, section 4.1 and Figure 5a",
            f"{first} with 1 source, largest with {self.worst.x:g}: {top}, then down to {last}",
            Agreement.of(_below(first, top) and _below(last, top)),
        )

    def _easier(self) -> Claim:
        shares = [over_guess(point) for point in self.errors.points]
        found = f"the papers' error goes from {shares[0]:.2f} to {shares[-1]:.2f} times that of the uniform map"
        lost = next((point for point in self.errors.points if over_guess(point) >= 1), None)
        if lost is not None:
            found += f"; from {lost.x:g} sources on the uniform map is better"
        return Claim(
            "with more sources it becomes easier to find roughly where they are",
            f"{FIRST}, section 4.1",
            found,
            Agreement.of(shares[-1] <= shares[0]),
        )

    def _no_more_sensors(self) -> Claim:
        needed = {method: ", ".join(str(m or "none") for m in self.needed(method)) for method in Method}
        each = (f"{text}{'' if self.grows(one) else ' (no growth)'} for {one}" for one, text in needed.items())
        return Claim(
            "more sources do not need more sensors",
            f"{FIRST}, section 4.1 and Figure 5b",
            f"for {', '.join(str(one.count) for one in self.sensors)} sources {'; '.join(each)}",
            Agreement.of(not self.grows(Method.PAPERS)),
        )

    def goals(self) -> tuple[Goal, ...]:
        points = tried(self.errors.points, Method.POSTERIOR)
        worst = max(over_guess(point, Method.POSTERIOR) for point in points)
        text = f"strengths known, up to {points[-1].x:g} sources: posterior at most {CLOSE:g} times the uniform map"
        return (Goal(text, f"{worst:.2f}", worst <= CLOSE),)

    def text(self) -> str:
        shown = pick(self.errors.points, x=SHOWN)
        papers, ours = (of(shown, method) for method in (Method.PAPERS, Method.POSTERIOR))
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
        points, counts = self.errors.points, [one.count for one in self.sensors]
        l1 = [of(point, Method.PAPERS).l1.value for point in points]
        look = {"linestyle": ":", "marker": None, "label": "papers' method, normalised l1"}
        curve(left, [point.x for point in points], l1, **(LOOKS[Method.PAPERS] | look))
        draw_sweep(left, points)
        limits = [(point.x, point.limit / point.guess) for point in points if point.limit]
        middle.plot(*zip(*limits, strict=True), **BOUNDS["limit"])
        middle.axhline(1.0, **BOUNDS["guess"])
        for method in Method:
            own = tried(points, method)
            curve(middle, [point.x for point in own], [over_guess(point, method) for point in own], **LOOKS[method])
            curve(right, counts, self.needed(method), **LOOKS[method])
        log_axes(middle)
        most = max(m or 0 for method in Method for m in self.needed(method))
        right.set_yticks(range(0, most + 2, max(1, most // 10)))
        finish(right, ticks=counts, ylim=(0, most + 1))
        enough = f"Sensors that are enough, {by_sensors(1, 1).describe('n', 'm', 'T')}"
        for axes, title in ((left, "Error"), (middle, "Error relative to the uniform map"), (right, greek(enough))):
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("sources, k")
        legend_below(figure, [left, middle, right], first=LEGEND)


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

    points: list[Row] = []
    for k in many:
        points += run_sweep("k", {k: by_sources(k)}, trials(ours.get(k, 0)), (run.seed, 0)).points
    found = []
    for k, count in each.items():
        settings = {float(m): by_sensors(m, k) for m in sensors}
        found.append(Row(count=k, sweep=run_sweep("m", settings, trials(count), (run.seed, 1, k))))
    return ManySources(errors=Row(name="k", points=tuple(points)), sensors=tuple(found))


EXPERIMENT = Experiment(
    "many-sources",
    "Whether more sources are easier to find, and how many sensors are enough",
    ManySources,
    _work,
    shows=f"{FIRST}, Figure 5a; {FIRST}, Figure 5b",
    minutes=3.0,
)
