"""The best attacker who reads everything: the likelihood ratio test between two placements, measured and exact."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from cloakwork.privacy import Profile
from papers import attack
from papers.attack import Attack, Measured, Move, Setting, Window, advantage
from papers.calibration import Calibration
from papers.drawing import INK, MARKERS, SERIES, Dots, draw_dots, log_x
from papers.experiment import Experiment, Run, Size, pick
from papers.result import Agreement, Claim, Finding, Goal, Measure

WINDOW = 20  # frames that a claim covers together: a minute, with one every three seconds
WINDOWS = (2, 5, 10, WINDOW)
GROWING = (Setting.LINE, Setting.DESIGNED)  # attacked with windows of all lengths
DRAWN = (Setting.LINE, Setting.DESIGNED, Setting.CLUB, Setting.CAMERA)
MOVED = (Setting.LINE, Setting.FLAT, Setting.CLUB, Setting.CAMERA)  # drawn with larger moves
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
    moves: tuple[Move, ...]
    frames: int

    def of(self, setting: Setting, calibration: Calibration = Calibration.EXACT) -> Attack:
        return pick(self.attacks, setting=setting, calibration=calibration)

    @property
    def whole(self) -> tuple[Window, ...]:
        """The attacks on a whole window, one a setting."""
        return tuple(one for one in self.windows if one.k == WINDOW)

    @property
    def spent(self) -> float:
        """The largest share of its delta that any of our noises uses, on a frame or a whole window."""
        return max(
            Profile(found.mu).delta(frame.epsilon) / frame.delta
            for window in self.whole
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
        for window in self.whole:
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
            f"needs. In all {len(self.whole)} settings our noise uses at most {100 * self.spent:.0f} % of its delta."
        )

    def draw(self, figure: Figure) -> None:
        grid = figure.add_gridspec(2, 12, height_ratios=(1, 1.15))
        curves = [figure.add_subplot(grid[0, 3 * number : 3 * number + 3]) for number in range(len(DRAWN))]
        for axes, setting in zip(curves, DRAWN, strict=True):
            self._draw_curve(axes, setting)
            axes.tick_params(labelleft=setting is DRAWN[0])
        curves[0].set_ylabel("true positive rate")
        figure.legend(*curves[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9)
        self._draw_settings(figure.add_subplot(grid[1, :4]))
        self._draw_windows(figure.add_subplot(grid[1, 4:8]))
        self._draw_moves(figure.add_subplot(grid[1, 8:]))

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
        whole = {one.setting: one for one in self.whole}
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

    def _draw_windows(self, axes: Any) -> None:
        for number, setting in enumerate(GROWING):
            own = [one for one in self.windows if one.setting is setting]
            color, single = SERIES[2 * number], self.of(setting)
            x = [1, *(one.k for one in own)]
            for name, values, line, fill in (
                ("noise for the window", [one.kept for one in own], "-", color),
                ("for one frame", [one.spent for one in own], "--", "white"),
            ):
                drawn = [single.found, *values]
                axes.plot(x, [one.exact for one in drawn], line, color=color, linewidth=1.2)
                look = {"fmt": MARKERS[number], "markerfacecolor": fill, "markersize": 5, "color": color}
                up, bars = [one.measured for one in drawn], [2 * one.error for one in drawn]
                axes.errorbar(x, up, yerr=bars, elinewidth=1, label=f"{setting}: {name}", **look)
            axes.axhline(single.guaranteed, color=color, linestyle=":", linewidth=1)
        log_x(axes, sorted({1, *(one.k for one in self.windows)}))
        _finish(axes, "several frames of one scene (dotted: claims)", "frames")

    def _draw_moves(self, axes: Any) -> None:
        colors = (SERIES[0], SERIES[2], SERIES[3], SERIES[4])
        for number, setting in enumerate(MOVED):
            for calibration, line in ((Calibration.EXACT, "-"), (Calibration.PAPER, "--")):
                own = [one for one in self.moves if (one.setting, one.calibration) == (setting, calibration)]
                label = str(setting) if calibration is Calibration.EXACT else None
                look = {"marker": MARKERS[number], "color": colors[number], "markersize": 4, "label": label}
                axes.plot([one.times for one in own], [advantage(one.mu) for one in own], line, **look)
        log_x(axes, (1, 2, 5, 10, 20, 40))
        _finish(axes, "larger moves (dashed: papers' noise)", "distance in units of alpha")


def _finish(axes: Any, title: str, label: str) -> None:
    axes.set(ylim=(0, 1.03), xlabel=label, ylabel="advantage")
    axes.set_title(title, fontsize=10)
    axes.grid()
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
        lengths = WINDOWS if run.size is Size.FULL and setting in GROWING else (WINDOW,)
        windows += [attack.window_on(setting, k, single, frames, run.seed) for k in lengths]
    moves = [move for setting in Setting if setting is not Setting.SENSOR for move in attack.moves_of(setting)]
    return Attacks(tuple(attacks), tuple(windows), tuple(moves), frames)


EXPERIMENT = Experiment(
    "attacker",
    "How well the best attacker distinguishes two placements, and what the claim allows",
    Attacks,
    _work,
    shows="Gilbert and McMillan, Proposition 5",
    minutes=1.0,
)
