"""Infrared pictures, simulated and real, cloaked: how many people are still found, and how closely."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from papers import bodies
from papers.bodies import BLOCK, COLUMNS, NOISY, ROWS, Body, Method, Trial, within
from papers.drawing import FAINT, INK, SERIES, finish
from papers.experiment import Experiment, Run, Size, stream
from papers.recordings import INFRARED, Infrared, read_infrared
from papers.result import Finding, Goal
from papers.rows import Row, pick, picked

FITTED = 8  # first pictures, which the model is fitted on; the others are tried
APART = 5  # seconds between real pictures, approximately
EPSILONS, QUICK_EPSILONS = (2.0, 4.0, 8.0, 16.0, 32.0), (16.0,)
REACH = 2.0  # pixels
SHOWN = 16.0  # epsilon of the views, and of the comparison with many pictures
STANDARD = Body(width=2.4, height=250.0, weakest=50.0, floor=40.0, misfit=0.0)  # of simulated pictures
PEOPLE = 4  # in each of them


@dataclass(frozen=True)
class Sizes:
    """How many pictures are tried.

    Of the simulated ones the posterior gets `made_up`, and `shown` at the epsilon that is shown; basis pursuit, which
    is faster, gets all `pursuit`. Each real one is shifted `slidings` times for basis pursuit; the posterior gets
    `real` of those.
    """

    made_up: int
    shown: int
    pursuit: int
    slidings: int
    real: int


FULL, QUICK, PROBE = Sizes(24, 200, 300, 10, 30), Sizes(0, 15, 100, 5, 1), Sizes(0, 1, 8, 1, 1)


class Cloaked(Finding):
    """How many people are found in cloaked pictures: simulated ones, and, in all but a probe, real ones."""

    size = (12.0, 7.2)

    @property
    def epsilons(self) -> list[float]:
        return [one.epsilon for one in picked(self.made_up, method=Method.OURS)]

    def goals(self) -> tuple[Goal, ...]:
        ours, papers = (
            [within(one, REACH).value for one in picked(self.made_up, method=method)]
            for method in (Method.OURS, Method.PAPERS)
        )
        ahead = min(np.subtract(ours, papers))
        text = f"simulated pictures: ours finds more within {REACH:g} pixels than the papers' method at every epsilon"
        return (Goal(text, f"at least {100 * ahead:+.0f} %", bool(ahead > 0)),)

    def text(self) -> str:
        return (
            f"{PEOPLE} people are anywhere in a simulated picture; a body is a round bump of {STANDARD.width:g} pixels "
            f"on a level floor; blocks of {BLOCK} x {BLOCK} pixels are the sensors; a move by {bodies.ALPHA:g} pixel "
            "is hidden in each picture."
        )

    def draw(self, figure: Figure) -> None:
        halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.3))
        plots = halves[0].subplots(2, 1, sharex=True)
        _draw_shares(plots[0], self.made_up, self.epsilons, "Simulated pictures: people anywhere")
        if self.real is None:
            return
        _draw_shares(plots[1], self.real.scores, self.epsilons, f"Real pictures of {self.real.people} people, shifted")
        plots[1].set_xlabel(
            f"epsilon of one picture (delta {bodies.DELTA:g}, a move by {bodies.ALPHA:g} pixel is hidden)"
        )
        handles = {name: one for axes in plots for one, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        halves[0].legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize=8)
        panels = halves[1].subplots(2, 2).ravel()
        for axes, view in zip(panels, self.real.views, strict=True):
            _draw_view(axes, view, self.real.truth)
        panels[0].plot([], [], "+", color=SERIES[2], markersize=9, markeredgewidth=1.5, label="labelled by hand")
        panels[0].plot([], [], "o", color=SERIES[1], markersize=9, fillstyle="none", label="found")
        halves[1].legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _draw_shares(axes: Any, scores: Sequence[Row], epsilons: Sequence[float], title: str) -> None:
    """Draw the share found within reach over epsilon; bars are two standard errors."""
    looks = zip(NOISY, (SERIES[0], SERIES[3], SERIES[1]), "o^s", (1.0, 1.04, 0.96), strict=True)
    for method, color, marker, aside in looks:  # aside, so that bars do not hide each other
        near = [within(pick(scores, method=method, epsilon=epsilon), REACH) for epsilon in epsilons]
        values = np.array([100 * one.value for one in near])
        bars = np.array([200 * one.error for one in near])
        sides = (np.minimum(bars, values), np.minimum(bars, 100 - values))  # a share is between 0 and 100 %
        look: Any = {"marker": marker, "color": color, "elinewidth": 1, "capsize": 2, "label": str(method)}
        axes.errorbar(aside * np.array(epsilons), values, yerr=sides, **look)
    least = 100 * within(pick(scores, method=Method.GUESS), REACH).value
    limits = picked(scores, method=Method.LIMIT)
    bound = [(one.epsilon, max(100 * within(one, REACH).value, least)) for one in limits]
    if bound:
        axes.plot(*zip(*bound, strict=True), "--", color=INK, linewidth=1, label=str(Method.LIMIT))
    for method, style in ((Method.CLEAR, "-."), (Method.CONSTANT, (0, (1, 4))), (Method.GUESS, ":")):
        for one in picked(scores, method=method):
            axes.axhline(100 * within(one, REACH).value, color=INK, linestyle=style, linewidth=1, label=str(method))
    up = f"% found within {REACH:g} pixels (bars: 2 errors)"
    finish(axes, title, y=up, ticks=epsilons, ylim=(0, 100))


def _draw_view(axes: Any, view: Row, truth: Sequence[Sequence[float]]) -> None:
    picture = np.array(view.values).reshape(view.rows, -1)
    axes.imshow(picture, extent=(0, COLUMNS, ROWS, 0), cmap="Greys")
    axes.plot(*np.array(truth).T, "+", color=SERIES[2], markersize=9, markeredgewidth=1.5)
    if view.found:
        axes.plot(*np.array(view.found).T, "o", color=SERIES[1], markersize=9, fillstyle="none", markeredgewidth=1.5)
    axes.set(xticks=(), yticks=())
    axes.set_title(view.name, fontsize=9)
    axes.spines[["top", "right"]].set(visible=True, color=FAINT)


def simulated_pictures(size: Sizes, epsilons: Iterable[float], seed: int) -> tuple[Row, ...]:
    """Try methods on pictures of people anywhere that contain bumps on a level floor and nothing else."""
    rng = stream(seed, 100)
    people = tuple(rng.uniform((1.0, 1.0), (COLUMNS - 1.0, ROWS - 1.0), (PEOPLE, 2)) for _ in range(size.pursuit))
    tall = [rng.uniform(STANDARD.weakest, STANDARD.height, PEOPLE) for _ in people]
    readings = np.array([bodies.bumps(at, STANDARD.width) @ height for at, height in zip(people, tall, strict=True)])
    trial = Trial(STANDARD, STANDARD.camera, readings, people)
    scores = [bodies.guess(people, stream(seed, 101))]
    for number, epsilon in enumerate(epsilons):
        few = trial.first(size.shown if epsilon == SHOWN else size.made_up)  # the posterior is slow
        key = (seed, 102, number)
        scores += [bodies.score(few if method is Method.OURS else trial, method, epsilon, key) for method in NOISY]
        scores.append(bodies.limit(trial, tall, epsilon, stream(seed, 103)))
    return tuple(scores)


def real_pictures(pictures: Infrared, size: Sizes, epsilons: Iterable[float], seed: int) -> Row:
    """Fit the model on the first pictures, and try the others at each epsilon: as they are, and mirrored and shifted.

    `labels` counts people in all `pictures`, `stronger` those among them whom the claim does not cover.
    """
    body = bodies.fit(bodies.blocks(pictures.frames[:FITTED]), pictures.people[:FITTED])
    homes = bodies.mean_positions(pictures.people[:FITTED])
    tried = Infrared(pictures.frames[FITTED:], pictures.people[FITTED:])
    names = bodies.identify(tried.people, homes)
    rng = stream(seed, 200)
    many = _trial(body, [bodies.shifted(tried, rng) for _ in range(size.slidings)])
    few, known = many.first(size.real), names * size.slidings
    scores = [
        bodies.score(few, Method.CLEAR, None, (seed, 201), known),
        bodies.always(many.people, bodies.positions(homes), known),
        bodies.guess(many.people, stream(seed, 202)),
    ]
    for number, epsilon in enumerate(epsilons):
        key = (seed, 203, number)
        scores += [
            bodies.score(few if method is Method.OURS else many, method, epsilon, key, known) for method in NOISY
        ]
    still = _trial(body, [tried])
    return Row(
        people=len(homes),
        pictures=len(tried),
        labels=sum(len(at) for at in tried.people),
        stronger=_stronger(still),
        body=Row(**asdict(body)),
        unmoved=bodies.always(tried.people, bodies.positions(homes), names),
        scores=tuple(scores),
        views=_views(tried.frames[0], still.first(1), (seed, 204)),
        truth=bodies.positions(tried.people[0]),
    )


def _trial(body: Body, pictures: Sequence[Infrared]) -> Trial:
    readings = np.concatenate([bodies.blocks(one.frames) for one in pictures]) - body.floor
    return Trial(body, body.camera, readings, tuple(at for one in pictures for at in one.people))


def _stronger(trial: Trial) -> int:
    """How many people are stronger than the claim covers."""
    pairs = zip(trial.readings, trial.people, strict=True)
    return sum(int((bodies.heights(y, at, trial.body.width)[:-1] > trial.body.height).sum()) for y, at in pairs)


def _views(frame: FloatArray, trial: Trial, key: tuple[int, ...]) -> tuple[Row, ...]:
    """One picture as it is, in blocks, and as two methods see it, row by row; and where they find people."""

    def view(name: str, rows: int, values: FloatArray, found: Sequence[Sequence[float]]) -> Row:
        return Row(name=name, rows=rows, values=tuple(values.round(1).tolist()), found=tuple(found))

    views = [view("a real picture as the camera sees it", ROWS, frame.ravel(), ())]
    for method, epsilon in ((Method.CLEAR, None), (Method.OURS, SHOWN), (Method.PAPERS, SHOWN)):
        readings, found = trial.look(method, epsilon, key)
        name = f"{method}" if epsilon is None else f"{method}, epsilon {epsilon:g}"
        views.append(view(name, ROWS // BLOCK, readings[0], found[0]))
    return tuple(views)


def _work(run: Run) -> Cloaked:
    size = run.choose(FULL, QUICK, PROBE)
    epsilons = run.choose(EPSILONS, QUICK_EPSILONS, QUICK_EPSILONS)
    made_up, real = simulated_pictures(size, epsilons, run.seed), None
    if run.size is not Size.PROBE:
        real = real_pictures(read_infrared(), size, epsilons, run.seed)
    return Cloaked(made_up=made_up, real=real)


EXPERIMENT = Experiment(
    "recorded-warmth",
    "Cloaked infrared pictures, simulated and real: how many people are found, and how closely",
    Cloaked,
    _work,
    minutes=2.0,
    data=(INFRARED,),
)
