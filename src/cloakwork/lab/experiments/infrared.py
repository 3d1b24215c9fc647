"""Real infrared pictures, cloaked: how many people are still found in them, and how near."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray
from cloakwork.lab.bodies import BLOCK, COLUMNS, ROWS, Body, Trial, blocks, bumps, fit, heights
from cloakwork.lab.experiment import Experiment, Progress, stream
from cloakwork.lab.recorded import INFRARED, Infrared, Position, data_file, needed, read_infrared
from cloakwork.lab.result import Finding, Goal, Measure, Table
from cloakwork.lab.style import FAINT, INK, SERIES, log_scale
from cloakwork.lab.trials import Mean
from cloakwork.privacy import Calibration, Cloak

FITTED = 8  # first frames, which the model of a body is made from; the others are tried
EPSILONS, QUICK_EPSILONS = (2.0, 4.0, 8.0, 16.0, 32.0), (16.0,)
DELTA, ALPHA = 1e-5, 1.0  # a move by one pixel is hidden
STRIDE, QUICK_STRIDE = 1, 15  # of the tried frames, which are ten seconds or so apart
WITHIN = (1.0, 2.0, 3.0, 4.0, 6.0)
NEAR = 2.0
SHOWN = 16.0  # epsilon of the picture
GUESSES = 200
MADE_UP, QUICK_MADE_UP = 24, 6  # pictures that follow the model exactly
STANDARD = Body(width=2.4, height=250.0, weakest=50.0, floor=40.0, misfit=0.0)  # what they are made of


class Method(StrEnum):
    """A way from a picture to where people are, told how many there are, which no cloak hides."""

    CLEAR = "no noise"
    OURS = "exact noise, posterior (ours)"
    PAPERS = "papers: their noise, R"
    GUESS = "a guess, without looking"


@dataclass(frozen=True)
class Score:
    """Share of the people that were found within each of `WITHIN` pixels, with its standard error."""

    method: Method
    epsilon: float | None
    shares: tuple[Mean, ...]

    @property
    def near(self) -> Mean:
        """The share within two pixels."""
        return self.shares[WITHIN.index(NEAR)]


@dataclass(frozen=True)
class View:
    """One picture: what is seen of it, one number a block, and where people are found."""

    name: str
    values: tuple[float, ...]
    found: tuple[Position, ...]


@dataclass(frozen=True)
class Cloaked(Finding):
    """How many people are found in cloaked pictures; `frames` is 0 where there were none to try.

    `made_up` is the same in made-up pictures, which follow the model exactly.
    """

    size: ClassVar[tuple[float, float]] = (12.0, 5.4)
    frames: int
    made_up: tuple[Score, ...]
    people: int = 0
    stronger: int = 0
    body: Body | None = None
    scores: tuple[Score, ...] = ()
    views: tuple[View, ...] = ()
    truth: tuple[Position, ...] = ()

    def of(self, method: Method, epsilon: float | None = None) -> Score:
        """How one method did."""
        return next(one for one in self.scores if one.method is method and one.epsilon == epsilon)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Those that were tried."""
        return tuple(one.epsilon for one in self.scores if one.method is Method.OURS and one.epsilon is not None)

    def tables(self) -> tuple[Table, ...]:
        if self.body is None:
            return (Table("Not run", ("", ""), (("what is missing", needed(INFRARED)),)), self._made_up())
        rows = [
            (str(one.method), "-" if one.epsilon is None else f"{one.epsilon:g}", *(_percent(s) for s in one.shares))
            for one in self.scores
        ]
        title = f"Percent of {self.people} people in {self.frames} pictures that are found within so many pixels"
        body = (
            ("standard deviation of a body, pixels", f"{self.body.width:.1f}"),
            ("height of the strongest body protected", f"{self.body.height:.0f}"),
            ("height of the weakest of the fitted ones", f"{self.body.weakest:.0f}"),
            ("level of the floor", f"{self.body.floor:.0f}"),
            ("what the model leaves of a picture, root mean square", f"{self.body.misfit:.0f}"),
            ("people in the tried pictures that are stronger", f"{self.stronger} of {self.people}"),
        )
        return (
            Table(title, ("", "epsilon", *(f"{r:g}" for r in WITHIN)), tuple(rows)),
            Table(f"The model, fitted on {FITTED} other pictures (scale 0 to 255)", ("", ""), body),
            self._made_up(),
        )

    def _made_up(self) -> Table:
        rows = [(str(one.method), f"{one.epsilon:g}", *(_percent(s) for s in one.shares)) for one in self.made_up]
        return Table(
            "The same in made-up pictures that follow the model exactly",
            ("", "epsilon", *(f"{r:g}" for r in WITHIN)),
            tuple(rows),
        )

    def goals(self) -> tuple[Goal, ...]:
        if not self.frames:
            return ()
        pairs = [(self.of(Method.OURS, e).near, self.of(Method.PAPERS, e).near) for e in self.epsilons]
        ahead = min(ours.value - papers.value for ours, papers in pairs)
        return (
            Goal("ours finds more people than the papers' way, at every epsilon", f"{100 * ahead:+.0f} %", ahead > 0),
        )

    def measures(self) -> tuple[Measure, ...]:
        kinds = (("made-up pictures", self.made_up), ("real pictures", self.scores))
        return tuple(
            Measure(f"{name}, {one.method}, epsilon {one.epsilon or 0:g}", one.near.value, one.near.error, slack=0.1)
            for name, scores in kinds
            for one in scores
        )

    def words(self) -> tuple[str, ...]:
        if self.body is None:
            return (f"The real pictures were not tried. {needed(INFRARED)} {self._said}",)
        first, last = self.epsilons[0], self.epsilons[-1]
        clear, guess = self.of(Method.CLEAR).near.value, self.of(Method.GUESS).near.value
        return (
            f"{self.frames} pictures of a thermal camera on an office ceiling, {self.people} people in them. Blocks of "
            f"{BLOCK} x {BLOCK} pixels are the sensors, and the model is as plain as can be: a body is a round bump of "
            f"{self.body.width:.1f} pixels on a level floor. It is fitted on {FITTED} other pictures, which a real "
            "installation must not do with people in the room; and what is claimed, that a move by one pixel is "
            f"hidden, is claimed for this model and bodies up to its height ({self.stronger} of the {self.people} "
            "were stronger). Desks and machines are warm too, and the model knows nothing of them.",
            f"Without any noise {100 * clear:.0f} % of the people are found within {NEAR:g} pixels, and a guess finds "
            f"{100 * guess:.0f} %: compare with these. At epsilon {first:g} ours finds "
            f"{100 * self.of(Method.OURS, first).near.value:.0f} %, at {last:g} "
            f"{100 * self.of(Method.OURS, last).near.value:.0f} %; the papers' noise and R "
            f"{100 * self.of(Method.PAPERS, first).near.value:.0f} % and "
            f"{100 * self.of(Method.PAPERS, last).near.value:.0f} %. All are told how many people there are, which "
            "no cloak hides. R often returns fewer sources than that, or none, and people that it misses count as "
            f"missed, so that it can be worse than a guess. {self._said}",
        )

    @property
    def _said(self) -> str:
        ours, papers = (one.near.value for one in self.made_up)
        return (
            f"In made-up pictures that follow the model exactly ours finds {100 * ours:.0f} % at epsilon {SHOWN:g}, "
            f"the papers' way {100 * papers:.0f} %."
        )

    def draw(self, figure: Figure) -> None:
        if not self.frames:
            figure.text(0.5, 0.5, f"Not run: {needed(INFRARED)}", ha="center", va="center", wrap=True)
            return
        halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.25))
        self._draw_shares(halves[0].subplots())
        panels = halves[1].subplots(2, 2).ravel()
        for axes, view in zip(panels, self.views, strict=False):
            _draw_view(axes, view, self.truth)
        for axes in panels[len(self.views) :]:
            axes.axis("off")
        panels[-1].plot([], [], "+", color=SERIES[2], markersize=9, markeredgewidth=1.5, label="labelled by hand")
        panels[-1].plot([], [], "o", color=SERIES[1], markersize=9, fillstyle="none", label="found")
        panels[-1].legend(loc="center")

    def _draw_shares(self, axes: Any) -> None:
        for method, color, marker in ((Method.OURS, SERIES[0], "o"), (Method.PAPERS, SERIES[1], "s")):
            near = [self.of(method, epsilon).near for epsilon in self.epsilons]
            shares, bars = [100 * one.value for one in near], [200 * one.error for one in near]
            axes.errorbar(self.epsilons, shares, yerr=bars, marker=marker, color=color, label=str(method), capsize=2)
        for method, style in ((Method.CLEAR, "--"), (Method.GUESS, ":")):
            axes.axhline(100 * self.of(method).near.value, color=INK, linestyle=style, linewidth=1, label=str(method))
        log_scale(axes, self.epsilons)
        axes.set_ylim(-3, 100)
        axes.set_title(f"People found within {NEAR:g} pixels")
        axes.set_xlabel(f"epsilon of one picture (delta {DELTA:g}, a move by {ALPHA:g} pixel is hidden)")
        axes.set_ylabel("percent (bars: two standard errors)")
        axes.legend(loc="upper left", fontsize=8)
        axes.grid()


