"""What recovered maps look like: near in earth mover distance, far in other norms."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.lab.curves import COLORS, legend_of_all, symbols
from cloakwork.lab.experiment import Experiment, Progress, stream
from cloakwork.lab.result import Agreement, Claim, Finding, Measure, Table
from cloakwork.lab.style import INK
from cloakwork.lab.trials import NOISE, Distances, Mean, Method, Setting, scaled

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
TRIALS, QUICK_TRIALS = 600, 60
SMALL, LARGE = 0.5, 1.0  # a share of the error of a uniform guess, and a normalised l1 distance
TRACE = 1e-3  # weights below this are not drawn
STYLES = {Method.PAPERS: "--", Method.PURSUIT: "-.", Method.POSTERIOR: "-"}


@dataclass(frozen=True)
class Scene:
    """A picture of the papers: a name for it, where it is, and its parameters."""

    name: str
    where: str
    setting: Setting

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
        at = " and ".join(f"{x:g}" for x in self.setting.at)
        return f"T = {self.setting.T:g}, sigma = {self.setting.sigma:g}, at {at}"


SCENES = (
    Scene("two sources", f"{LATEST}, Figure 1", Setting(sigma=0.1, at=(0.24, 0.76))),
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

    `between` is the mean share of the weight that lies strictly between the outer sources.
    """

    method: Method
    emd: Mean
    l1: Mean
    l2: Mean
    between: Mean
    shown_emd: float
    shown_l1: float
    shown_l2: float
    map: tuple[Weight, ...]


@dataclass(frozen=True)
class Seen:
    """One scene: the frame shown is the one in which the papers' R has its median error.

    `guess` is the error of a uniform map, `near` the share of frames in which the papers' R has less than half of it.
    """

    name: str
    trials: int
    guess: float
    near: Mean
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
            rows.append((f"{seen.name}, uniform guess", "", "", "", f"{seen.guess:.4f}", "", ""))
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
            f"EMD is {look.emd.value:.3f} on average, where a uniform guess has {seen.guess:.3f}, and less than half "
            f"of that in {100 * seen.near.value:.0f} % of frames; l1 is {look.l1.value:.2f} of at most 2"
        )
        near, far = look.emd.value < SMALL * seen.guess, look.l1.value > LARGE
        verdict = Agreement.AGREES if near and far else Agreement.WRONG
        text = f"R is typically near in EMD, not in l1 and l2: {scene.words}"
        return Claim(text, scene.where, found, verdict)

    def _centred(self) -> Claim:
        seen = self.of(CLOSE)
        papers, ours = seen.of(Method.PAPERS).between, seen.of(Method.POSTERIOR).emd
        found = (
            f"{100 * papers.value:.0f} % of the weight of R is between sources {seen.scene.apart:.1f} apart; the "
            f"posterior is {ours.value / seen.of(Method.PAPERS).emd.value:.2f} times as far from the truth"
        )
        verdict = Agreement.AGREES if papers.value - 2 * papers.error > 0.5 else Agreement.WRONG
        return Claim("R puts two sources that are close together in the middle", f"{FIRST}, Figure 2", found, verdict)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(
            Measure(f"{seen.name}, {look.method}, {name}", mean.value, mean.error, slack)
            for seen in self.scenes
            for look in seen.looks
            # l1 is often all but constant, so that few frames show no spread
            for name, mean, slack in (("EMD", look.emd, 0.001), ("l1", look.l1, 0.05), ("l2", look.l2, 0.02))
        )

    def words(self) -> tuple[str, ...]:
        two, late, close = self.scenes[0], self.of(LATE), self.of(CLOSE)
        papers, ours = (two.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        hidden, found = (close.of(method) for method in (Method.PAPERS, Method.POSTERIOR))
        at, apart = two.scene.setting.at, close.scene.apart
        return (
            "Black: the true map; every map is scaled to a total of 1, n = 100, m = 50. Each panel shows, of "
            f"{two.trials} frames, the one in which the papers' R has its median error, and what the other methods "
            "make of the same readings. (R, calibrated, has a radius that fits the noise; the posterior knows that "
            "sources have strength 1, and spreads what it is not sure of.)",
            f"With sources at {at[0]:g} and {at[-1]:g} the papers' R is {papers.emd.value:.3f} off in EMD, although "
            f"its l1 distance is {papers.l1.value:.2f} of at most 2. The posterior has {ours.emd.value:.3f} and "
            f"{ours.l1.value:.2f}: {papers.emd.value / ours.emd.value:.1f} times nearer, which l1 hardly notices.",
            f"In the first version's picture ({late.scene.words}) R is {late.of(Method.PAPERS).emd.value:.2f} "
            f"off on average, and a uniform map {late.guess:.2f}; it is nearer than half of that in "
            f"{100 * late.near.value:.0f} % of frames, a matter of luck. Two sources {apart:.1f} apart R "
            f"puts in the middle ({100 * hidden.between.value:.0f} % of its weight is between them, EMD "
            f"{hidden.emd.value:.3f}); knowing that each has strength 1, the posterior still tells them apart, with "
            f"{found.emd.value:.3f}. Where a text gives no places we took 0.5 for one source, 0.45 and 0.55 for close "
            "ones, 0.3 and 0.7 for others.",
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


def look_at(scene: Scene, trials: int, key: tuple[int, ...]) -> Seen:
    """Every method on the same frames of one scene."""
    setting = scene.setting
    truth = setting.truth(trials, stream(*key))
    maps = {method: _maps(setting, method, truth, key) for method in Method}
    errors = Distances.of(truth, maps[Method.PAPERS]).emd
    middle = int(np.argsort(errors, kind="stable")[trials // 2])
    looks = tuple(_look(setting, method, truth, maps[method], middle) for method in Method)
    guess = float(Distances.of(truth[:1], np.zeros_like(truth[:1])).emd[0])
    return Seen(scene.name, trials, guess, Mean.of((errors < SMALL * guess).astype(float)), looks)


def _maps(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> FloatArray:
    channel = setting.channel(method.calibration)
    noisy = channel.send(setting.line.apply(truth), stream(*key, NOISE))
    return channel.recover(noisy, method.estimator(setting.most)).map


def _look(setting: Setting, method: Method, truth: FloatArray, maps: FloatArray, frame: int) -> Look:
    distances, along = Distances.of(truth, maps), setting.line.space.places[:, 0]
    half = 0.5 / setting.n
    inside = (along > setting.at[0] + half) & (along < setting.at[-1] - half)
    shares = scaled(maps)
    shown = [Weight(round(float(x), 6), round(float(w), 6)) for x, w in zip(along, shares[frame], strict=True)]
    return Look(
        method=method,
        emd=Mean.of(distances.emd),
        l1=Mean.of(distances.l1),
        l2=Mean.of(distances.l2),
        between=Mean.of(shares[:, inside].sum(axis=1)),
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
