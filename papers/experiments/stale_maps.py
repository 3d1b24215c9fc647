"""A radio map of a library over two years: how far its answers are off by month, and whether `fit` notices."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork.privacy import Cloak
from cloakwork.recovery import PointSources, recover
from papers.drawing import INK, SERIES, curve, draw_bars
from papers.experiment import Experiment, Run, stream
from papers.recordings.radio import AREA, LIBRARY, library, squares
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick, picked

DELTA, ALPHA = 1e-5, 0.1
MONTHS = (1, 2, 13, 25)
QUICK_MONTHS = (1, 13)
EPSILONS = (None, 1.0, 2.0, 4.0)
OWN, MAP = "noise of the readings", "noise and error of the map"
FULL, QUICK, PROBE = 480, 120, 12  # readings of each month
MAX_DOUBT, MIN_ALARM = 0.1, 0.9


class StaleMaps(Finding):
    """A map of month 1, used for two years."""

    size = (9.0, 4.2)

    def goals(self) -> tuple[Goal, ...]:
        early, late = (pick(self.months, month=k, epsilon=None, assumed=MAP).doubted for k in (1, 13))
        return (
            Goal(f"at most {MAX_DOUBT:g} of the readings of month 1 are doubted", str(early), early.value <= MAX_DOUBT),
            Goal(f"at least {MIN_ALARM:g} of those of month 13 are doubted", str(late), late.value >= MIN_ALARM),
        )

    def text(self) -> str:
        def doubted(assumed: str) -> str:
            return ", ".join(f"{100 * one.doubted.value:.0f}" for one in clear if one.assumed == assumed)

        clear = [one for one in self.months if one.epsilon is None]
        months = ", ".join(str(one.month) for one in clear if one.assumed == MAP)
        first, last = clear[1], clear[-1]
        return (
            f"A map of Wi-Fi in a library, made in month 1, is {first.distance.value:.1f} ± {first.distance.error:.1f} "
            f"m off on average in month 1 and {last.distance.value:.1f} ± {last.distance.error:.1f} m in month "
            f"{last.month} (the best constant guess: {last.constant.value:.1f} m). If recovery takes the scatter of "
            f"the survey for the only noise, `fit` doubts {doubted(OWN)} % of the readings of months {months}; with "
            f"the error of the map, which the survey shows in areas that it leaves out, {doubted(MAP)} %."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        names, x = [str(month) for month in MONTHS], range(len(MONTHS))
        doubted = {one: [m.doubted for m in picked(self.months, epsilon=None, assumed=one)] for one in (OWN, MAP)}
        draw_bars(left, names, doubted, scale=100, colors=(SERIES[1], SERIES[0]))
        left.axhline(100 * MAX_DOUBT, color=INK, linestyle=":", linewidth=1)
        left.set(xlabel="month", ylabel="% of readings doubted (bars: 2 errors)")
        for k, epsilon in enumerate(EPSILONS):
            far = [one.distance for one in picked(self.months, epsilon=epsilon, assumed=MAP)]
            look: Any = {
                "linestyle": "",
                "marker": "o",
                "label": "no noise" if epsilon is None else f"epsilon {epsilon:g}",
            }
            curve(right, [place + 0.06 * (k - 1.5) for place in x], far, k, **look)
        guess = [one.constant.value for one in picked(self.months, epsilon=None, assumed=MAP)]
        right.plot(x, guess, "k_", markersize=18, label="best constant")
        right.set_xticks(x, names)
        right.set(xlabel="month", ylabel="mean distance, m", ylim=(0, None))
        left.legend(fontsize=8, loc="upper left")
        right.legend(fontsize=8)


def _month(month: int, epsilon: float | None, assumed: str, count: int, seed: int) -> Row:
    """What recovery finds in one month; standard errors are over areas of 2 m.

    `assumed` is what recovery takes for noise, `constant` the distance of the best constant guess, in metres.
    """
    known = library()
    points, readings = known.months[month]
    chosen = stream(seed, month).permutation(len(points))[:count]
    points, readings = points[chosen], readings[chosen]
    noise = 0.0
    if epsilon is not None:
        cloak = Cloak(known.map.physics, epsilon=epsilon, delta=DELTA, alpha=ALPHA)
        readings, noise = cloak.simulate(readings, rng=stream(seed, month, round(epsilon))), float(cloak.sigma)
    error = None if assumed == OWN else known.error.error
    white = known.own if assumed == OWN else known.error.white
    estimator = PointSources(1.0, min_sources=1, max_sources=1)
    found = recover(readings, known.map.physics, sigma=np.hypot(noise, white), drift=error, estimator=estimator)
    places = known.map.physics.space.places
    cells = np.array([sources[0].place for sources in found.sources])
    far = np.hypot(*(places[cells] - points).T)
    true = known.map.cells_of(points)
    holds = np.array([k in sources[0].vicinity for k, sources in zip(true.tolist(), found.sources, strict=True)])
    doubts = np.array([fit.doubtful for fit in found.fit])
    centre, area = np.median(known.surveyed, axis=0), squares(points, AREA)
    constant, distance, held, doubted = (
        Mean.over(each.astype(np.float64), area) for each in (np.hypot(*(points - centre).T), far, holds, doubts)
    )
    return Row(
        month=month,
        epsilon=epsilon,
        assumed=assumed,
        frames=len(points),
        constant=constant,
        median=float(np.median(far)),
        distance=distance,
        held=held,
        doubted=doubted,
    )


def _work(run: Run) -> StaleMaps:
    count = run.choose(FULL, QUICK, PROBE)
    epsilons = run.choose(EPSILONS, EPSILONS[:1], EPSILONS[:1])
    kinds = [(None, OWN), *((epsilon, MAP) for epsilon in epsilons)]
    months = run.choose(MONTHS, QUICK_MONTHS, MONTHS)
    return StaleMaps(months=tuple(_month(month, *kind, count, run.seed) for month in months for kind in kinds))


EXPERIMENT = Experiment(
    "stale-maps",
    "A radio map over two years: how far it is off, and whether recovery notices",
    StaleMaps,
    _work,
    minutes=1.0,
    data=(LIBRARY,),
)