def _percent(share: Mean) -> str:
    return f"{100 * share.value:.0f} ± {100 * share.error:.0f}"


def _draw_view(axes: Any, view: View, truth: Sequence[Position]) -> None:
    picture = np.array(view.values).reshape(ROWS // BLOCK, COLUMNS // BLOCK)
    axes.imshow(picture, extent=(0, COLUMNS, ROWS, 0), cmap="Greys")
    axes.plot(*np.array(truth).T, "+", color=SERIES[2], markersize=9, markeredgewidth=1.5)
    if view.found:
        axes.plot(*np.array(view.found).T, "o", color=SERIES[1], markersize=9, fillstyle="none", markeredgewidth=1.5)
    axes.set(xticks=(), yticks=())
    axes.set_title(view.name, fontsize=9)
    axes.spines[["top", "right"]].set(visible=True, color=FAINT)


def shares(people: Sequence[FloatArray], found: Sequence[Sequence[Position]]) -> tuple[Mean, ...]:
    """Share of the people that have a found position of their own within each of `WITHIN` pixels.

    Errors are those over pictures, or over people where these are larger.
    """
    near = np.array(
        [_near(at, np.array(positions).reshape(-1, 2)) for at, positions in zip(people, found, strict=True)]
    )
    counts = np.array([len(at) for at in people])
    total = counts.sum()
    means = near.sum(axis=0) / total
    rough = (near.sum(axis=0) + 1) / (total + 2)  # pictures that all are alike do not make it certain
    errors = np.maximum(
        np.sqrt(((near - means * counts[:, None]) ** 2).sum(axis=0)) / total, np.sqrt(rough * (1 - rough) / total)
    )
    return tuple(Mean(float(m), float(e)) for m, e in zip(means, errors, strict=True))


def _near(people: FloatArray, found: FloatArray) -> FloatArray:
    """How many people have a position of their own within each of `WITHIN`."""
    apart = np.hypot(*(people[:, None] - found[None]).transpose(2, 0, 1))
    counts = []
    for reach in WITHIN:
        mine, theirs = linear_sum_assignment(np.where(apart <= reach, apart, 1e3))
        counts.append(int((apart[mine, theirs] <= reach).sum()))
    return np.array(counts, dtype=np.float64)


def _work(*, quick: bool, seed: int, progress: Progress) -> Cloaked:
    path = data_file(INFRARED)
    if path is None:
        control = made_up(quick=quick, seed=seed)
        progress(1, 1)
        return Cloaked(0, control)
    return cloaked(read_infrared(path), quick=quick, seed=seed, progress=progress)


def cloaked(pictures: Infrared, *, quick: bool, seed: int, progress: Progress) -> Cloaked:
    """Fit the model on the first pictures, and try the others at each epsilon."""
    readings = blocks(pictures.frames)
    body = fit(readings[:FITTED], pictures.people[:FITTED])
    tried = slice(FITTED, None, QUICK_STRIDE if quick else STRIDE)
    trial = Trial(body, body.camera, readings[tried] - body.floor, pictures.people[tried])
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    progress(0, len(epsilons) + 2)
    plain = trial.found(trial.readings, 0.0, pursuit=False)
    scores = [Score(Method.CLEAR, None, shares(trial.people, plain)), _guess(trial, stream(seed, 0))]
    views = [View("as the camera sees it, and found without noise", _rounded(trial.readings[0]), plain[0])]
    for number, epsilon in enumerate(epsilons):
        progress(number + 1, len(epsilons) + 2)
        for method in (Method.OURS, Method.PAPERS):
            noisy, found = _try(trial, method, epsilon, (seed, 1 + number))
            scores.append(Score(method, epsilon, shares(trial.people, found)))
            if epsilon == (SHOWN if SHOWN in epsilons else epsilons[-1]):
                views.append(View(f"{method}, epsilon {epsilon:g}", _rounded(noisy[0]), found[0]))
    stronger = sum(
        int((heights(y, at, body.width)[:-1] > body.height).sum())
        for y, at in zip(trial.readings, trial.people, strict=True)
    )
    control = made_up(quick=quick, seed=seed)
    progress(len(epsilons) + 2, len(epsilons) + 2)
    return Cloaked(
        frames=len(trial.people),
        made_up=control,
        people=sum(len(at) for at in trial.people),
        stronger=stronger,
        body=body,
        scores=tuple(scores),
        views=tuple(views),
        truth=tuple((float(x), float(y)) for x, y in trial.people[0]),
    )


def _try(
    trial: Trial, method: Method, epsilon: float, key: tuple[int, ...]
) -> tuple[FloatArray, list[tuple[Position, ...]]]:
    papers = method is Method.PAPERS
    calibration = Calibration.PAPER if papers else Calibration.EXACT
    cloak = Cloak(trial.camera, epsilon=epsilon, delta=DELTA, alpha=ALPHA, calibration=calibration)
    noisy = cloak.simulate(trial.readings, rng=stream(*key))
    return noisy, trial.found(noisy, float(cloak.sigma), pursuit=papers)


def made_up(*, quick: bool, seed: int) -> tuple[Score, ...]:
    """How both methods do on pictures of four people, anywhere, that are bumps on a level floor and nothing else."""
    rng = stream(seed, 100)
    count = QUICK_MADE_UP if quick else MADE_UP
    people = tuple(rng.uniform((1.0, 1.0), (COLUMNS - 1.0, ROWS - 1.0), (4, 2)) for _ in range(count))
    tall = [rng.uniform(STANDARD.weakest, STANDARD.height, 4) for _ in range(count)]
    readings = np.array([bumps(at, STANDARD.width) @ height for at, height in zip(people, tall, strict=True)])
    trial = Trial(STANDARD, STANDARD.camera, readings, people)
    found = []
    for method in (Method.OURS, Method.PAPERS):
        seen = _try(trial, method, SHOWN, (seed, 101))[1]
        found.append(Score(method, SHOWN, shares(people, seen)))
    return tuple(found)


def _guess(trial: Trial, rng: np.random.Generator) -> Score:
    """Random places, many times for each picture."""
    places = trial.camera.space.places
    people = [at for at in trial.people for _ in range(GUESSES)]
    found = [[(float(x), float(y)) for x, y in places[rng.integers(0, len(places), len(at))]] for at in people]
    return Score(Method.GUESS, None, shares(people, found))


def _rounded(values: FloatArray) -> tuple[float, ...]:
    return tuple(values.round(1).tolist())


EXPERIMENT = Experiment(
    "infrared",
    "Real infrared pictures, cloaked: how many people are still found, and how near",
    Cloaked,
    _work,
    minutes=1.0,
)
