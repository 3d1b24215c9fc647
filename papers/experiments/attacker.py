"""The best attacker who reads everything: the likelihood ratio test between two placements, measured and exact."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from cloakwork.privacy import Profile
from papers import attack
from papers.attack import Attack, Measured, Setting, Window
from papers.calibration import Calibration
from papers.drawing import INK, MARKERS, SERIES, Dots, draw_dots
from papers.experiment import Experiment, Run, pick
from papers.result import Agreement, Claim, Finding, Goal, Measure

WINDOW = 20  # frames that a claim covers together: a minute, with one every three seconds
DRAWN = (Setting.LINE, Setting.DESIGNED, Setting.CLUB, Setting.CAMERA)
FRAMES, QUICK_FRAMES = 100_000, 8_000
GENEROUS = 1.2  # times the noise that is needed: more is called loose
SEARCHED = 1e-3  # relative difference of designed noise between machines: it results from a search
_LEGEND: Any = {"fontsize": 7.5, "loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 2, "handlelength": 1.2}


@dataclass(frozen=True)
class Attacks(Finding):
    """The advantage of the best attacker over a coin."""

    size: ClassVar[tuple[float, float]] = (13.5, 8.4)
    attacks: tuple[Attack, ...]
    windows: tuple[Window, ...]
    frames: int

    def of(self, setting: Setting, calibration: Calibration = Calibration.EXACT) -> Attack:
        return pick(self.attacks, setting=setting, calibration=calibration)

    @property
    def spent(self) -> float:
        """The largest share of its delta that any of our noises uses, on a frame or a whole window."""
        return max(
            Profile(found.mu).delta(frame.epsilon) / frame.delta
            for window in self.windows
            for frame in [self.of(window.setting)]
            for found in (frame.found, window.kept)
        )

    def goals(self) -> tuple[Goal, ...]:
        text = "no attack on our noise, on a frame or a whole window, exceeds its delta"
        return (Goal(text, f"at most {100 * self.spent:.0f} % of it", self.spent <= 1),)

    def claims(self) -> tuple[Claim, ...]:
        return tuple(
            Claim(
                f"sigma = 2 ln(1.25/delta) Delta/epsilon is private at ({one.epsilon:g}, {one.delta:g})",
                "Gilbert and McMillan, Proposition 5",
                f"{one.setting}: true delta {Profile(one.found.mu).delta(one.epsilon):.1e}, "
                f"{one.excess:.1f} times the noise that is needed",
                _judge(one),
            )
            for one in self.attacks
            if one.calibration is Calibration.PAPER and one.setting in DRAWN
        )

    def measures(self) -> tuple[Measure, ...]:
        measures = []
        for one in self.attacks:
            name = f"{one.setting}, {_noise(one.calibration)}"
            measures.append(Measure(f"advantage, {name}", one.found.measured, one.found.error))
            measures.append(Measure(f"separation, {name}", one.found.mu, slack=SEARCHED * one.found.mu))
        for setting in Setting:
            times = self.of(setting).found.mu / self.of(setting, Calibration.PAPER).found.mu
            measures.append(Measure(f"papers' noise over ours, {setting}", times, slack=SEARCHED * times))
        for window in self.windows:
            for name, found in (("the window", window.kept), ("one frame", window.spent)):
                text = f"advantage from a window, noise for {name}, {window.setting}"
                measures.append(Measure(text, found.measured, found.error))
        return tuple(measures)

    def text(self) -> str:
        ours, papers = self.of(Setting.LINE), self.of(Setting.LINE, Calibration.PAPER)
        return (
            "The attacker knows the physics, the noise and both placements, the neighbours that the noise hides worst. "
            "The likelihood ratio of all readings is the best test. The advantage is the true minus the false positive "
            f"rate. On the line the claim allows at most {ours.guaranteed:.3f}; the best test has "
            f"{ours.found.exact:.3f} with our noise, {ours.one_sensor:.3f} from a single sensor, and "
            f"{papers.found.exact:.3f} with the papers' noise, which is {papers.excess:.1f} times what the claim "
            f"needs. In all {len(self.windows)} settings our noise uses at most {100 * self.spent:.0f} % of its delta."
        )

    def draw(self, figure: Figure) -> None:
        grid = figure.add_gridspec(2, 12, height_ratios=(1, 1.15))
        curves = [figure.add_subplot(grid[0, 3 * number : 3 * number + 3]) for number in range(len(DRAWN))]
        for axes, setting in zip(curves, DRAWN, strict=True):
            self._draw_curve(axes, setting)
            axes.tick_params(labelleft=setting is DRAWN[0])
        curves[0].set_ylabel("true positive rate")
        figure.legend(*curves[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9)
        self._draw_settings(figure.add_subplot(grid[1, :]))

    def _draw_curve(self, axes: Any, setting: Setting) -> None:
        claim = self.of(setting)
        least = min(1e-3, math.exp(-claim.epsilon) / 30)
        false = np.geomspace(least, 1.0, 400)
        limit = [attack.allowed(claim.epsilon, claim.delta, float(x)) for x in false]
        axes.fill_between(false, limit, 1.0, color="#dddddd", label="forbidden by the claim")
        for number, calibration in enumerate((Calibration.EXACT, Calibration.PAPER)):
            found, color = self.of(setting, calibration), SERIES[number]
            true = special.ndtr(special.ndtri(np.clip(false, 0, 1 - 1e-9)) + found.found.mu)
            axes.plot(false, true, color=color, linewidth=1.2)
            label = f"{_noise(calibration)}, measured"
            axes.plot(attack.FALSE, found.curve, MARKERS[number], color=color, markersize=4, label=label)
        axes.plot(false, false, color=INK, linestyle=":", linewidth=1, label="a coin")
        axes.set_xscale("log")
        axes.set_title(f"{setting}, ({claim.epsilon:g}, {claim.delta:g})", fontsize=10)
        axes.set(xlabel="false positive rate", xlim=(least, 1), ylim=(0, 1.0))

    def _draw_settings(self, axes: Any) -> None:
        whole = {one.setting: one for one in self.windows}
        looks: tuple[tuple[str, list[Measured], str, str], ...] = (
            ("papers' noise, one frame", [self.of(s, Calibration.PAPER).found for s in Setting], SERIES[1], "s"),
            ("exact noise, one frame", [self.of(s).found for s in Setting], SERIES[0], "o"),
            (f"exact noise, {WINDOW} frames", [whole[s].kept for s in Setting], SERIES[0], "D"),
            (f"noise for one frame, {WINDOW} frames", [whole[s].spent for s in Setting], INK, "^"),
        )
        dots = [
            Dots(name, [one.measured for one in values], [one.error for one in values], color, marker)
            for name, values, color, marker in looks
        ]
        draw_dots(axes, [str(one).replace(", ", ",\n") for one in Setting], dots)
        for row, setting in enumerate(Setting):
            label = "allowed by the claim" if row == 0 else None
            x, y = [self.of(setting).guaranteed] * 2, [row - 0.35, row + 0.35]
            axes.plot(x, y, color=INK, linewidth=1.5, label=label)
        axes.set(xlim=(0, 1.03), xlabel="advantage")
        axes.set_title("all settings, measured", fontsize=10)
        axes.legend(**_LEGEND)


def _noise(calibration: Calibration) -> str:
    return "exact noise" if calibration is Calibration.EXACT else "papers' noise"


def _judge(one: Attack) -> Agreement:
    if Profile(one.found.mu).delta(one.epsilon) > one.delta:
        return Agreement.WRONG
    return Agreement.LOOSER if one.excess > GENEROUS else Agreement.AGREES


def _work(run: Run) -> Attacks:
    frames = run.choose(FRAMES, QUICK_FRAMES, 200)
    attacks: list[Attack] = []
    windows: list[Window] = []
    for setting in run.each(Setting):
        single = attack.releases(setting, Calibration.EXACT, 1, frames, run.seed)
        papers = attack.releases(setting, Calibration.PAPER, 1, frames, run.seed)
        attacks.append(attack.attack_on(setting, Calibration.EXACT, single))
        attacks.append(attack.attack_on(setting, Calibration.PAPER, papers))
        windows.append(attack.window_on(setting, WINDOW, single, frames, run.seed))
    return Attacks(tuple(attacks), tuple(windows), frames)


EXPERIMENT = Experiment(
    "attacker",
    "How well the best attacker distinguishes two placements, and what the claim allows",
    Attacks,
    _work,
    shows="Gilbert and McMillan, Proposition 5",
    minutes=1.0,
)
