"""Counts of people in four rooms: published arrivals and running totals, and schedules that are learnt from counts."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray, IntArray
from cloakwork.series import Contribution, Experts, Filter, Learner, RunningSum, SeriesCloak, WindowSum
from papers.drawing import FAINT, INK, SERIES, curve, finish
from papers.experiment import Experiment, Run, stream
from papers.recordings import numbers, read_columns
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick, picked

COUNTS = Path("people_counts_sdu") / "minutes.csv.gz"
ROOMS = (1, 2, 3, 4)
HOURS = 360
DELTA = 1e-6
EPSILONS = (1.0, 2.0, 4.0)
EACH_HOUR, TOTAL, VISITORS = "each hour", "running total", "running total, a person of 10 visits, 12 hours apart"
VISITS = Contribution(10, per_bin=1, separation=12)
MOST = 20  # people: more count as so many
BY_DAY, BY_NIGHT = (0.1, 0.3, 0.5, 0.8), (0.0, 0.2)  # levels of ventilation


class RecordedCounts(Finding):
    """Counts of four rooms, published and learnt from."""

    size = (10.0, 4.4)

    def mean(self, name: str, kind: str, epsilon: float) -> float:
        """The mean over the rooms of published errors, or of those of the best constant."""
        rows = picked(self.published, kind=kind, epsilon=epsilon)
        return float(np.mean([one.error.value if name == "error" else one.constant for one in rows]))

    def goals(self) -> tuple[Goal, ...]:
        least = min((one.ahead for one in picked(self.learnt, epsilon=1.0)), key=lambda ahead: ahead.value)
        text = "at epsilon 1 the learner loses less than the middle schedule in every room"
        return (Goal(text, f"by at least {least} a day", least.value > 0),)

    def text(self) -> str:
        kinds = (EACH_HOUR, TOTAL)
        hourly = ["/".join(f"{self.mean('error', kind, e):.1f}" for e in EPSILONS) for kind in kinds]
        constant = [f"{self.mean('constant', kind, EPSILONS[0]):.1f}" for kind in kinds]
        one = list(picked(self.learnt, epsilon=1.0))
        return (
            f"Cameras counted people in {len(ROOMS)} rooms of a university over {self.hours} hours. Where one visit is "
            "hidden, arrivals by the hour are published with a root mean squared error of "
            f"{hourly[0]} at epsilon {'/'.join(f'{e:g}' for e in EPSILONS)} (the best constant: {constant[0]}), "
            f"their running total with {hourly[1]} ({constant[1]}); these are means over the rooms. At epsilon 1 a "
            f"learner of ventilation schedules loses {_span([x.loss.value for x in one])} a day, the best schedule "
            f"{_span([x.best for x in one])}, the worst {_span([x.worst for x in one])}."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for number, (kind, marker) in enumerate(zip((EACH_HOUR, TOTAL, VISITORS), "osD", strict=True)):
            means = [self.mean("error", kind, epsilon) for epsilon in EPSILONS]
            curve(left, EPSILONS, means, number, marker=marker, label=kind)
            if kind != VISITORS:
                level = self.mean("constant", kind, EPSILONS[0])
                left.axhline(level, color=SERIES[number], linestyle=":", linewidth=1)
        left.set_yscale("log")
        title, across, up = "published (dotted: best constant)", "epsilon", "root mean squared error, visits"
        finish(left, title, across, up, ticks=EPSILONS, legend=8)
        for room in ROOMS:
            one = pick(self.learnt, room=room)
            right.plot([room, room], [one.best, one.worst], color=FAINT, linewidth=6, solid_capstyle="butt")
            right.plot([room - 0.12, room + 0.12], [one.middle] * 2, color=INK, linewidth=1)
        for k, epsilon in enumerate(EPSILONS):
            mine = list(picked(self.learnt, epsilon=epsilon))
            look: Any = {"linestyle": "", "marker": "o", "label": f"learner, epsilon {epsilon:g}"}
            curve(right, [one.room + 0.1 * (k - 1) for one in mine], [one.loss for one in mine], k, **look)
        right.set_xticks(ROOMS)
        right.set(title="grey: best to worst schedule, line: the middle", xlabel="room", ylabel="loss of a day")
        right.legend(fontsize=8)


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


@cache
def hourly() -> tuple[dict[int, IntArray], dict[int, IntArray]]:
    """Return arrivals and mean counts of each room by the hour, whole numbers of shape (hours,)."""
    table = read_columns(COUNTS)
    arrivals, present = {}, {}
    for room in ROOMS:
        people = np.nan_to_num(numbers(table[f"people_{room}"]))[: 60 * HOURS]
        steps = np.maximum(np.diff(people, prepend=0), 0)
        arrivals[room] = steps.reshape(-1, 60).sum(axis=1).astype(np.int64)
        present[room] = np.minimum(np.rint(people.reshape(-1, 60).mean(axis=1)), MOST).astype(np.int64)
    return arrivals, present


def loss(level: float, people: int) -> float:
    """The loss of an hour: too little air costs twice as much as too much."""
    wanted = people / MOST
    return wanted - level if wanted > level else (level - wanted) / 2


def _published(room: int, kind: str, epsilon: float, draws: int, key: tuple[int, ...]) -> Row:
    """The root mean squared error of published arrivals in one room, over draws: it does not depend on the arrivals.

    One visit is hidden, or a person of several. `constant` is the error of the best constant.
    """
    each: Filter = WindowSum(1) if kind == EACH_HOUR else RunningSum()
    contribution = VISITS if kind == VISITORS else 1
    arrivals = hourly()[0][room]
    cloak = SeriesCloak(each, len(arrivals), epsilon=epsilon, delta=DELTA, contribution=contribution)
    true = arrivals if kind == EACH_HOUR else np.cumsum(arrivals)
    errors = [
        np.sqrt(np.mean((cloak.simulate(arrivals, rng=stream(*key, draw)).values.ravel() - true) ** 2))
        for draw in range(draws)
    ]
    error = Mean.of(np.array(errors))
    return Row(room=room, kind=kind, epsilon=epsilon, error=error, constant=float(true.std()))


@cache
def _experts() -> tuple[Experts, FloatArray]:
    schedules = {
        f"{day} by day, {night} by night": [day if 8 <= hour < 18 else night for hour in range(24)]
        for day in BY_DAY
        for night in BY_NIGHT
    }
    table = np.array(
        [[[loss(levels[hour], k) for k in range(MOST + 1)] for levels in schedules.values()] for hour in range(24)]
    )
    return Experts(tuple(schedules), table), table


def _learnt(room: int, epsilon: float, draws: int, key: tuple[int, ...]) -> Row:
    """What a learner loses in a room in a day, and what the best, the middle and the worst schedule lose.

    `ahead` is how much more the middle schedule loses. Standard errors are over days.
    """
    experts, table = _experts()
    people = hourly()[1][room]
    hours = np.arange(len(people)) % 24
    losses = table[hours, :, people]
    learner = Learner(experts, horizon=len(people), epsilon=epsilon, delta=DELTA)
    chosen = np.mean([learner.simulate(people, hours, rng=stream(*key, draw)) for draw in range(draws)], axis=0)
    mine = (chosen * losses).sum(axis=1).reshape(-1, 24).sum(axis=1)
    days = losses.reshape(len(mine), 24, -1).sum(axis=1)
    days = days[:, days.sum(axis=0).argsort()]
    middle = np.median(days[:, [(days.shape[1] - 1) // 2, days.shape[1] // 2]], axis=1)
    return Row(
        room=room,
        epsilon=epsilon,
        loss=Mean.of(mine),
        ahead=Mean.of(middle - mine),
        best=float(days[:, 0].mean()),
        middle=float(middle.mean()),
        worst=float(days[:, -1].mean()),
    )


def _work(run: Run) -> RecordedCounts:
    draws = run.choose(40, 12, 2)
    published, learnt = [], []
    for room in ROOMS:
        for k, epsilon in enumerate(EPSILONS):
            published += [
                _published(room, kind, epsilon, draws, (run.seed, room, k, number))
                for number, kind in enumerate((EACH_HOUR, TOTAL, VISITORS))
            ]
            learnt.append(_learnt(room, epsilon, draws, (run.seed, room, k, 9)))
    return RecordedCounts(hours=HOURS, published=tuple(published), learnt=tuple(learnt))


EXPERIMENT = Experiment(
    "recorded-counts",
    "Counts of people in four rooms: published by the hour, and learnt from",
    RecordedCounts,
    _work,
    minutes=0.3,
    data=(COUNTS,),
)
