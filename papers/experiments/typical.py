"""What recovered maps look like: close in earth mover distance, far in other norms."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from papers.drawing import INK, finish, greek, legend_below
from papers.experiment import Experiment, Run, stream
from papers.result import Agreement, Claim, Finding
from papers.rows import Mean, Row, pick
from papers.sweeps import LEGEND, LOOKS, limit_of
from papers.trials import PLACES, Method, Setting, Trial, scaled, try_method, uniform_errors

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
MORE = 2  # the part of a stream for additional frames of the papers' method
CLOSE, FAR = 0.5, 1.0  # a share of the error of the uniform map, and a normalised l1 distance
MIDDLE = 0.5  # a share of the weight that puts most of it in the middle
TRACE = 1e-3  # smaller weights are not drawn
FULL, QUICK, PROBE = (600, 20_000), (70, 3_000), (6, 50)  # frames of all methods, and of the papers' alone
STYLES = {Method.PAPERS: "--", Method.PURSUIT: "-.", Method.POSTERIOR: "-"}


@dataclass(frozen=True)
class Scene:
    """A picture of the papers: its name, its source and its parameters; `given` if the paper gives the positions."""

    name: str
    source: str
    setting: Setting
    given: bool = False

    @property
    def places(self) -> str:
        return " and ".join(f"{x:g}" for x in self.setting.at)

    @property
    def parameters(self) -> str:
        return f"{self.setting.describe('n', 'm')}, at {self.places}"


SCENES = (
    Scene("two sources", f"{LATEST}, Figure 1", Setting(sigma=0.1, at=(0.24, 0.76)), given=True),
    Scene("late and noisy", f"{FIRST}, Figure 1; {SHORT}, Figure 1", Setting(T=0.5, sigma=0.5, at=(0.5,))),
    Scene("close together", f"{FIRST}, Figure 2a", Setting(sigma=0.1, at=(0.45, 0.55))),
    Scene("further apart", f"{FIRST}, Figure 2b", Setting(sigma=0.1, at=(0.3, 0.7))),
)
"""Where a paper gives no positions we chose them: 0.5 for a single source, as elsewhere in the papers."""
TWO, LATE, NEIGHBOURS, _ = (scene.name for scene in SCENES)


class Typical(Finding):
    """The papers' pictures of single maps, with the maps of other methods and means over many frames."""

    size = (11.0, 6.8)

    def claims(self) -> tuple[Claim, ...]:
        looks = pick(self.scenes, name=NEIGHBOURS).looks
        papers, ours = (pick(looks, method=one) for one in (Method.PAPERS, Method.POSTERIOR))
        central = Claim(
            "R places two sources that are close together between them",
            f"{FIRST}, Figure 2",
            f"{100 * papers.central.value:.0f} % of the weight of R is in the middle half between sources 0.1 apart; "
            f"the posterior, which knows their strengths, has {ours.emd.value / papers.emd.value:.2f} times its EMD",
            Agreement.of(papers.central.value - 2 * papers.central.error > MIDDLE),
        )
        return (*(_norm_claim(pick(self.scenes, name=name)) for name in (TWO, LATE)), central)

    def text(self) -> str:
        chosen = "; ".join(f"{scene.name}: {scene.places}" for scene in SCENES if not scene.given)
        return (
            f"Black: the true map. All maps are scaled to a total of 1; n = 100, m = 50. Each panel shows, of "
            f"{self.scenes[0].trials} frames, the one where the papers' method (basis pursuit, which the papers call "
            "R) has its median error, and what the other methods make of the same readings. The calibrated basis "
            "pursuit uses a radius that fits the noise. The posterior knows that sources have strength 1, and spreads "
            "weight where it is uncertain. An empty map counts as the uniform one. Where a paper gives no positions we "
            f"chose them ({chosen})."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 2)
        for letter, axes, scene, seen in zip("abcd", panels.ravel(), SCENES, self.scenes, strict=True):
            _draw_scene(axes, scene.setting, seen)
            source = scene.source.replace(FIRST, "first version").replace(SHORT, "abstract")
            axes.set_title(f"{letter})  {scene.name}: {greek(scene.parameters)}\n{source}", fontsize=9)
        for axes in panels[:, 0]:
            axes.set_ylabel("weight (total 1)")
        for axes in panels[-1]:
            axes.set_xlabel("place")
        legend_below(figure, panels.ravel(), first=LEGEND)


def _draw_scene(axes: Any, setting: Setting, seen: Row) -> None:
    axes.vlines(setting.at, 0, 1 / len(setting.at), color=INK, linewidth=2.5, label="truth")
    along = np.arange(1, setting.n + 1) / setting.n
    for method in Method:
        heights = np.zeros(setting.n)
        for one in pick(seen.looks, method=method).map:
            heights[round(one.at * setting.n) - 1] = one.weight
        width = 2.0 if method is Method.POSTERIOR else 1.4
        style = {"color": LOOKS[method]["color"], "linestyle": STYLES[method], "linewidth": width}
        axes.plot(along, heights, label=str(method), **style)
    finish(axes, xlim=(0, 1.02), ylim=(0, None))


