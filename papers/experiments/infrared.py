"""Infrared pictures, made up and real, cloaked: how many people are still found in them, and how near."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.demo.recorded import INFRARED, Infrared, Position, data_file, needed, read_infrared
from papers.bodies import BLOCK, COLUMNS, ROWS, Body, Trial, blocks, bumps, fit, heights
from papers.experiment import Experiment, Progress, part, stream
from papers.finders import ALPHA, DELTA, NOISY, Method, Score, always, guess, limit, look, score
from papers.near import WITHIN
from papers.pictures import homes, slid, who
from papers.result import Finding, Goal, Measure, Table
from papers.style import FAINT, INK, SERIES, log_scale

FITTED = 8  # first pictures, which the model of a body is made from; the others are tried
APART = 5  # seconds between real pictures, about
EPSILONS, QUICK_EPSILONS = (2.0, 4.0, 8.0, 16.0, 32.0), (16.0,)
REACH, WIDE, WIDEST = 2.0, 4.0, 6.0  # pixels
SHOWN = 16.0  # epsilon of the views, and of the comparison with many pictures
STANDARD = Body(width=2.4, height=250.0, weakest=50.0, floor=40.0, misfit=0.0)  # what made-up pictures are made of
PEOPLE = 4  # in each of them


@dataclass(frozen=True)
class Size:
    """How many pictures are tried.

    Of the made-up ones the posterior gets `made_up`, and `shown` at the epsilon that is shown, and R, which takes less
    time, all `pursuit`; each real one is slid `slidings` times for R, and the posterior gets `real` of those.
    """

    made_up: int
    shown: int
    pursuit: int
    slidings: int
    real: int


FULL, QUICK = Size(24, 200, 300, 10, 30), Size(0, 46, 300, 10, 1)


@dataclass(frozen=True)
class View:
    """One picture: what is seen of it, row by row, and where people are found."""

    name: str
    rows: int
    values: tuple[float, ...]
    found: tuple[Position, ...]


@dataclass(frozen=True)
class Real:
    """The same few people in real pictures: as they are, and slid so that they are anywhere.

    `labels` are people in `pictures`, `stronger` those of them whom the claim does not cover.
    """

    people: int
    pictures: int
    labels: int
    stronger: int
    body: Body
    unmoved: Score
    scores: tuple[Score, ...]
    views: tuple[View, ...]
    truth: tuple[Position, ...]


@dataclass(frozen=True)
class Cloaked(Finding):
    """How many people are found in cloaked pictures: made-up ones, and real ones where there are any."""

    size: ClassVar[tuple[float, float]] = (12.0, 7.2)
    made_up: tuple[Score, ...]
    real: Real | None = None

    def of(self, method: Method, epsilon: float | None = None) -> Score:
        """How one method did in made-up pictures."""
        return _of(self.made_up, method, epsilon)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Those that were tried."""
        return tuple(one.epsilon for one in self.made_up if one.method is Method.OURS and one.epsilon is not None)

    def tables(self) -> tuple[Table, ...]:
        names = ("", "epsilon", *(f"{r:g}" for r in WITHIN), "given, %", "pictures")
        title = f"Percent of people found within so many pixels: made-up pictures, {PEOPLE} people anywhere"
        made_up = Table(title, names, tuple(one.row for one in self.made_up))
        if self.real is None:
            return (made_up, Table("Real pictures: not run", ("", ""), (("what is missing", needed(INFRARED)),)))
        real, body = self.real, self.real.body
        told = (
            ("standard deviation of a body, pixels", f"{body.width:.1f}"),
            ("height of the strongest body protected", f"{body.height:.0f}"),
            ("height of the weakest of the fitted ones", f"{body.weakest:.0f}"),
            ("level of the floor", f"{body.floor:.0f}"),
            ("what the model leaves of a picture, root mean square", f"{body.misfit:.0f}"),
            ("labels in the tried pictures that are stronger", f"{real.stronger} of {real.labels}"),
        )
        slidings = (
            f"The same in real pictures of {real.people} people, mirrored and slid (errors are those over people)"
        )
        still = f"The same in the {real.pictures} real pictures as they are"
        return (
            made_up,
            Table(slidings, names, tuple(one.row for one in real.scores)),
            Table(still, names, (real.unmoved.row,)),
            Table(f"The model, fitted on the {FITTED} pictures before (scale 0 to 255)", ("", ""), told),
        )

    def goals(self) -> tuple[Goal, ...]:
        pairs = [(self.of(Method.OURS, e), self.of(Method.PAPERS, e)) for e in self.epsilons]
        ahead = min(ours.within(REACH).value - papers.within(REACH).value for ours, papers in pairs)
        text = f"made-up pictures: ours finds more within {REACH:g} pixels than the papers' way, at every epsilon"
        return (Goal(text, f"at least {100 * ahead:+.0f} %", ahead > 0),)

    def measures(self) -> tuple[Measure, ...]:
        ours, papers = (self.of(method, SHOWN).within(WIDEST) for method in (Method.OURS, Method.PAPERS))
        ratio, off = ours.value / papers.value, np.hypot(ours.error / ours.value, papers.error / papers.value)
        found = [Measure(f"made-up, within {WIDEST:g}: ours/papers", ratio, float(ratio * off))]
        found += [
            _measure("made-up", one, WIDEST if one.method is Method.OURS else REACH)
            for one in self.made_up
            if one.epsilon in (None, SHOWN)
        ]
        if self.real is not None:
            found += [
                _measure("real, slid", one, REACH)
                for one in self.real.scores
                if one.method in (Method.PURSUIT, Method.PAPERS, Method.CONSTANT)
            ]
            still = self.real.unmoved.within(REACH).value  # always of the same pictures
            found.append(Measure("real, as they are, always the mean places", still, share=True))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        low, high = self.epsilons[0], self.epsilons[-1]

        def said(method: Method) -> str:
            near = [100 * self.of(method, epsilon).within(REACH).value for epsilon in (low, high)]
            return f"{near[0]:.0f} % at epsilon {low:g} and {near[1]:.0f} % at {high:g}"

        guess = self.of(Method.GUESS).within(REACH).value
        shown = self.of(Method.OURS, SHOWN)
        made_up = (
            f"How near a person is found at which epsilon is answered by made-up pictures of {PEOPLE} people anywhere: "
            f"a body is a round bump of {STANDARD.width:g} pixels on a level floor, blocks of {BLOCK} x {BLOCK} pixels "
            f"are the sensors, and a move by {ALPHA:g} pixel is hidden in each picture. Within {REACH:g} pixels ours "
            f"finds {said(Method.OURS)}, the papers' noise and R {said(Method.PAPERS)}, R with the exact noise "
            f"{said(Method.PURSUIT)}, a guess {100 * guess:.0f} %. At epsilon {SHOWN:g} ours has "
            f"{100 * shown.within(1.0).value:.0f} % within 1 pixel and {100 * shown.within(WIDE).value:.0f} % within "
            f"{WIDE:g}."
        )
        told = (
            "All are told how many people there are, which no cloak hides, and the level of the floor. The posterior "
            "is also told how strong people can be, and R is not. In real pictures the posterior and R with the exact "
            "noise are told how far pictures are from the model, and take that for noise too; the papers' R is not. "
            "Where R returns fewer positions than there are people the rest is guessed. The dashed line is what normal "
            "errors of the size of the Cramer-Rao limit would give, heights unknown; a method that knows more about "
            "people than their number can find more."
        )
        return (made_up, told, *self._words_of_real())

    def _words_of_real(self) -> tuple[str, ...]:
        if self.real is None:
            return (f"The real pictures were not tried. {needed(INFRARED)}",)
        real = self.real
        constant = 100 * real.unmoved.within(REACH).value
        clear = [100 * _of(real.scores, method).within(REACH).value for method in (Method.CLEAR, Method.CONSTANT)]
        ours, papers = (100 * _of(real.scores, one, SHOWN).within(REACH).value for one in (Method.OURS, Method.PAPERS))
        better = "more than the posterior finds by looking, without any noise" if constant > clear[0] else "unseen"
        so = "So these pictures, as they are, say nothing about privacy." if constant > clear[0] else ""
        moving = "They sit still" if constant > 50 else "They move about"
        return (
            f"The real pictures, of a thermal camera on an office ceiling, show the same {real.people} people: "
            f"{real.labels} labels in {real.pictures} pictures about {APART} s apart. {moving}: to answer always "
            f"with their mean places in the {FITTED} pictures before finds {constant:.0f} % within {REACH:g} pixels, "
            f"{better}. {so} Each is mirrored and slid "
            "at random, by whole pixels and around its edges: bodies, desks and the noise of the camera are real, and "
            f"people are anywhere. Then the mean places find {clear[1]:.0f} %, the posterior without any noise "
            f"{clear[0]:.0f} %, ours {ours:.0f} % at epsilon {SHOWN:g} and the papers' way {papers:.0f} %.",
            f"What that cannot show: there are still only {real.people} bodies in one room, and so the errors are "
            f"those over people, and the model knows nothing of warm desks and walls. It is fitted on {FITTED} other "
            "pictures of the same people, which a real installation must not do; and what is claimed is claimed for "
            f"this model and bodies up to its height ({real.stronger} of the {real.labels} labels were stronger).",
        )

    def draw(self, figure: Figure) -> None:
        halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.3))
        plots = halves[0].subplots(2, 1, sharex=True)
        _draw_shares(plots[0], self.made_up, self.epsilons, "Made-up pictures: people anywhere")
        if self.real is None:
            plots[1].text(
                0.5, 0.5, f"Not run: {needed(INFRARED)}", ha="center", transform=plots[1].transAxes, wrap=True
            )
            plots[1].set_axis_off()
            return
        _draw_shares(plots[1], self.real.scores, self.epsilons, f"Real pictures of {self.real.people} people, slid")
        plots[1].set_xlabel(f"epsilon of one picture (delta {DELTA:g}, a move by {ALPHA:g} pixel is hidden)")
        handles = {name: one for axes in plots for one, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        halves[0].legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize=8)
        panels = halves[1].subplots(2, 2).ravel()
        for axes, view in zip(panels, self.real.views, strict=True):
            _draw_view(axes, view, self.real.truth)
        panels[0].plot([], [], "+", color=SERIES[2], markersize=9, markeredgewidth=1.5, label="labelled by hand")
        panels[0].plot([], [], "o", color=SERIES[1], markersize=9, fillstyle="none", label="found")
        halves[1].legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _of(scores: Sequence[Score], method: Method, epsilon: float | None = None) -> Score:
    return next(one for one in scores if one.method is method and one.epsilon == epsilon)


