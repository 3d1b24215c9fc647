"""What someone who reads everything can tell: the best test between two placements, measured and exact."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from cloakwork.privacy import Calibration, Profile
from papers.attack import Measured, advantage, allowed
from papers.attacks import (
    FALSE,
    Attack,
    Move,
    Setting,
    Window,
    attack_on,
    excess,
    moves_of,
    releases,
    window_on,
)
from papers.experiment import Experiment, Progress
from papers.result import Agreement, Claim, Finding, Goal, Measure, Table
from papers.style import INK, MARKERS, SERIES, Dots, draw_dots, log_scale
from papers.tracks import READINGS

FRAMES, QUICK_FRAMES = 100_000, 8_000
WINDOW = READINGS  # frames that a claim covers together, as in `movement`
WINDOWS, QUICK_WINDOWS = (2, 5, 10, WINDOW), (WINDOW,)
GROWING = (Setting.LINE, Setting.DESIGNED)  # attacked with windows of all lengths
DRAWN = (Setting.LINE, Setting.DESIGNED, Setting.CLUB, Setting.CAMERA)  # with their curves
MOVED = (Setting.LINE, Setting.FLAT, Setting.CLUB, Setting.CAMERA)  # drawn with larger moves
GENEROUS = 1.2  # times the noise that is needed: more is called too much
SAME = 1e-6
SEARCHED = 1e-3  # how far, in parts, designed noise may be off on another machine: it is the result of a search
_LEGEND: dict[str, Any] = {
    "fontsize": 7.5,
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.13),
    "ncols": 2,
    "handlelength": 1.2,
}


@dataclass(frozen=True)
class Attacks(Finding):
    """How much better than a coin the best attacker is."""

    size: ClassVar[tuple[float, float]] = (13.5, 8.4)
    attacks: tuple[Attack, ...]
    windows: tuple[Window, ...]
    moves: tuple[Move, ...]
    frames: int

    def of(self, setting: Setting, calibration: Calibration = Calibration.EXACT) -> Attack:
        """One attack."""
        wanted = (setting, calibration)
        return next(one for one in self.attacks if (one.setting, one.calibration) == wanted)

    @property
    def whole(self) -> tuple[Window, ...]:
        """The attacks on a whole window, one a setting."""
        return tuple(one for one in self.windows if one.k == WINDOW)

    @property
    def fullest(self) -> float:
        """The largest share of its delta that any of our noises spends, on a frame or a whole window."""
        spent = [
            Profile(found.mu).delta(one.epsilon) / one.delta
            for window in self.whole
            for one in [self.of(window.setting)]
            for found in (one.found, window.kept)
        ]
        return max(spent)

    def tables(self) -> tuple[Table, ...]:
        return (self._advantages(), self._whole(), self._growing(), self._moves())

    def _advantages(self) -> Table:
        rows = [
            (
                f"{one.setting}, {one.calibration} calibration, ({one.epsilon:g}, {one.delta:g})",
                _near_one(one.guaranteed),
                f"{one.found.exact:.3f}",
                str(one.found),
                f"{one.one_sensor:.3f}",
                f"{one.all_sensors:.3f}",
            )
            for one in self.attacks
        ]
        names = ("at most, by the claim", "exactly", "measured", "from the best reading alone", "from all readings")
        title = f"Advantage of the best test between the two worst neighbours, {self.frames:,} frames"
        return Table(title, ("", *names), tuple(rows))

    def _whole(self) -> Table:
        rows = [
            (
                str(one.setting),
                _near_one(self.of(one.setting).guaranteed),
                f"{one.kept.exact:.3f}",
                str(one.kept),
                f"{one.spent.exact:.3f}",
                str(one.spent),
            )
            for one in self.whole
        ]
        names = ("at most, by the claim", "budget kept", "measured", "budget ignored", "measured")
        title = f"Advantage from a window of {WINDOW} frames of a scene that stays the same, our noise"
        return Table(title, ("", *names), tuple(rows))

    def _growing(self) -> Table:
        rows = [
            (
                f"{one.setting}, {one.k} frames",
                f"{one.kept.exact:.3f}",
                str(one.kept),
                f"{one.spent.exact:.3f}",
                str(one.spent),
            )
            for one in self.windows
            if one.setting in GROWING
        ]
        names = ("", "budget kept", "measured", "budget ignored", "measured")
        return Table("The same for windows of other lengths", names, tuple(rows))

    def _moves(self) -> Table:
        rows = [
            (
                f"{one.setting}, {one.times:.3g} alpha",
                f"{one.mu:.2f}",
                f"{advantage(one.mu):.3f}",
                f"{advantage(one.times * self.of(one.setting).found.mu):.3f}",
            )
            for one in self.moves
            if one.calibration is Calibration.EXACT
        ]
        names = ("standard deviations apart", "advantage", "at most, by c mu")
        return Table("Moves of more than alpha, our noise, one frame", ("", *names), tuple(rows))

    def goals(self) -> tuple[Goal, ...]:
        text = "no attack on our noise, on a frame or a whole window, spends more than its delta"
        return (Goal(text, f"at most {100 * self.fullest:.0f} % of it", self.fullest <= 1),)

    def claims(self) -> tuple[Claim, ...]:
        return tuple(
            Claim(
                f"sigma = 2 ln(1.25/delta) Delta/epsilon is private at ({one.epsilon:g}, {one.delta:g})",
                "Gilbert and McMillan, Proposition 5",
                f"{one.setting}: true delta {Profile(one.found.mu).delta(one.epsilon):.1e}, "
                f"{excess(one):.1f} times the noise that is needed",
                _judged(one),
            )
            for one in self.attacks
            if one.calibration is Calibration.PAPER and one.setting in DRAWN
        )

    def measures(self) -> tuple[Measure, ...]:
        found = []
        for one in self.attacks:
            name = f"{one.setting}, {one.calibration}"
            found.append(Measure(f"advantage, {name}", one.found.measured, one.found.error))
            found.append(Measure(f"mu, {name}", one.found.mu, slack=SEARCHED * one.found.mu))
        for setting in Setting:
            ours, papers = self.of(setting), self.of(setting, Calibration.PAPER)
            times = ours.found.mu / papers.found.mu
            found.append(Measure(f"papers' noise over ours, {setting}", times, slack=SEARCHED * times))
        for window in self.whole:
            for name, measured in (("kept", window.kept), ("ignored", window.spent)):
                whole = f"advantage from a window, budget {name}, {window.setting}"
                found.append(Measure(whole, measured.measured, measured.error))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        ours, papers = self.of(Setting.LINE), self.of(Setting.LINE, Calibration.PAPER)
        return (
            "The attacker knows the physics, the noise and both placements, and has only to say which one it is; the "
            "likelihood ratio of all readings is then the best test there is. The two placements are the neighbours "
            "that the noise at hand hides worst. Advantage is the test's true positive rate less "
            f"its false positive rate: 0 is a coin, 1 is certainty. On the line at ({ours.epsilon:g}, {ours.delta:g}) "
            f"the claim leaves at most {ours.guaranteed:.3f}; the best test has {ours.found.exact:.3f} "
            f"({ours.found} measured on simulated releases), and {ours.one_sensor:.3f} if it sees one sensor "
            f"only. The papers' noise leaves it {papers.found.exact:.3f}, with {excess(papers):.1f} times the noise "
            f"that the claim needs. {self._against_claims()}",
            f"{self._designs()} {self._sensors()}",
            self._averaging(),
            self._beyond(),
        )

    def _against_claims(self) -> str:
        """Whether the claims hold, in words."""
        far = min(self.whole, key=lambda one: self.of(one.setting).found.exact / self.of(one.setting).guaranteed)
        loose = self.of(far.setting)
        if self.fullest > 1:
            return f"One of our noises misses its claim: its delta is {self.fullest:.2f} times what is claimed."
        return (
            f"In none of the {len(self.whole)} settings does our noise spend more than {100 * self.fullest:.0f} % of "
            "its delta. The claim forbids only the grey corner, and says less than the noise does: "
            f"{loose.setting} at ({loose.epsilon:g}, {loose.delta:g}) has {loose.found.exact:.3f} of the "
            f"{loose.guaranteed:.3f} allowed."
        )

    def _designs(self) -> str:
        """What noise that differs from sensor to sensor hides, in words."""
        one = self.of(Setting.DESIGNED)
        largest = excess(one)
        verdict = "as much as the claim asks for" if largest >= 1 else "less than the claim asks for"
        return (
            f"Noise that is shared among the sensors by design, as in `movement`, hides {verdict}: "
            f"at ({one.epsilon:g}, {one.delta:g}) a frame of it has an advantage of {one.found.exact:.3f} exactly "
            f"({one.found} measured), and {1 / largest:.3f} of the shift that the claim allows."
        )

    def _sensors(self) -> str:
        """What noise made against one sensor leaves to who sees all, in words."""
        one = self.of(Setting.SENSOR)
        exposed = one.all_sensors > one.guaranteed
        return (
            f"Noise that is made against who sees one sensor keeps that reader at {one.found.exact:.3f}; "
            f"who sees all has {one.all_sensors:.3f}, {'more' if exposed else 'still less'} than the "
            f"{one.guaranteed:.3f} that the claim would leave{', and is not covered by it' if exposed else ''}."
        )

    def _averaging(self) -> str:
        """What a window gives away, in words."""
        moved = max(abs(one.kept.exact - self.of(one.setting).found.exact) for one in self.whole)
        same = "the same as" if moved < SAME else f"within {moved:.0e} of that"
        kept = ", ".join(f"{one.kept.exact:.3f} ({one.setting})" for one in self.whole)
        spent = ", ".join(f"{one.spent.exact:.3f}" for one in self.whole)
        grows = all(one.spent.exact > one.kept.exact + SAME for one in self.whole)
        return (
            f"{'Averaging undoes noise. ' if grows else ''}A scene that stays the same over a window is the worst "
            f"case. Noise made for all {WINDOW} frames keeps the advantage at {kept}, {same} from one frame with noise "
            f"for one. Noise made for one frame and used for {WINDOW} would bring it to {spent}, in this order"
            f"{'. This is why every release spends' if grows else ''}."
        )

    def _beyond(self) -> str:
        """What becomes of larger moves, in words."""
        far = [one for one in self.moves if one.setting is Setting.LINE and one.calibration is Calibration.EXACT]
        beyond = next((one for one in far if one.times >= 5), far[-1])
        found, claimed = advantage(beyond.mu), self.of(Setting.LINE).guaranteed
        return (
            f"A claim is about moves of up to alpha. A source that moved {beyond.times:.3g} alpha is told from where "
            f"it was with an advantage of {found:.3f}"
            f"{': that a vicinity can be found at all is the same fact' if found > claimed else ''}."
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
        limit = [allowed(claim.epsilon, claim.delta, float(x)) for x in false]
        axes.fill_between(false, limit, 1.0, color="#dddddd", label="forbidden by the claim")
        inner = np.clip(false, 0, 1 - 1e-9)
        for number, calibration in enumerate((Calibration.EXACT, Calibration.PAPER)):
            one = self.of(setting, calibration)
            axes.plot(false, special.ndtr(special.ndtri(inner) + one.found.mu), color=SERIES[number], linewidth=1.2)
            name = "our noise" if calibration is Calibration.EXACT else "the papers' noise"
            axes.plot(FALSE, one.curve, MARKERS[number], color=SERIES[number], markersize=4, label=f"{name}, measured")
        axes.plot(false, false, color=INK, linestyle=":", linewidth=1, label="a coin")
        axes.set_xscale("log")
        axes.set_title(f"{setting}, ({claim.epsilon:g}, {claim.delta:g})", fontsize=10)
        axes.set_xlabel("false positive rate")
        axes.set_xlim(least, 1)
        axes.set_ylim(0, 1.0)

    def _draw_settings(self, axes: Any) -> None:
        whole = {one.setting: one for one in self.whole}
        look: tuple[tuple[str, list[Measured], str, str], ...] = (
            ("the papers' noise, one frame", [self.of(s, Calibration.PAPER).found for s in Setting], SERIES[1], "s"),
            ("ours, one frame", [self.of(s).found for s in Setting], SERIES[0], "o"),
            (f"ours, {WINDOW} frames", [whole[s].kept for s in Setting], SERIES[0], "D"),
            (f"budget ignored, {WINDOW} frames", [whole[s].spent for s in Setting], INK, "^"),
        )
        dots = [
            Dots(name, [one.measured for one in values], [one.error for one in values], color, marker)
            for name, values, color, marker in look
        ]
        draw_dots(axes, [str(one).replace(", ", ",\n") for one in Setting], dots)
        for row, setting in enumerate(Setting):
            label = "at most, by the claim" if row == 0 else None
            axes.plot(
                [self.of(setting).guaranteed] * 2, [row - 0.35, row + 0.35], color=INK, linewidth=1.5, label=label
            )
        axes.set_xlim(0, 1.03)
        axes.set_title("every setting, measured", fontsize=10)
        axes.set_xlabel("advantage")
        axes.legend(**_LEGEND)

    def _draw_windows(self, axes: Any) -> None:
        for setting in GROWING:
            own = [one for one in self.windows if one.setting is setting]
            colour, single = SERIES[2 * GROWING.index(setting)], self.of(setting).found
            x = [1, *(one.k for one in own)]
            for name, values, line, fill in (
                ("budget kept", [one.kept for one in own], "-", colour),
                ("ignored", [one.spent for one in own], "--", "white"),
            ):
                drawn = [single, *values]
                axes.plot(x, [one.exact for one in drawn], line, color=colour, linewidth=1.2)
                mark = {"fmt": MARKERS[GROWING.index(setting)], "markerfacecolor": fill, "markersize": 5}
                up, bars = [one.measured for one in drawn], [2 * one.error for one in drawn]
                axes.errorbar(x, up, yerr=bars, color=colour, elinewidth=1, label=f"{setting}: {name}", **mark)
            claim = self.of(setting)
            axes.axhline(claim.guaranteed, color=colour, linestyle=":", linewidth=1)
        log_scale(axes, sorted({1, *(one.k for one in self.windows)}))
        axes.set_ylim(0, 1.03)
        axes.set_title("several frames of one scene (dotted: claims)", fontsize=10)
        axes.set_xlabel("frames")
        axes.set_ylabel("advantage")
        axes.grid()
        axes.legend(**_LEGEND)

    def _draw_moves(self, axes: Any) -> None:
        colours = (SERIES[0], SERIES[2], SERIES[3], SERIES[4])
        for number, setting in enumerate(MOVED):
            for calibration, line in ((Calibration.EXACT, "-"), (Calibration.PAPER, "--")):
                own = [one for one in self.moves if (one.setting, one.calibration) == (setting, calibration)]
                label = str(setting) if calibration is Calibration.EXACT else None
                look = {"marker": MARKERS[number], "color": colours[number], "markersize": 4, "label": label}
                axes.plot([one.times for one in own], [advantage(one.mu) for one in own], line, **look)
        log_scale(axes, (1, 2, 5, 10, 20, 40))
        axes.set_ylim(0, 1.03)
        axes.set_title("larger moves (dashed: the papers' noise)", fontsize=10)
        axes.set_xlabel("distance in units of alpha")
        axes.set_ylabel("advantage")
        axes.grid()
        axes.legend(**_LEGEND)


def _near_one(share: float) -> str:
    """What is left to 1 where it would be rounded away."""
    return f"{share:.3f}" if share < 0.9995 else f"1 - {1 - share:.0e}"


def _judged(one: Attack) -> Agreement:
    if Profile(one.found.mu).delta(one.epsilon) > one.delta:
        return Agreement.WRONG
    return Agreement.LOOSER if excess(one) > GENEROUS else Agreement.AGREES


def _work(*, quick: bool, seed: int, progress: Progress) -> Attacks:
    frames, windows = (QUICK_FRAMES, QUICK_WINDOWS) if quick else (FRAMES, WINDOWS)
    attacks: list[Attack] = []
    tried: list[Window] = []
    for number, setting in enumerate(Setting):
        single = releases(setting, Calibration.EXACT, 1, frames, seed)
        attacks.append(attack_on(setting, Calibration.EXACT, single))
        attacks.append(attack_on(setting, Calibration.PAPER, releases(setting, Calibration.PAPER, 1, frames, seed)))
        lengths = windows if setting in GROWING else (WINDOW,)
        tried += [window_on(setting, k, single, frames, seed) for k in lengths]
        progress(number + 1, len(Setting))
    moves = [one for setting in Setting if setting is not Setting.SENSOR for one in moves_of(setting)]
    return Attacks(tuple(attacks), tuple(tried), tuple(moves), frames)


EXPERIMENT = Experiment(
    "attacker",
    "What the best attacker can tell from the readings, and what the claim allows",
    Attacks,
    _work,
    shows=("Gilbert and McMillan, Proposition 5",),
    minutes=1.0,
)
