"""The gallery of estimators on the same data, at the same privacy."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao
from cloakwork.privacy import Calibration
from cloakwork.recovery import BasisPursuit, Bregman, Estimator, PointSources, Radius, recover
from papers.experiment import Experiment, Progress, part, stream
from papers.gallery import Mixture, Refined
from papers.result import Finding, Goal, Measure, Table
from papers.scenes import Strengths, line, line_cloak
from papers.style import SERIES, Dots, counted, draw_dots, legend_below, log_scale
from papers.trials import Distances, Mean

COUNTS = (1, 2, 3)
MOST = 4  # sources that an estimator which has to be told so allows
LIMITS = 200  # scenes that the limit is computed for
CRAMER_RAO = "Cramer-Rao limit, 1 source"
ENOUGH = 60  # draws of which a mean can be compared with another


class Method(StrEnum):
    """What is compared."""

    PAPERS = "papers: their noise, R"
    PURSUIT = "R"
    BREGMAN = "Bregman iteration"
    MIXTURE = "Gaussian mixture, EM"
    REFINED = "R, refined off the grid"
    POSTERIOR = "posterior (ours)"
    TOLD = "Bayes limit: told the number"

    def estimator(self, strengths: Strengths, count: int) -> Estimator:
        """With what it may know: of the strengths, and that sources are at most four, or how many they are."""
        made: dict[Method, Callable[[], Estimator]] = {
            Method.PAPERS: lambda: BasisPursuit(radius=Radius.PAPER),
            Method.PURSUIT: BasisPursuit,
            Method.BREGMAN: Bregman,
            Method.MIXTURE: lambda: Mixture(strengths.told, most=MOST),
            Method.REFINED: Refined,
            Method.POSTERIOR: lambda: PointSources(strengths.told, most=MOST),
            Method.TOLD: lambda: PointSources(strengths.told, most=count, least=count),
        }
        return made[self]()

    @property
    def calibration(self) -> Calibration:
        """How much noise its readings have."""
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


FAST = (Method.PAPERS, Method.PURSUIT, Method.BREGMAN)
RIVALS = (Method.PURSUIT, Method.MIXTURE, Method.REFINED)


Draws = Mapping[tuple[Strengths, Method], int]


def draws_of(fast: int, slow: tuple[int, int], posterior: tuple[int, int]) -> Draws:
    """How many random sets of sources each method gets; slow ones and the posterior by strengths, known and free."""
    own = dict.fromkeys((Method.POSTERIOR, Method.TOLD), posterior) | dict.fromkeys(FAST, (fast, fast))
    return {(kind, one): own.get(one, slow)[number] for number, kind in enumerate(Strengths) for one in Method}


FULL, QUICK = draws_of(2000, (150, 150), (800, 150)), draws_of(1000, (110, 4), (220, 4))


@dataclass(frozen=True)
class Score:
    """Earth mover distance to the truth: its mean over `draws`; share of maps that were empty; time for a frame."""

    method: Method
    draws: int
    distance: Mean
    empty: float
    milliseconds: float = field(compare=False)

    @property
    def mean(self) -> float:
        """Mean distance."""
        return self.distance.value

    def __str__(self) -> str:
        return str(self.distance)


@dataclass(frozen=True)
class Case:
    """Random sets of sources, how every method did, and what can be reached at all.

    `limit` is the mean Cramer-Rao limit of one source of known strength, `guess` the mean distance of the uniform map.
    `better` is the papers' distance over ours and `told` ours over that of the posterior which is told the number of
    sources, both on the same sources.
    """

    strengths: Strengths
    count: int
    scores: tuple[Score, ...]
    limit: float | None
    guess: float
    better: Mean
    told: Mean

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
            rows.append((CRAMER_RAO, *("-" if case.limit is None else f"{case.limit:.4f}" for case in cases)))
        rows.append(("uniform guess", *(f"{case.guess:.4f}" for case in cases)))
        title = f"Mean earth mover distance, {strengths}"
        return Table(title, ("", *(counted(case.count) for case in cases)), tuple(rows))

    def _ratios(self) -> Table:
        rows = [
            (
                f"{counted(case.count)}, {case.strengths.short}",
                f"{case.better.value:.2f} ± {case.better.error:.2f}",
                *(f"{case.ratio(Method.POSTERIOR, method):.2f}" for method in RIVALS),
                f"{case.told.value:.2f} ± {case.told.error:.2f}",
                "-" if case.limit is None else f"{case.of(Method.POSTERIOR).mean / case.limit:.2f}",
            )
            for case in self.cases
        ]
        names = ("papers/ours", "ours/R", "ours/EM", "ours/refined", "ours/Bayes", "ours/Cramer-Rao")
        return Table("Ratios of these", ("", *names), tuple(rows))

    def _costs(self) -> Table:
        rows = []
        for method in Method:
            scores = [[case.of(method) for case in self.part(strengths)] for strengths in Strengths]
            draws = (f"{own[0].draws}" for own in scores)
            empty = ("/".join(f"{100 * score.empty:.0f}" for score in own) for own in scores)
            times = (f"{np.mean([score.milliseconds for score in own]):.2g}" for own in scores)
            rows.append((str(method), *draws, *empty, *times))
        kinds = [strengths.short for strengths in Strengths]
        names = (f"{what}, {kind}" for what in ("draws", "empty %", "ms") for kind in kinds)
        title = "Draws, empty maps (they count as uniform), and milliseconds a frame by the clock of this run"
        return Table(title, ("", *names), tuple(rows))

    def measures(self) -> tuple[Measure, ...]:
        found = []
        for case in self.cases:
            name = f"{case.strengths.short}, {case.count}"
            known = [score for score in case.scores if score.draws >= ENOUGH]
            found += [Measure(f"{name}: {one.method}", one.mean, one.distance.error) for one in known]
            if case.of(Method.POSTERIOR).draws >= ENOUGH:
                found.append(Measure(f"{name}: papers/ours", case.better.value, case.better.error))
                found.append(Measure(f"{name}: ours/Bayes", case.told.value, case.told.error, slack=0.02))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        better = {kind: [case.better.value for case in self.part(kind)] for kind in Strengths}
        unit, free = (f"{min(better[kind]):.1f} to {max(better[kind]):.1f}" for kind in Strengths)
        told = [case.told.value for case in self.part(Strengths.UNIT)]
        below = any(case.limit is not None and case.of(Method.POSTERIOR).mean < case.limit for case in self.cases)
        bias = (
            " The posterior can be below it: it is not unbiased, and knows that sources are on the line and how strong "
            "they can be."
            if below
            else ""
        )
        return (
            "Six ways from noisy readings to a map, on the same random sources and at the same privacy: 100 places on "
            "a line, 50 sensors, T = 0.05, a move by one place hidden at (1, 0.1). The further left, the nearer to the "
            f"truth. The posterior and the mixture are told that sources have strength 1, or any up to it, and are at "
            f"most {MOST}; R, Bregman iteration and the refined R are told neither. The posterior is {unit} times "
            f"nearer to the truth than the papers' method with known strengths, and {free} times with free ones.",
            "The last row is the limit for any method: the same posterior, told also how many sources there are. Where "
            "they are and how strong is then drawn from what it assumes, up to the grid, and its map has the least "
            "expected distance, so that no method has clearly less on average. With known strengths ours has "
            f"{min(told):.2f} to {max(told):.2f} times that. The dotted line is the Cramer-Rao limit of one source, "
            f"for unbiased methods; of more it says little about maps, in which sources may change places.{bias}",
        )

    def goals(self) -> tuple[Goal, ...]:
        goals = []
        for case in self.part(Strengths.UNIT):
            least, better = (6 if case.count < 3 else 5), case.better.value
            goals.append(_goal(f"unit strengths, {case.count}: papers/ours at least {least}", better, better >= least))
            if case.limit is not None:
                far = case.of(Method.POSTERIOR).mean / case.limit
                goals.append(_goal(f"unit strengths, {case.count}: ours/limit at most 1.3", far, far <= 1.3))
        for case in self.part(Strengths.FREE):
            share = case.ratio(Method.POSTERIOR, Method.PURSUIT)
            goals.append(_goal(f"free strengths, {case.count}: ours/R at most 0.8", share, share <= 0.8))
        return tuple(goals)

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, len(Strengths), sharey=True, sharex=True)
        for axes, strengths in zip(panels, Strengths, strict=True):
            series = []
            for case in self.part(strengths):
                scores = [case.of(method).distance for method in Method]
                dots = Dots.of_count(case.count, [one.value for one in scores], [one.error for one in scores])
                series.append(dots)
                if case.limit is not None:
                    axes.axvline(case.limit, color=dots.color, linewidth=1.2, linestyle=":")
            log_scale(axes, (0.01, 0.02, 0.05, 0.1, 0.2))
            draw_dots(axes, list(Method), series)
            axes.set_title(str(strengths).capitalize())
            axes.set_xlabel("mean earth mover distance (bars: two standard errors)")
        panels[0].plot([], [], ":", color=SERIES[0], linewidth=1.2, label=CRAMER_RAO)
        legend_below(figure, panels[0])


def _goal(text: str, reached: float, met: bool) -> Goal:
    return Goal(text, f"{reached:.2f}", met)


def _work(*, quick: bool, seed: int, progress: Progress) -> Gallery:
    draws = QUICK if quick else FULL
    cases: list[Case] = []
    total = len(Strengths) * len(COUNTS)
    for number, strengths in enumerate(Strengths):
        for count in COUNTS:
            share = part(progress, 100 * len(cases), 100, 100 * total)
            cases.append(_case(strengths, count, draws, (seed, number, count), share))
    return Gallery(tuple(cases))


def _case(strengths: Strengths, count: int, draws: Draws, key: tuple[int, ...], progress: Progress) -> Case:
    rng = stream(*key)
    truth = np.zeros((max(draws[strengths, method] for method in Method), line().places))
    for scene in truth:
        scene[rng.choice(line().places, count, replace=False)] = strengths.draw(rng, count)
    scores, far = [], {}
    for number, method in enumerate(Method):
        progress(number, len(Method))
        estimator = method.estimator(strengths, count)
        score, far[method] = _score(method, estimator, truth[: draws[strengths, method]], key)
        scores.append(score)
    guess = distances_to(truth, np.zeros_like(truth))
    return Case(
        strengths,
        count,
        tuple(scores),
        limit=_limit(truth[:LIMITS]) if count == 1 and strengths is Strengths.UNIT else None,
        guess=float(guess.mean()),
        better=Mean.ratio(far[Method.PAPERS], far[Method.POSTERIOR]),
        told=Mean.ratio(far[Method.POSTERIOR], far[Method.TOLD]),
    )


def _score(method: Method, estimator: Estimator, truth: FloatArray, key: tuple[int, ...]) -> tuple[Score, FloatArray]:
    """How one method does, and its distance in each draw."""
    cloak = line_cloak(method.calibration)
    # the same random numbers for every method: only the size of the noise differs
    noisy = cloak.simulate(line().apply(truth), rng=stream(*key, 1))
    recover(noisy[:1], cloak, estimator=estimator)  # what is compiled or cached is not timed
    began = time.perf_counter()
    maps = recover(noisy, cloak, estimator=estimator).map
    seconds = time.perf_counter() - began
    distances = distances_to(truth, maps)
    empty = float((~maps.any(axis=1)).mean())
    return Score(method, len(truth), Mean.of(distances), empty, 1000 * seconds / len(truth)), distances


def distances_to(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """Earth mover distance of each map to its truth; an empty map counts as the uniform one."""
    return Distances.of(truth, maps).emd


def _limit(truth: FloatArray) -> float:
    """Mean Cramer-Rao limit of a lone unit source over the true places."""
    along, sigma = line().space.places[:, 0], line_cloak().sigma
    return float(np.mean([cramer_rao(line(), [along[scene > 0][0]], sigma).expected_emd for scene in truth]))


EXPERIMENT = Experiment(
    "estimators",
    "How far from the truth each estimator is, on the same data at the same privacy",
    Gallery,
    _work,
    minutes=1.8,
)
