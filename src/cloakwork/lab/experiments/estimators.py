"""The gallery of estimators on the same data, at the same privacy."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.lab.experiment import Experiment, Progress, part, stream
from cloakwork.lab.gallery import Mixture, Refined
from cloakwork.lab.result import Finding, Goal, Measure, Table
from cloakwork.lab.scenes import Strengths, line, line_cloak
from cloakwork.lab.style import INK, Dots, counted, draw_dots, legend_below, log_scale
from cloakwork.measure import cramer_rao, emd
from cloakwork.privacy import Calibration
from cloakwork.recovery import BasisPursuit, Bregman, Estimator, PointSources, Radius, recover

COUNTS = (1, 2, 3)
DRAWS, QUICK_DRAWS = 200, 10
MOST = 4  # sources that an estimator which has to be told so allows
TIMED = 3  # times that a method runs if that takes less than PATIENCE seconds; the best counts
PATIENCE = 2.0


class Method(StrEnum):
    """What is compared."""

    PAPERS = "papers: their noise, R"
    PURSUIT = "R"
    BREGMAN = "Bregman iteration"
    MIXTURE = "Gaussian mixture, EM"
    REFINED = "R, refined off the grid"
    POSTERIOR = "posterior (ours)"

    def estimator(self, strengths: Strengths) -> Estimator:
        """With what it may know: of the strengths, and that sources are at most four."""
        made: dict[Method, Callable[[], Estimator]] = {
            Method.PAPERS: lambda: BasisPursuit(radius=Radius.PAPER),
            Method.PURSUIT: BasisPursuit,
            Method.BREGMAN: Bregman,
            Method.MIXTURE: lambda: Mixture(strengths.told, most=MOST),
            Method.REFINED: Refined,
            Method.POSTERIOR: lambda: PointSources(strengths.told, most=MOST),
        }
        return made[self]()

    @property
    def calibration(self) -> Calibration:
        """How much noise its readings have."""
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


RIVALS = (Method.PURSUIT, Method.MIXTURE, Method.REFINED)


@dataclass(frozen=True)
class Score:
    """Earth mover distance to the truth: its mean and standard error; how many maps were empty; time for a frame."""

    method: Method
    mean: float
    error: float
    empty: int
    milliseconds: float = field(compare=False)

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.error:.4f}"


@dataclass(frozen=True)
class Case:
    """So many random sets of sources, and how every method did; `limit` is the mean Cramer-Rao limit, where known."""

    strengths: Strengths
    count: int
    draws: int
    scores: tuple[Score, ...]
    limit: float | None

    def of(self, method: Method) -> Score:
        """How one method did."""
        return next(score for score in self.scores if score.method is method)

    def ratio(self, method: Method, other: Method) -> float:
        """Mean distance of one method over that of another."""
        return self.of(method).mean / self.of(other).mean


@dataclass(frozen=True)
class Gallery(Finding):
    """How far from the truth every estimator is, for one to three sources of known and of free strength."""

    size: ClassVar[tuple[float, float]] = (11.0, 4.6)
    cases: tuple[Case, ...]

    def part(self, strengths: Strengths) -> tuple[Case, ...]:
        """The cases with such strengths."""
        return tuple(case for case in self.cases if case.strengths is strengths)

    def tables(self) -> tuple[Table, ...]:
        return (*(self._distances(strengths) for strengths in Strengths), self._ratios(), self._costs())

    def _distances(self, strengths: Strengths) -> Table:
        cases = self.part(strengths)
        rows = [(str(method), *(str(case.of(method)) for case in cases)) for method in Method]
        if any(case.limit is not None for case in cases):
            rows.append(("Cramer-Rao limit", *("-" if case.limit is None else f"{case.limit:.4f}" for case in cases)))
        title = f"Mean earth mover distance over {cases[0].draws} draws, {strengths}"
        return Table(title, ("", *(counted(case.count) for case in cases)), tuple(rows))

    def _ratios(self) -> Table:
        rows = [
            (
                f"{counted(case.count)}, {case.strengths.short}",
                f"{case.ratio(Method.PAPERS, Method.POSTERIOR):.2f}",
                *(f"{case.ratio(Method.POSTERIOR, method):.2f}" for method in RIVALS),
                "-" if case.limit is None else f"{case.of(Method.POSTERIOR).mean / case.limit:.2f}",
            )
            for case in self.cases
        ]
        names = ("papers/ours", "ours/R", "ours/EM", "ours/refined", "ours/limit")
        return Table("Ratios of these", ("", *names), tuple(rows))

    def _costs(self) -> Table:
        rows = []
        for method in Method:
            scores = [[case.of(method) for case in self.part(strengths)] for strengths in Strengths]
            empty = ["/".join(str(score.empty) for score in own) for own in scores]
            rows.append((str(method), *empty, *(f"{np.mean([s.milliseconds for s in own]):.2g}" for own in scores)))
        kinds = [strengths.short for strengths in Strengths]
        names = (*(f"empty, {kind}" for kind in kinds), *(f"ms, {kind}" for kind in kinds))
        return Table("Empty maps (they count as uniform), and milliseconds a frame", ("", *names), tuple(rows))

    def measures(self) -> tuple[Measure, ...]:
        return tuple(
            # a few draws have a rough error, and the errors of so small a sample are rough too
            Measure(f"{case.strengths.short}, {case.count}: {score.method}", score.mean, score.error, 0.3 * score.mean)
            for case in self.cases
            for score in case.scores
        )

    def words(self) -> tuple[str, ...]:
        best = [case.ratio(Method.PAPERS, Method.POSTERIOR) for case in self.cases]
        return (
            "Six ways from noisy readings to a map, on the same random sources and at the same privacy: 100 places on "
            "a line, 50 sensors, T = 0.05, a move by one place hidden at (1, 0.1). The further left, the nearer to the "
            f"truth. The posterior is {min(best):.1f} to {max(best):.1f} times nearer to it than the papers' method.",
        )

    def goals(self) -> tuple[Goal, ...]:
        unit, free = self.part(Strengths.UNIT), self.part(Strengths.FREE)
        goals = []
        for case in unit:
            least, better = (6 if case.count < 3 else 5), case.ratio(Method.PAPERS, Method.POSTERIOR)
            goals.append(_goal(f"unit strengths, {case.count}: papers/ours at least {least}", better, better >= least))
            if case.limit is not None:
                far = case.of(Method.POSTERIOR).mean / case.limit
                goals.append(_goal(f"unit strengths, {case.count}: ours/limit at most 1.3", far, far <= 1.3))
        for case in free:
            share = case.ratio(Method.POSTERIOR, Method.PURSUIT)
            goals.append(_goal(f"free strengths, {case.count}: ours/R at most 0.8", share, share <= 0.8))
        times = [case.of(Method.POSTERIOR).milliseconds for case in unit]
        rate, slowest = 1000 / float(np.mean(times)), 1000 / max(times)
        said = f"{rate:.0f} (slowest case {slowest:.0f})"
        goals.append(Goal("unit strengths: at least 200 frames a second", said, rate >= 200))
        return tuple(goals)

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, len(Strengths), sharey=True, sharex=True)
        for axes, strengths in zip(panels, Strengths, strict=True):
            series = []
            for case in self.part(strengths):
                scores = [case.of(method) for method in Method]
                series.append(Dots.of_count(case.count, [s.mean for s in scores], [s.error for s in scores]))
                if case.limit is not None:
                    axes.axvline(case.limit, color=INK, linewidth=1, linestyle=":")
                    axes.text(case.limit * 1.04, -0.48, "Cramer-Rao limit, 1 source", fontsize=8, color=INK)
            log_scale(axes, (0.01, 0.02, 0.05, 0.1, 0.2))
            draw_dots(axes, list(Method), series)
            axes.set_title(str(strengths).capitalize())
            axes.set_xlabel("mean earth mover distance to the truth (bars: two standard errors)")
        legend_below(figure, panels[0])


def _goal(text: str, reached: float, met: bool) -> Goal:
    return Goal(text, f"{reached:.2f}", met)


def _work(*, quick: bool, seed: int, progress: Progress) -> Gallery:
    draws = QUICK_DRAWS if quick else DRAWS
    cases: list[Case] = []
    total = len(Strengths) * len(COUNTS)
    for number, strengths in enumerate(Strengths):
        for count in COUNTS:
            share = part(progress, 100 * len(cases), 100, 100 * total)
            cases.append(_case(strengths, count, draws, (seed, number, count), share))
    return Gallery(tuple(cases))


def _case(strengths: Strengths, count: int, draws: int, key: tuple[int, ...], progress: Progress) -> Case:
    rng = stream(*key)
    truth = np.zeros((draws, line().places))
    for scene in truth:
        scene[rng.choice(line().places, count, replace=False)] = strengths.draw(rng, count)
    scores = []
    for number, method in enumerate(Method):
        progress(number, len(Method))
        scores.append(_score(method, strengths, truth, key))
    limit = _limit(truth) if count == 1 and strengths is Strengths.UNIT else None
    return Case(strengths, count, draws, tuple(scores), limit)


def _score(method: Method, strengths: Strengths, truth: FloatArray, key: tuple[int, ...]) -> Score:
    cloak, estimator = line_cloak(method.calibration), method.estimator(strengths)
    # the same random numbers for every method: only the size of the noise differs
    noisy = cloak.simulate(line().apply(truth), rng=stream(*key, 1))
    recover(noisy[:1], cloak, estimator=estimator)
    seconds = np.inf
    for _ in range(TIMED if len(truth) == DRAWS else 1):
        began = time.perf_counter()
        maps = recover(noisy, cloak, estimator=estimator).map
        seconds = min(seconds, time.perf_counter() - began)
        if seconds > PATIENCE:
            break
    distances = distances_to(truth, maps)
    error = float(distances.std(ddof=1) / np.sqrt(len(truth)))
    empty = int((~maps.any(axis=1)).sum())
    return Score(method, float(distances.mean()), error, empty, 1000 * seconds / len(truth))


def distances_to(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """Earth mover distance of each map to its truth; an empty map counts as the uniform one."""
    uniform = np.ones(truth.shape[1])
    pairs = zip(maps, truth, strict=True)
    return np.array([emd(found if found.any() else uniform, scene, line().space) for found, scene in pairs])


def _limit(truth: FloatArray) -> float:
    """Mean Cramer-Rao limit of a lone unit source over the true places."""
    along, sigma = line().space.places[:, 0], line_cloak().sigma
    return float(np.mean([cramer_rao(line(), [along[scene > 0][0]], sigma).expected_emd for scene in truth]))


EXPERIMENT = Experiment(
    "estimators",
    "How far from the truth each estimator is, on the same data at the same privacy",
    Gallery,
    _work,
    minutes=1.5,
)
