"""What recovered maps look like: near in earth mover distance, far in other norms."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from papers.curves import COLORS, legend_of_all, symbols
from papers.experiment import Experiment, Progress, stream
from papers.result import Agreement, Claim, Finding, Measure, Table
from papers.style import INK
from papers.sweeps import LIMIT, limit_of
from papers.trials import PLACES, Distances, Mean, Method, Setting, Trial, scaled, try_method

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
TRIALS, QUICK_TRIALS = 600, 200
OFTEN = 20_000  # frames of the papers' R alone
MORE = 2  # their part of a stream
SMALL, LARGE = 0.5, 1.0  # a share of the error of a uniform guess, and a normalised l1 distance
MIDDLE = 0.5  # a share of the weight that puts it mostly in the middle
TRACE = 1e-3  # weights below this are not drawn
STYLES = {Method.PAPERS: "--", Method.PURSUIT: "-.", Method.POSTERIOR: "-"}


@dataclass(frozen=True)
class Scene:
    """A picture of the papers: a name for it, where it is, and its parameters; `given` is whether its places are."""

    name: str
    where: str
    setting: Setting
    given: bool = False

    @property
    def apart(self) -> float:
        """How far apart its outer sources are."""
        return self.setting.at[-1] - self.setting.at[0]

    @property
    def short(self) -> str:
        """Which figure it is, in few words."""
        return self.where.replace(FIRST, "first version").replace(SHORT, "abstract")

    @property
    def words(self) -> str:
        """Its parameters."""
        return f"{self.setting.words('n', 'm')}, at {self.places}"

    @property
    def places(self) -> str:
        """Where its sources are."""
        return " and ".join(f"{x:g}" for x in self.setting.at)


SCENES = (
    Scene("two sources", f"{LATEST}, Figure 1", Setting(sigma=0.1, at=(0.24, 0.76)), given=True),
    Scene("late and noisy", f"{FIRST}, Figure 1; {SHORT}, Figure 1", Setting(T=0.5, sigma=0.5, at=(0.5,))),
    Scene("close together", f"{FIRST}, Figure 2a", Setting(sigma=0.1, at=(0.45, 0.55))),
    Scene("further apart", f"{FIRST}, Figure 2b", Setting(sigma=0.1, at=(0.3, 0.7))),
)
"""Where a text gives no places they are ours: 0.5 for a lone source, as elsewhere in the papers."""
CLOSE, LATE = SCENES[2].name, SCENES[1].name


@dataclass(frozen=True)
class Weight:
    """What a map has at one place."""

    at: float
    weight: float


@dataclass(frozen=True)
class Look:
    """How one method does: mean distances over all frames, the same for the frame that is shown, and its map there.

    `central` is the mean share of the weight in the middle half of the way between the outer sources.
    """

    method: Method
    emd: Mean
    l1: Mean
    l2: Mean
    central: Mean
    shown_emd: float
    shown_l1: float
    shown_l2: float
    map: tuple[Weight, ...]


@dataclass(frozen=True)
class Seen:
    """One scene: the frame shown is the one in which the papers' R has its median error.

    `guess` is the error of a uniform map, `limit` the Cramer-Rao limit. `near` is the share of many more frames in
    which the papers' R has less than half of the error of a guess, `anywhere` the same with as many sources at random
    places. `gain` is the error of the papers' R over that of the posterior.
    """

    name: str
    trials: int
    guess: float
    limit: float
    near: Mean
    anywhere: Mean
    gain: Mean
    looks: tuple[Look, ...]

    @property
    def scene(self) -> Scene:
        """What it is a picture of."""
        return next(scene for scene in SCENES if scene.name == self.name)

    def of(self, method: Method) -> Look:
        """One method."""
        return next(look for look in self.looks if look.method is method)


@dataclass(frozen=True)
class Typical(Finding):
    """The papers' pictures of single maps, with the maps of other methods and means over many frames."""

    size: ClassVar[tuple[float, float]] = (11.0, 6.8)
    scenes: tuple[Seen, ...]

    def of(self, name: str) -> Seen:
        """One scene."""
        return next(seen for seen in self.scenes if seen.name == name)

    def tables(self) -> tuple[Table, ...]:
        rows = []
        for seen in self.scenes:
            for look in seen.looks:
                shown = (f"{value:.3f}" for value in (look.shown_emd, look.shown_l1, look.shown_l2))
                rows.append((f"{seen.name}, {look.method}", *shown, str(look.emd), str(look.l1), str(look.l2)))
            for name, value in ((LIMIT, seen.limit), ("uniform guess", seen.guess)):
                rows.append((f"{seen.name}, {name}", "", "", "", f"{value:.4f}", "", ""))
        columns = ("", "EMD shown", "l1 shown", "l2 shown", "mean EMD", "mean l1", "mean l2")
        title = (
            f"Distances of maps scaled to 1: in the frames shown, and on average over {self.scenes[0].trials} frames"
        )
        return (Table(title, columns, tuple(rows)),)

    def claims(self) -> tuple[Claim, ...]:
        return (self._norms(self.scenes[0]), self._norms(self.of(LATE)), self._centred())

    def _norms(self, seen: Seen) -> Claim:
        look, scene = seen.of(Method.PAPERS), seen.scene
        found = (
            f"EMD is less than half of a uniform guess's in {100 * seen.near.value:.0f} % of frames, "
            f"{look.emd.value:.3f} on average, where the guess has {seen.guess:.3f}; l1 is {look.l1.value:.2f} of at "
            "most 2"
        )
        verdict, elsewhere = (_near_and_far(share, look.l1) for share in (seen.near, seen.anywhere))
        if not scene.given:
            found += f". The place is ours; at random ones it is less than half in {100 * seen.anywhere.value:.0f} %"
            found += "" if elsewhere is verdict else f", and the verdict would be: {elsewhere}"
        text = f"R is typically near in EMD, not in l1 and l2: {scene.words}"
        return Claim(text, scene.where, found, verdict)

    def _centred(self) -> Claim:
        seen = self.of(CLOSE)
        papers, ours = seen.of(Method.PAPERS).central, seen.of(Method.POSTERIOR).emd
        found = (
            f"{100 * papers.value:.0f} % of the weight of R is in the middle half between sources "
            f"{seen.scene.apart:.1f} apart; the posterior, told their strengths, has "
            f"{ours.value / seen.of(Method.PAPERS).emd.value:.2f} times its EMD"
        )
        verdict = Agreement.AGREES if papers.value - 2 * papers.error > MIDDLE else Agreement.WRONG
        return Claim("R puts two sources that are close together in the middle", f"{FIRST}, Figure 2", found, verdict)

    def measures(self) -> tuple[Measure, ...]:
        means = [
            Measure(f"{seen.name}, {look.method}, {name}", mean.value, mean.error, slack)
            for seen in self.scenes
            for look in seen.looks
            # l1 is often all but constant, so that few frames show no spread
            for name, mean, slack in (("EMD", look.emd, 0.0), ("l1", look.l1, 0.05), ("l2", look.l2, 0.02))
        ]
        close = self.of(CLOSE)
        gain = Measure(f"{close.name}, papers/ours", close.gain.value, close.gain.error)
        limits = [Measure(f"{seen.name}, limit", seen.limit) for seen in self.scenes]
        near = [Measure(f"{one.name}, papers near", one.near.value, one.near.error, share=True) for one in self.scenes]
        return (*means, gain, *limits, *near)

    def words(self) -> tuple[str, ...]:
        two, late = self.scenes[0], self.of(LATE)
        papers, ours = (two.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        lost = late.of(Method.PAPERS)
        chosen = "; ".join(f"{seen.scene.name}: {seen.scene.places}" for seen in self.scenes if not seen.scene.given)
        return (
            f"Black: the true map; every map is scaled to a total of 1, n = {two.scene.setting.n}, "
            f"m = {two.scene.setting.m}. Each panel shows, of {two.trials} frames, the one in which the papers' R has "
            "its median error, and what the other methods make of the same readings. (R, calibrated, has a radius that "
            "fits the noise; the posterior is told that sources have strength 1, which R is not, and spreads what it "
            f"is not sure of. An empty map counts as the uniform one.) Where a text gives no places they are ours "
            f"({chosen}).",
            f"With sources at {two.scene.places} the papers' R is {papers.emd.value:.4f} off in EMD, although its l1 "
            f"distance is {papers.l1.value:.2f} of at most 2. The posterior has {ours.emd.value:.4f} and "
            f"{ours.l1.value:.2f}: {two.gain.value:.1f} times nearer in EMD, {papers.l1.value / ours.l1.value:.1f} "
            f"times in l1. The Cramer-Rao limit, for methods without a bias that know the strengths, is "
            f"{two.limit:.4f}.",
            f"In the first version's picture ({late.scene.words}) R is {lost.emd.value:.2f} off on average and "
            f"{lost.shown_emd:.2f} in the frame shown, and a uniform map {late.guess:.2f}; it is nearer than half of "
            f"that in {100 * late.near.value:.0f} % of frames. {self._hopeless()}{self._apart()}",
        )

    def _hopeless(self) -> str:
        late = self.of(LATE)
        if late.limit < late.guess:
            return ""
        return f"The limit is {late.limit:.2f}: without a bias no method does better there than a guess. "

    def _apart(self) -> str:
        """What becomes of sources that are close together, in words."""
        close = self.of(CLOSE)
        hidden, found = (close.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        apart = found.central.value < MIDDLE < hidden.central.value
        return (
            f"Of two sources {close.scene.apart:.1f} apart R has {100 * hidden.central.value:.0f} % of its weight in "
            f"the middle half between them (EMD {hidden.emd.value:.3f}), the posterior "
            f"{100 * found.central.value:.0f} % (EMD {found.emd.value:.3f}, limit {close.limit:.3f})"
            f"{': knowing that each has strength 1, it still tells them apart' if apart else ''}."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 2)
        for letter, axes, seen in zip("abcd", panels.ravel(), self.scenes, strict=True):
            _draw_scene(axes, seen)
            axes.set_title(f"{letter})  {seen.name}: {symbols(seen.scene.words)}\n{seen.scene.short}", fontsize=9)
        for axes in panels[:, 0]:
            axes.set_ylabel("weight, in all 1")
        for axes in panels[-1]:
            axes.set_xlabel("place")
        legend_of_all(figure, panels.ravel().tolist())


def _draw_scene(axes: Any, seen: Seen) -> None:
    at = seen.scene.setting.at
    axes.vlines(at, 0, 1 / len(at), color=INK, linewidth=2.5, label="truth")
    for method in Method:
        look = seen.of(method)
        along = np.arange(1, seen.scene.setting.n + 1) / seen.scene.setting.n
        heights = np.zeros(len(along))
        for one in look.map:
            heights[round(one.at * len(along)) - 1] = one.weight
        width = 2.0 if method is Method.POSTERIOR else 1.4
        look_of_line = {"color": COLORS[method], "linestyle": STYLES[method], "linewidth": width}
        axes.plot(along, heights, label=str(method), **look_of_line)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, None)
    axes.grid(visible=True)


def _near_and_far(near: Mean, l1: Mean) -> Agreement:
    """What to say of "typically near in EMD, not in l1": typical is what more than half of the frames are."""
    if abs(near.value - 0.5) <= 2 * near.error:
        return Agreement.UNDECIDED
    return Agreement.AGREES if near.value > 0.5 and l1.value > LARGE else Agreement.WRONG


def look_at(scene: Scene, trials: int, key: tuple[int, ...]) -> Seen:
    """Every method on the same frames of one scene."""
    setting = scene.setting
    truth = setting.truth(trials, stream(*key, PLACES))
    tried = {method: try_method(setting, method, truth, key) for method in Method}
    errors = {method: one.distances.emd for method, one in tried.items()}
    middle = int(np.argsort(errors[Method.PAPERS], kind="stable")[trials // 2])
    guess = float(Distances.of(truth[:1], np.zeros_like(truth[:1])).emd[0])
    return Seen(
        name=scene.name,
        trials=trials,
        guess=guess,
        limit=limit_of(setting, tried[Method.PAPERS].sigma, truth),
        near=_near(setting, key),
        anywhere=_near(replace(setting, at=(), count=len(setting.at)), key),
        gain=Mean.ratio(errors[Method.PAPERS], errors[Method.POSTERIOR]),
        looks=tuple(_look(setting, method, one, middle) for method, one in tried.items()),
    )


def _near(setting: Setting, key: tuple[int, ...]) -> Mean:
    """In what share of many frames the papers' R has less than half of the error of a guess."""
    truth = setting.truth(OFTEN, stream(*key, MORE, PLACES))
    errors = try_method(setting, Method.PAPERS, truth, (*key, MORE)).distances.emd
    return Mean.of((errors < SMALL * Distances.of(truth, np.zeros_like(truth)).emd).astype(float))


def _look(setting: Setting, method: Method, tried: Trial, frame: int) -> Look:
    distances, along = tried.distances, setting.line.space.places[:, 0]
    first, last = setting.at[0], setting.at[-1]
    inside = np.abs(along - (first + last) / 2) < (last - first) / 4
    shares = scaled(tried.found.map)
    shown = [Weight(round(float(x), 6), round(float(w), 6)) for x, w in zip(along, shares[frame], strict=True)]
    return Look(
        method=method,
        emd=Mean.of(distances.emd),
        l1=Mean.of(distances.l1),
        l2=Mean.of(distances.l2),
        central=Mean.of(shares[:, inside].sum(axis=1)),
        shown_emd=float(distances.emd[frame]),
        shown_l1=float(distances.l1[frame]),
        shown_l2=float(distances.l2[frame]),
        map=tuple(one for one in shown if one.weight > TRACE),
    )


def _work(*, quick: bool, seed: int, progress: Progress) -> Typical:
    seen = []
    for number, scene in enumerate(SCENES):
        progress(number, len(SCENES))
        seen.append(look_at(scene, QUICK_TRIALS if quick else TRIALS, (seed, number)))
    progress(len(SCENES), len(SCENES))
    return Typical(tuple(seen))


EXPERIMENT = Experiment(
    "typical",
    "What recovered maps look like: near in earth mover distance, far in l1 and l2",
    Typical,
    _work,
    shows=(
        f"{LATEST}, Figure 1",
        f"{FIRST}, Figure 1",
        f"{FIRST}, Figure 2",
        f"{SHORT}, Figure 1",
        "McMillan, Figure 8.1",
    ),
    minutes=0.2,
)