def _norm_claim(seen: Row) -> Claim:
    look, scene = pick(seen.looks, method=Method.PAPERS), next(one for one in SCENES if one.name == seen.name)
    found = (
        f"EMD is less than half of that of the uniform map in {100 * seen.near.value:.0f} % of frames, "
        f"{look.emd.value:.3f} on average against {seen.guess:.3f}; l1 is {look.l1.value:.2f} of at most 2"
    )
    verdict, elsewhere = (_judge_norms(share, look.l1) for share in (seen.near, seen.anywhere))
    if not scene.given:
        found += f". We chose the position; at random ones it is {100 * seen.anywhere.value:.0f} %"
        found += "" if elsewhere is verdict else f", and the verdict would be: {elsewhere}"
    return Claim(f"R is typically close in EMD, not in l1 and l2: {scene.parameters}", scene.source, found, verdict)


def _judge_norms(near: Mean, l1: Mean) -> Agreement:
    """Judge "typically close in EMD, not in l1": typical is what more than half of the frames show."""
    if abs(near.value - 0.5) <= 2 * near.error:
        return Agreement.UNDECIDED
    return Agreement.AGREES if near.value > 0.5 and l1.value > FAR else Agreement.WRONG


def try_scene(scene: Scene, trials: int, many: int, key: tuple[int, ...]) -> Row:
    """Try every method on the same frames of one scene, and the papers' method on `many` more.

    `guess` is the error of the uniform map, `limit` the Cramer-Rao bound. `near` is the share of many more frames where
    the papers' method has less than half of the error of the uniform map, `anywhere` the same with as many sources at
    random places. `gain` is the error of the papers' method over that of the posterior.
    """
    setting = scene.setting
    truth = setting.truth(trials, stream(*key, PLACES))
    tried = {method: try_method(setting, method, truth, key) for method in Method}
    errors = {method: trial.distances.emd for method, trial in tried.items()}
    middle = int(np.argsort(errors[Method.PAPERS], kind="stable")[trials // 2])
    return Row(
        name=scene.name,
        trials=trials,
        guess=float(uniform_errors(truth[:1])[0]),
        limit=limit_of(setting, tried[Method.PAPERS].sigma, truth),
        near=_near(setting, many, key),
        anywhere=_near(replace(setting, at=(), count=len(setting.at)), many, key),
        gain=Mean.ratio(errors[Method.PAPERS], errors[Method.POSTERIOR]),
        looks=tuple(_look(setting, method, trial, middle) for method, trial in tried.items()),
    )


def _near(setting: Setting, frames: int, key: tuple[int, ...]) -> Mean:
    """The share of frames where the papers' method has less than half of the error of the uniform map."""
    truth = setting.truth(frames, stream(*key, MORE, PLACES))
    errors = try_method(setting, Method.PAPERS, truth, (*key, MORE)).distances.emd
    return Mean.of((errors < CLOSE * uniform_errors(truth)).astype(float))


def _look(setting: Setting, method: Method, trial: Trial, frame: int) -> Row:
    """Mean distances over all frames, those of the frame shown, and its map there.

    `central` is the mean share of the weight in the middle half of the way between the outer sources.
    """
    distances, along = trial.distances, setting.line.space.places[:, 0]
    first, last = setting.at[0], setting.at[-1]
    inside = np.abs(along - (first + last) / 2) < (last - first) / 4
    shares = scaled(trial.recovery.map)
    weights = [Row(at=round(float(x), 6), weight=round(float(w), 6)) for x, w in zip(along, shares[frame], strict=True)]
    return Row(
        method=method,
        emd=Mean.of(distances.emd),
        l1=Mean.of(distances.l1),
        l2=Mean.of(distances.l2),
        central=Mean.of(shares[:, inside].sum(axis=1)),
        shown_emd=float(distances.emd[frame]),
        shown_l1=float(distances.l1[frame]),
        shown_l2=float(distances.l2[frame]),
        map=tuple(one for one in weights if one.weight > TRACE),
    )


def _work(run: Run) -> Typical:
    trials, many = run.choose(FULL, QUICK, PROBE)
    return Typical(
        scenes=tuple(try_scene(scene, trials, many, (run.seed, number)) for number, scene in enumerate(SCENES))
    )


EXPERIMENT = Experiment(
    "typical",
    "Recovered maps: close to the truth in earth mover distance, far in l1 and l2",
    Typical,
    _work,
    shows=f"{LATEST}, Figure 1; {FIRST}, Figure 1; {FIRST}, Figure 2; {SHORT}, Figure 1; McMillan, Figure 8.1",
    minutes=0.2,
)
