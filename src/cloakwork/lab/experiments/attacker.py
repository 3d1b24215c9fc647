"""What someone who reads everything can tell: the best test between two placements, measured and exact."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from cloakwork.lab.attack import advantage, allowed
from cloakwork.lab.attacks import FALSE, Attack, Move, Setting, Window, attack_of, excess, moves_of, window_of
from cloakwork.lab.experiment import Experiment, Progress, stream
from cloakwork.lab.result import Agreement, Claim, Finding, Measure, Table
from cloakwork.lab.style import INK, MARKERS, SERIES, log_scale
from cloakwork.privacy import Calibration, Profile

TRIALS, QUICK_TRIALS = 60_000, 1500
WINDOWS, QUICK_WINDOWS = (1, 2, 4, 8, 16, 32), (1, 4, 16)
WINDOW_TRIALS, QUICK_WINDOW_TRIALS = 4000, 200
GENEROUS = 1.2  # times the noise that is needed: more is called too much


@dataclass(frozen=True)
class Attacks(Finding):
    """How much better than a coin the best attacker is."""

    size: ClassVar[tuple[float, float]] = (11.5, 7.4)
    attacks: tuple[Attack, ...]
    windows: tuple[Window, ...]
    moves: tuple[Move, ...]
    trials: int

    def of(self, setting: Setting, calibration: Calibration) -> Attack:
        """One attack."""
        wanted = (setting, calibration)
        return next(one for one in self.attacks if (one.setting, one.calibration) == wanted)

    def tables(self) -> tuple[Table, ...]:
        return (self._advantages(), self._windows(), self._moves())

    def _advantages(self) -> Table:
        rows = [
            (
                f"{one.setting}, {one.calibration} noise, ({one.epsilon:g}, {one.delta:g})",
                f"{one.guaranteed:.3f}",
                f"{one.all_readings.exact:.3f}",
                str(one.all_readings),
                f"{one.one_reading:.3f}",
            )
            for one in self.attacks
        ]
        names = ("at most, by the claim", "exactly", "measured", "from the best reading alone")
        title = f"Advantage of the best test between the two worst neighbours, {self.trials:,} frames of each"
        return Table(title, ("", *names), tuple(rows))

    def _windows(self) -> Table:
        rows = [
            (str(one.k), f"{one.kept.exact:.3f}", str(one.kept), f"{one.spent.exact:.3f}", str(one.spent))
            for one in self.windows
        ]
        names = ("frames", "budget kept", "measured", "budget ignored", "measured")
        return Table("Line: advantage from several frames of one scene, ours", names, tuple(rows))

    def _moves(self) -> Table:
        rows = [
            (
                f"{one.setting}, {one.times:.3g} alpha",
                f"{one.mu:.2f}",
                f"{advantage(one.mu):.3f}",
                f"{advantage(one.times * self.of(one.setting, one.calibration).mu):.3f}",
            )
            for one in self.moves
            if one.calibration is Calibration.EXACT
        ]
        names = ("standard deviations apart", "advantage", "at most, by c mu")
        return Table("Moves of more than alpha, our noise", ("", *names), tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        return tuple(
            Claim(
                f"sigma = 2 ln(1.25/delta) Delta/epsilon is private at ({one.epsilon:g}, {one.delta:g})",
                "Gilbert and McMillan, Proposition 5",
                f"{one.setting}: true delta {Profile(one.mu).delta(one.epsilon):.1e}, "
                f"{excess(one):.1f} times the noise that is needed",
                _judged(one),
            )
            for one in self.attacks
            if one.calibration is Calibration.PAPER
        )

    def measures(self) -> tuple[Measure, ...]:
        found = [
            Measure(f"advantage, {one.setting}, {one.calibration}", one.all_readings.measured, one.all_readings.error)
            for one in self.attacks
        ]
        found += [Measure(f"mu, {one.setting}, {one.calibration}", one.mu) for one in self.attacks]
        k4 = next(one for one in self.windows if one.k == 4)
        found.append(Measure("advantage from 4 frames, budget kept", k4.kept.measured, k4.kept.error))
        found.append(Measure("advantage from 4 frames, budget ignored", k4.spent.measured, k4.spent.error))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        ours, papers = (self.of(Setting.LINE, calibration) for calibration in (Calibration.EXACT, Calibration.PAPER))
        room = self.of(Setting.FLAT, Calibration.EXACT)
        last = self.windows[-1]
        far = [one for one in self.moves if one.setting is Setting.LINE and one.calibration is Calibration.EXACT]
        beyond = next((one for one in far if one.times >= 5), far[-1])
        return (
            "The attacker knows the physics, the noise and both placements, and has only to say which one it is; the "
            "likelihood ratio of all readings is then the best test there is. Advantage is its true positive rate less "
            f"its false positive rate: 0 is a coin, 1 is certainty. On the line at ({ours.epsilon:g}, {ours.delta:g}) "
            f"the claim leaves at most {ours.guaranteed:.3f}; the best test has {ours.all_readings.exact:.3f} "
            f"({ours.all_readings} measured on simulated releases), and {ours.one_reading:.3f} if it sees one sensor "
            f"only. The papers' noise leaves it {papers.all_readings.exact:.3f}: more privacy than was asked for, paid "
            f"for with {excess(papers):.1f} times the noise. The claim forbids only the grey corner; it "
            f"says less than the noise does (flat: {room.guaranteed:.2f} allowed, "
            f"{room.all_readings.exact:.2f} true).",
            f"Averaging undoes noise. Noise made for one frame and used for {last.k} lets the advantage grow to "
            f"{last.spent.measured:.2f}; noise made for the whole window keeps it at {last.kept.measured:.2f}. This is "
            "why every release spends.",
            f"A claim is about moves of up to alpha. A source that moved {beyond.times:.3g} alpha is told from where "
            f"it was with an advantage of {advantage(beyond.mu):.2f}: that a vicinity can be found at all is the same "
            "fact.",
        )

    def draw(self, figure: Figure) -> None:
        grid = figure.add_gridspec(2, 6)
        for number, setting in enumerate(Setting):
            self._draw_curve(figure.add_subplot(grid[0, 2 * number : 2 * number + 2]), setting)
        self._draw_windows(figure.add_subplot(grid[1, :3]))
        self._draw_moves(figure.add_subplot(grid[1, 3:]))

    def _draw_curve(self, axes: Any, setting: Setting) -> None:
        false = np.linspace(0.0, 1.0, 201)
        claim = self.of(setting, Calibration.EXACT)
        limit = [allowed(claim.epsilon, claim.delta, float(x)) for x in false]
        axes.fill_between(false, limit, 1.0, color="#eeeeee", label="forbidden by the claim")
        inner = np.clip(false, 1e-9, 1 - 1e-9)
        for number, calibration in enumerate((Calibration.EXACT, Calibration.PAPER)):
            one = self.of(setting, calibration)
            axes.plot(false, special.ndtr(special.ndtri(inner) + one.mu), color=SERIES[number], linewidth=1.2)
            name = "our noise" if calibration is Calibration.EXACT else "the papers' noise"
            axes.plot(FALSE, one.curve, MARKERS[number], color=SERIES[number], markersize=4, label=f"{name}, measured")
        axes.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1)
        axes.set_title(f"{setting}, ({claim.epsilon:g}, {claim.delta:g})")
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.0)
        axes.legend(fontsize=8, loc="lower right")

    def _draw_windows(self, axes: Any) -> None:
        x = [one.k for one in self.windows]
        for number, (name, values) in enumerate(
            (
                ("noise made for all frames", [one.kept for one in self.windows]),
                ("noise made for one frame", [one.spent for one in self.windows]),
            )
        ):
            colour = SERIES[3 * number]
            bars = [2 * one.error for one in values]
            look = {"color": colour, "label": f"{name}, measured", "elinewidth": 1, "markersize": 5}
            axes.errorbar(x, [one.measured for one in values], yerr=bars, fmt=MARKERS[number], **look)
            axes.plot(x, [one.exact for one in values], color=colour, linewidth=1.2)
        claim = self.of(Setting.LINE, Calibration.EXACT)
        axes.axhline(claim.guaranteed, color=INK, linestyle=":", linewidth=1)
        axes.text(x[-1], claim.guaranteed - 0.015, "the claim", fontsize=8, color=INK, ha="right", va="top")
        log_scale(axes, x)
        axes.set_ylim(0, 1.02)
        axes.set_title("line: several frames of one scene")
        axes.set_xlabel("frames")
        axes.set_ylabel("advantage")
        axes.grid()
        axes.legend(fontsize=8, loc="upper left")

    def _draw_moves(self, axes: Any) -> None:
        for number, setting in enumerate(Setting):
            for calibration, line in ((Calibration.EXACT, "-"), (Calibration.PAPER, "--")):
                own = [one for one in self.moves if (one.setting, one.calibration) == (setting, calibration)]
                label = str(setting) if calibration is Calibration.EXACT else None
                look = {"marker": MARKERS[number], "color": SERIES[number], "markersize": 4, "label": label}
                axes.plot([one.times for one in own], [advantage(one.mu) for one in own], line, **look)
        log_scale(axes, (1, 2, 5, 10, 20, 40))
        axes.set_ylim(0, 1.02)
        axes.set_title("a source that moved farther (dashed: the papers' noise)")
        axes.set_xlabel("distance in units of alpha")
        axes.set_ylabel("advantage")
        axes.grid()
        axes.legend(fontsize=8, loc="lower right")


def _judged(one: Attack) -> Agreement:
    if Profile(one.mu).delta(one.epsilon) > one.delta:
        return Agreement.WRONG
    return Agreement.LOOSER if excess(one) > GENEROUS else Agreement.AGREES


def _work(*, quick: bool, seed: int, progress: Progress) -> Attacks:
    trials, rounds = (QUICK_TRIALS, QUICK_WINDOW_TRIALS) if quick else (TRIALS, WINDOW_TRIALS)
    windows = QUICK_WINDOWS if quick else WINDOWS
    cases = [(setting, calibration) for setting in Setting for calibration in Calibration]
    total = len(cases) + sum(windows) // 4 + len(Setting)
    attacks = []
    for number, (setting, calibration) in enumerate(cases):
        attacks.append(attack_of(setting, calibration, trials, stream(seed, 0, number)))
        progress(number + 1, total)
    tried = []
    for k in windows:
        tried.append(window_of(k, rounds, seed))
        progress(len(cases) + sum(one.k for one in tried) // 4, total)
    moves = [one for setting in Setting for one in moves_of(setting)]
    progress(total, total)
    return Attacks(tuple(attacks), tuple(tried), tuple(moves), trials)


EXPERIMENT = Experiment(
    "attacker",
    "What the best attacker can tell from the readings, and what the claim allows",
    Attacks,
    _work,
    shows=("Gilbert and McMillan, Proposition 5",),
    minutes=0.3,
)