def _measure(kind: str, one: Score, reach: float) -> Measure:
    share = one.shares.over_pictures[WITHIN.index(reach)]
    name = f"{kind}, {one.method}, epsilon {one.epsilon or 0:g}, within {reach:g}"
    return Measure(name, share.value, share.error, share=True)


def _draw_shares(axes: Any, scores: Sequence[Score], epsilons: Sequence[float], title: str) -> None:
    """Share found within reach over epsilon; bars are two standard errors."""
    looks = zip(NOISY, (SERIES[0], SERIES[3], SERIES[1]), "o^s", (1.0, 1.04, 0.96), strict=True)
    for method, color, marker, aside in looks:  # aside, so that bars do not hide each other
        near = [_of(scores, method, epsilon).within(REACH) for epsilon in epsilons]
        values = np.array([100 * one.value for one in near])
        bars = np.array([200 * one.error for one in near])
        sides = (np.minimum(bars, values), np.minimum(bars, 100 - values))  # a share is between 0 and 100 %
        look: Any = {"marker": marker, "color": color, "elinewidth": 1, "capsize": 2, "label": str(method)}
        axes.errorbar(aside * np.array(epsilons), values, yerr=sides, **look)
    guess = 100 * _of(scores, Method.GUESS).within(REACH).value
    limit = [(one.epsilon, max(100 * one.within(REACH).value, guess)) for one in scores if one.method is Method.LIMIT]
    if limit:
        axes.plot(*zip(*limit, strict=True), "--", color=INK, linewidth=1, label=str(Method.LIMIT))
    for method, style in ((Method.CLEAR, "-."), (Method.CONSTANT, (0, (1, 4))), (Method.GUESS, ":")):
        if any(one.method is method for one in scores):
            height = 100 * _of(scores, method).within(REACH).value
            axes.axhline(height, color=INK, linestyle=style, linewidth=1, label=str(method))
    log_scale(axes, epsilons)
    axes.set_ylim(0, 100)
    axes.set_title(title)
    axes.set_ylabel(f"% found within {REACH:g} pixels (bars: 2 errors)")
    axes.grid()


