"""Many sources: whether more are easier to find, and how many sensors are enough."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from cloakwork.lab.curves import COLORS, GUESS, SHAPES, draw_methods, legend_of_all, log_axes
from cloakwork.lab.experiment import Experiment, Progress, part
from cloakwork.lab.result import Agreement, Claim, Finding, Goal, Measure, Table
from cloakwork.lab.style import FAINT, counted
from cloakwork.lab.sweeps import Point, Sweep, run_sweep
from cloakwork.lab.trials import Mean, Method, Setting

FIRST = "Gilbert and McMillan, first version"
FEW, MANY = (1, 2, 3, 4, 6, 8), (12, 20, 40)  # sources; the posterior is tried with few
QUICK_FEW, QUICK_MANY = (1, 2, 4), (8, 20)
COUNTS, QUICK_COUNTS = (1, 2, 4, 8), (1, 2)
SENSORS, QUICK_SENSORS = (2, 3, 4, 5, 7, 10, 20, 50), (2, 4, 10, 50)
MOST = 10  # sources that the posterior allows for
TRIALS, QUICK_TRIALS = 1000, 200  # of R
OURS, QUICK_OURS = 60, 20  # of the posterior
ENOUGH = 1.25  # times the error with the most sensors
SMALL, LARGE = 0.15, 1.0  # errors: EMD below, normalised l1 above


@dataclass(frozen=True)
class Sensors:
    """The error in the number of sensors, for one number of sources."""

    count: int
    sweep: Sweep

    def enough(self, method: Method) -> int:
        """The least number of sensors from which on the error is at most 1.25 times that with the most.

        What is above that within two standard errors counts as not above.
        """
        points = self.sweep.of(method)
        last = points[-1].of(method).emd
        found = points[-1].x
        for point in reversed(points):
            here = point.of(method).emd
            if here.value - ENOUGH * last.value > 2 * math.hypot(here.error, ENOUGH * last.error):
                break
            found = point.x
        return int(found)


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
        rows.append(("EMD, uniform guess", *(f"{point.guess:.4f}" for point in points)))
        rows.append(("papers / guess", *(f"{self.over_guess(point, Method.PAPERS):.2f}" for point in points)))
        head = ("sources", *(f"{point.x:g}" for point in points))
        first = Table("Error in the number of sources: n = 100, m = 10, T = 0.05, sigma = 0.1", head, tuple(rows))
        title = "Mean earth mover distance, {}: n = 100, T = 0.05, epsilon = 10, delta = 0.01"
        each = [one.sweep.table(title.format(counted(one.count))) for one in self.sensors]
        return (first, *each, self._enough())

    def _enough(self) -> Table:
        rows = [(str(method), *(str(one.enough(method)) for one in self.sensors)) for method in Method]
        title = f"Sensors that are enough: from there on at most {ENOUGH:g} times the error with the most"
        return Table(title, ("", *(counted(one.count) for one in self.sensors)), tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        return (self._two_norms(), self._falls(), self._easier(), self._no_more_sensors())

    def _two_norms(self) -> Claim:
        scores = [point.of(Method.PAPERS) for point in self.errors.points]
        least, most = min(one.l1.value for one in scores), max(one.emd.value for one in scores)
        found = f"over all numbers of sources EMD is at most {most:.2f}, normalised l1 at least {least:.2f}"
        verdict = Agreement.AGREES if most < SMALL and least > LARGE else Agreement.WRONG
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
        needed = [one.enough(Method.PAPERS) for one in self.sensors]
        found = "; ".join(f"{counted(one.count)}: {m}" for one, m in zip(self.sensors, needed, strict=True))
        # one step of the grid of sensors is no growth
        steps = [SENSORS.index(m) for m in needed]
        verdict = Agreement.AGREES if steps[-1] <= steps[0] + 1 else Agreement.WRONG
        text = "more sources do not need more sensors"
        return Claim(text, f"{FIRST}, section 4.1 and Figure 5b", found, verdict)

    def goals(self) -> tuple[Goal, ...]:
        worst = max(self.over_guess(point, Method.POSTERIOR) for point in self.errors.of(Method.POSTERIOR))
        return (Goal("posterior at most 0.5 of a uniform guess, up to 8 sources", f"{worst:.2f}", worst <= 0.5),)

    def measures(self) -> tuple[Measure, ...]:
        points = [point for point in self.errors.points if point.x in {1, 2, 4, 8, 20}]
        found = list(self.errors.measures("sigma = 0.1", [point.x for point in points]))
        found += [
            Measure(f"l1 of the papers, {counted(int(point.x))}", score.l1.value, score.l1.error)
            for point in points
            for score in (point.of(Method.PAPERS),)
        ]
        for one in self.sensors:
            if one.count in QUICK_COUNTS:
                named = one.sweep.measures(counted(one.count), (4, 10, 50))
                found += [measure for measure in named if str(Method.POSTERIOR) not in measure.name]
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        first, four = self.errors.points[0], self.errors.at(4)
        last = self.errors.points[-1]
        enough = {method: [one.enough(method) for one in self.sensors] for method in Method}
        lost = f", and from {self.lost} sources on it is worse" if self.lost is not None else ""
        return (
            f"Unit sources at random places, n = 100, T = 0.05. Left: 10 sensors, sigma = 0.1, more and more sources; "
            f"{first.of(Method.PAPERS).trials:,} frames for R, {first.of(Method.POSTERIOR).trials} for the posterior, "
            f"which allows for up to {MOST}. As in the papers' figure the error of R rises, up to {self.turn.x:g} "
            f"sources, and then falls. The grey line tells why, and the authors suspect it: it is the error of a "
            f"uniform map, made without a look at the readings. Middle: as a share of that guess R only gets worse, "
            f"from {self.over_guess(first, Method.PAPERS):.2f} to {self.over_guess(last, Method.PAPERS):.2f}{lost}. "
            "More sources are not easier to find; it is easier to be near them by chance.",
            f"With four sources R has {four.of(Method.PAPERS).emd.value:.3f} and the posterior "
            f"{four.of(Method.POSTERIOR).emd.value:.3f}, where the guess has {four.guess:.3f}. Normalised l1 is "
            f"{four.of(Method.PAPERS).l1.value:.2f} and {four.of(Method.POSTERIOR).l1.value:.2f} of at most 2: as a "
            "measure it sees hardly any difference.",
            f"Right: with noise for (10, 0.01), which grows like sqrt m, more sensors soon stop to help. Enough are as "
            f"many as bring the error to {ENOUGH:g} times that with {SENSORS[-1]}: "
            f"{min(enough[Method.PAPERS])} to {max(enough[Method.PAPERS])} for the papers and "
            f"{min(enough[Method.POSTERIOR])} to {max(enough[Method.POSTERIOR])} for the posterior, over all numbers "
            "of sources tried. The papers do not say what they call enough.",
        )

    def draw(self, figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        draw_methods(left, self.errors)
        xs = [point.x for point in self.errors.points]
        left.plot(xs, [point.guess for point in self.errors.points], color=FAINT, linewidth=1, label=GUESS)
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
        axes.axhline(1.0, color=FAINT, linewidth=1)
        log_axes(axes)
        axes.set_title("Error as a share of the guess", fontsize=10)
        axes.set_xlabel("sources, k")

    def _draw_sensors(self, axes: Any) -> None:
        counts = [one.count for one in self.sensors]
        for method in Method:
            needed = [one.enough(method) for one in self.sensors]
            axes.plot(counts, needed, color=COLORS[method], marker=SHAPES[method], markersize=5)
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        most = max(one.enough(method) for one in self.sensors for method in Method)
        axes.set_yticks(range(0, most + 2, max(1, most // 10)))
        axes.set_ylim(0, most + 1)
        axes.grid(visible=True)
        axes.set_title("Sensors that are enough, (10, 0.01)", fontsize=10)
        axes.set_xlabel("sources, k")


def _below(low: Mean, high: Mean) -> bool:
    """Whether one mean is below another beyond doubt."""
    return low.value + 2 * low.error < high.value - 2 * high.error


def _work(*, quick: bool, seed: int, progress: Progress) -> ManySources:
    few, many, counts = (QUICK_FEW, QUICK_MANY, QUICK_COUNTS) if quick else (FEW, MANY, COUNTS)
    sensors = QUICK_SENSORS if quick else SENSORS
    plain = dict.fromkeys((Method.PAPERS, Method.PURSUIT), QUICK_TRIALS if quick else TRIALS)
    trials = plain | {Method.POSTERIOR: QUICK_OURS if quick else OURS}
    total = 100 * (2 + len(counts))
    seen = {k: Setting(m=10, sigma=0.1, count=k, most=MOST) for k in (*few, *many)}
    below = run_sweep("k", {k: seen[k] for k in few}, trials, (seed, 0), part(progress, 0, 100, total))
    above = run_sweep("k", {k: seen[k] for k in many}, plain, (seed, 0), part(progress, 100, 100, total))
    found = []
    for number, k in enumerate(counts):
        settings = {float(m): Setting(m=m, epsilon=10.0, delta=0.01, count=k, most=MOST) for m in sensors}
        share = part(progress, 200 + 100 * number, 100, total)
        found.append(Sensors(k, run_sweep("m", settings, trials, (seed, 1, k), share)))
    return ManySources(Sweep("k", below.points + above.points), tuple(found))


EXPERIMENT = Experiment(
    "many-sources",
    "Whether more sources are easier to find, and how many sensors are enough",
    ManySources,
    _work,
    shows=(f"{FIRST}, Figure 5a", f"{FIRST}, Figure 5b"),
    minutes=2.0,
)
