"""Estimators on the same data, at the same privacy."""

import time
from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao
from cloakwork.recovery import BasisPursuit, Bregman, Estimator, PointSources, recover
from papers.calibration import Calibration, PapersPursuit
from papers.drawing import SERIES, draw_dots, legend_below, log_x
from papers.experiment import Experiment, Run, stream
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick, picked
from papers.trials import Distances, Setting, Strengths, uniform_errors

COUNTS = (1, 2, 3)
MOST = 4  # sources that an estimator considers
LIMITS = 200  # scenes that the Cramer-Rao bound is computed for
CRAMER_RAO = "Cramer-Rao bound, 1 source"
ENOUGH = 60  # draws whose time is measured
SETTING = Setting()  # the line of the papers' first figures, a move by one place hidden at (1, 0.1)


class Method(StrEnum):
    """An estimator with its noise."""

    PAPERS = "papers' noise, basis pursuit"
    PURSUIT = "basis pursuit"
    BREGMAN = "Bregman iteration"
    POSTERIOR = "posterior (ours)"
    TOLD = "Bayes limit (number known)"

    def estimator(self, strengths: Strengths, count: int) -> Estimator:
        """The estimator, with what it may know: the strengths, and at most four sources, or their exact number."""
        made: dict[Method, Callable[[], Estimator]] = {
            Method.PAPERS: PapersPursuit,
            Method.PURSUIT: BasisPursuit,
            Method.BREGMAN: Bregman,
            Method.POSTERIOR: lambda: PointSources(strengths.prior, max_sources=MOST),
            Method.TOLD: lambda: PointSources(strengths.prior, max_sources=count, min_sources=count),
        }
        return made[self]()

    @property
    def calibration(self) -> Calibration:
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


FAST = (Method.PAPERS, Method.PURSUIT, Method.BREGMAN)
Draws = Mapping[tuple[Strengths, Method], int]


def draws_of(fast: int, *posterior: int) -> Draws:
    """How many random sets of sources each method gets, of the posterior by strengths: known and unknown."""
    return {
        (kind, one): fast if one in FAST else draws
        for kind, draws in zip(Strengths, posterior, strict=True)
        for one in Method
    }


FULL, QUICK, PROBE = draws_of(2000, 800, 150), draws_of(300, 60, 2), draws_of(10, 3, 2)


def sources_text(number: int) -> str:
    """A number of sources in words."""
    return f"{number} source{'' if number == 1 else 's'}"


class Gallery(Finding):
    """The error of every estimator, for one to three sources of known and of unknown strength."""

    size = (11.0, 4.6)

    def text(self) -> str:
        return (
            "Four estimators recover a map from noisy readings, on the same random sources and at the same privacy: "
            "100 places on a line, 50 sensors, T = 0.05, a move by one place hidden at (1, 0.1). Left is better. The "
            f"posterior knows that sources have strength 1 (or at most 1) and that there are at most {MOST}; basis "
            "pursuit and Bregman iteration know neither."
        )

    def goals(self) -> tuple[Goal, ...]:
        goals = []
        for case in self.cases:
            name = f"{case.strengths.partition(' ')[0]} strength, {sources_text(case.count)}"
            ours = pick(case.scores, method=Method.POSTERIOR).distance.value
            if case.strengths == Strengths.UNIT:
                least, better = (6 if case.count < 3 else 5), case.better.value
                goals.append(Goal(f"{name}: papers/ours at least {least}", f"{better:.2f}", better >= least))
                if case.limit is not None:
                    over = ours / case.limit
                    goals.append(Goal(f"{name}: ours/Cramer-Rao at most 1.3", f"{over:.2f}", over <= 1.3))
            else:
                share = ours / pick(case.scores, method=Method.PURSUIT).distance.value
                goals.append(Goal(f"{name}: ours/basis pursuit at most 0.8", f"{share:.2f}", share <= 0.8))
        return tuple(goals)

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, len(Strengths), sharey=True, sharex=True)
        for axes, strengths in zip(panels, Strengths, strict=True):
            cases = list(picked(self.cases, strengths=strengths))
            log_x(axes, (0.01, 0.02, 0.05, 0.1, 0.2))
            series = {sources_text(case.count): [one.distance for one in case.scores] for case in cases}
            draw_dots(axes, list(Method), series)
            axes.set_title(str(strengths).capitalize())
            axes.set_xlabel("mean earth mover distance (bars: two standard errors)")
            for case in cases:
                if case.limit is not None:
                    axes.axvline(case.limit, color=SERIES[0], linewidth=1.2, linestyle=":", label=CRAMER_RAO)
        legend_below(figure, panels[:1])


def _work(run: Run) -> Gallery:
    draws = run.choose(FULL, QUICK, PROBE)
    kinds = [(number, kind, count) for number, kind in enumerate(Strengths) for count in COUNTS]
    return Gallery(cases=tuple(_case(kind, count, draws, (run.seed, number, count)) for number, kind, count in kinds))


def _case(strengths: Strengths, count: int, draws: Draws, key: tuple[int, ...]) -> Row:
    """Random sets of sources, the score of every method, and what can be reached.

    `limit` is the mean Cramer-Rao bound of one source of known strength, `guess` the mean distance of the uniform map.
    `better` is the papers' distance over ours, and `told` ours over that of the posterior that knows the number of
    sources, both on the same sources.
    """
    rng, places = stream(*key), SETTING.n
    truth = np.zeros((max(draws[strengths, method] for method in Method), places))
    for scene in truth:
        scene[rng.choice(places, count, replace=False)] = strengths.draw(rng, count)
    scores, errors = [], {}
    for method in Method:
        estimator = method.estimator(strengths, count)
        score, errors[method] = _score(method, estimator, truth[: draws[strengths, method]], key)
        scores.append(score)
    return Row(
        strengths=strengths,
        count=count,
        scores=tuple(scores),
        limit=_limit(truth[:LIMITS]) if count == 1 and strengths is Strengths.UNIT else None,
        guess=float(uniform_errors(truth).mean()),
        better=Mean.ratio(errors[Method.PAPERS], errors[Method.POSTERIOR]),
        told=Mean.ratio(errors[Method.POSTERIOR], errors[Method.TOLD]),
    )


def _score(method: Method, estimator: Estimator, truth: FloatArray, key: tuple[int, ...]) -> tuple[Row, FloatArray]:
    """The score of one method and its distance in each draw."""
    cloak = SETTING.cloak(method.calibration)
    # all methods get the same random numbers: only the scale of the noise differs
    noisy = cloak.simulate(SETTING.line.apply(truth), rng=stream(*key, 1))
    if len(truth) >= ENOUGH:  # the time of fewer draws says little
        recover(noisy[:1], cloak, estimator=estimator)  # compiles and fills caches before the clock starts
    began = time.perf_counter()
    maps = recover(noisy, cloak, estimator=estimator).map
    took = 1000 * (time.perf_counter() - began) / len(truth)
    errors, empty = Distances.between(truth, maps).emd, float((~maps.any(axis=1)).mean())
    return Row(method=method, draws=len(truth), distance=Mean.of(errors), empty=empty, milliseconds=took), errors


def _limit(truth: FloatArray) -> float:
    """The mean Cramer-Rao bound of a single source of strength 1 over the true places."""
    along, sigma = SETTING.line.space.places[:, 0], SETTING.cloak().sigma
    return float(np.mean([cramer_rao(SETTING.line, [along[scene > 0][0]], sigma).expected_emd for scene in truth]))


EXPERIMENT = Experiment(
    "estimators", "The error of each estimator on the same data at the same privacy", Gallery, _work, minutes=1.8
)