def _draw_view(axes: Any, view: View, truth: Sequence[Position]) -> None:
    picture = np.array(view.values).reshape(view.rows, -1)
    axes.imshow(picture, extent=(0, COLUMNS, ROWS, 0), cmap="Greys")
    axes.plot(*np.array(truth).T, "+", color=SERIES[2], markersize=9, markeredgewidth=1.5)
    if view.found:
        axes.plot(*np.array(view.found).T, "o", color=SERIES[1], markersize=9, fillstyle="none", markeredgewidth=1.5)
    axes.set(xticks=(), yticks=())
    axes.set_title(view.name, fontsize=9)
    axes.spines[["top", "right"]].set(visible=True, color=FAINT)


def _work(*, quick: bool, seed: int, progress: Progress) -> Cloaked:
    size, epsilons = (QUICK, QUICK_EPSILONS) if quick else (FULL, EPSILONS)
    path = data_file(INFRARED)
    if path is None:
        return Cloaked(made_up(size, epsilons, seed, progress))
    scores = made_up(size, epsilons, seed, part(progress, 0, 100, 200))
    real = slid_pictures(read_infrared(path), size, epsilons, seed, part(progress, 100, 100, 200))
    return Cloaked(scores, real)


def made_up(size: Size, epsilons: Sequence[float], seed: int, progress: Progress) -> tuple[Score, ...]:
    """How methods do on pictures of people anywhere that are bumps on a level floor and nothing else."""
    rng = stream(seed, 100)
    people = tuple(rng.uniform((1.0, 1.0), (COLUMNS - 1.0, ROWS - 1.0), (PEOPLE, 2)) for _ in range(size.pursuit))
    tall = [rng.uniform(STANDARD.weakest, STANDARD.height, PEOPLE) for _ in people]
    readings = np.array([bumps(at, STANDARD.width) @ height for at, height in zip(people, tall, strict=True)])
    trial = Trial(STANDARD, STANDARD.camera, readings, people)
    scores = [guess(people, stream(seed, 101))]
    for number, epsilon in enumerate(epsilons):
        progress(number, len(epsilons))
        few = trial.first(size.shown if epsilon == SHOWN else size.made_up)
        scores += [_try(few, trial, method, epsilon, (seed, 102, number)) for method in NOISY]
        scores.append(limit(trial, tall, epsilon, stream(seed, 103)))
    progress(len(epsilons), len(epsilons))
    return tuple(scores)


def _try(few: Trial, many: Trial, method: Method, epsilon: float, key: tuple[int, ...], **known: Any) -> Score:
    """The posterior takes long, and so it gets few pictures."""
    return score(few if method is Method.OURS else many, method, epsilon, key, **known)


def slid_pictures(pictures: Infrared, size: Size, epsilons: Sequence[float], seed: int, progress: Progress) -> Real:
    """Fit the model on the first pictures, and try the others at each epsilon, mirrored and slid."""
    body = fit(blocks(pictures.frames[:FITTED]), pictures.people[:FITTED])
    home = homes(pictures.people[:FITTED])
    tried = Infrared(pictures.frames[FITTED:], pictures.people[FITTED:])
    names = who(tried.people, home)
    rng = stream(seed, 200)
    moved = [slid(tried, rng) for _ in range(size.slidings)]
    many = _trial(body, moved)
    few, known = many.first(size.real), names * size.slidings
    scores = [
        score(few, Method.CLEAR, None, (seed, 201), known),
        always(many.people, positions(home), known),
        guess(many.people, stream(seed, 202)),
    ]
    for number, epsilon in enumerate(epsilons):
        progress(number, len(epsilons))
        scores += [_try(few, many, method, epsilon, (seed, 203, number), names=known) for method in NOISY]
    progress(len(epsilons), len(epsilons))
    still = _trial(body, [tried])
    return Real(
        people=len(home),
        pictures=len(tried),
        labels=sum(len(at) for at in tried.people),
        stronger=_stronger(still),
        body=body,
        unmoved=always(tried.people, positions(home), names),
        scores=tuple(scores),
        views=_views(tried.frames[0], still.first(1), (seed, 204)),
        truth=positions(tried.people[0]),
    )


def _trial(body: Body, pictures: Sequence[Infrared]) -> Trial:
    readings = np.concatenate([blocks(one.frames) for one in pictures]) - body.floor
    return Trial(body, body.camera, readings, tuple(at for one in pictures for at in one.people))


def positions(people: FloatArray) -> tuple[Position, ...]:
    """Places as pairs of numbers."""
    return tuple((float(x), float(y)) for x, y in people)


def _stronger(trial: Trial) -> int:
    """How many people are stronger than the claim covers."""
    pairs = zip(trial.readings, trial.people, strict=True)
    return sum(int((heights(y, at, trial.body.width)[:-1] > trial.body.height).sum()) for y, at in pairs)


def _views(frame: FloatArray, trial: Trial, key: tuple[int, ...]) -> tuple[View, ...]:
    """One picture as it is, in blocks, and as two methods see it."""
    views = [View("a real picture, as the camera sees it", ROWS, _rounded(frame.ravel()), ())]
    for method, epsilon in ((Method.CLEAR, None), (Method.OURS, SHOWN), (Method.PAPERS, SHOWN)):
        seen = look(trial, method, epsilon, key)
        name = f"{method}" if epsilon is None else f"{method}, epsilon {epsilon:g}"
        views.append(View(name, ROWS // BLOCK, _rounded(seen.readings[0]), seen.found[0]))
    return tuple(views)


def _rounded(values: FloatArray) -> tuple[float, ...]:
    return tuple(values.round(1).tolist())


EXPERIMENT = Experiment(
    "infrared",
    "Infrared pictures, made up and real, cloaked: how many people are found, and how near",
    Cloaked,
    _work,
    minutes=2.0,
    data=(INFRARED,),
)
