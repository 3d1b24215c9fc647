"""Which community a source is in, and who it is: a block model and networks that people have drawn by hand."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork.lab.experiment import Experiment, Progress, part
from cloakwork.lab.networks import RIVALS, Score, Way, block_model, named_networks, share_error
from cloakwork.lab.result import Agreement, Claim, Finding, Measure, Table
from cloakwork.lab.rumours import (
    EPSILON,
    GRAPH,
    HIGH,
    LOW,
    NODES,
    SOURCE,
    TAU,
    Cell,
    Picture,
    Reading,
    cells_of,
    picture_of,
    reading_of,
)
from cloakwork.lab.style import FAINT, INK, MARKERS, SERIES, legend_below, log_scale

NAMED_TAU = 0.5
DARK = 5.0  # times an even share of the weight: the darkest colour
TAUS, QUICK_TAUS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (2.0, 8.0)
EPSILONS, QUICK_EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0), (4.0, 16.0)
FRAMES, QUICK_FRAMES = 320, 24
SHOWN = 3  # times as many frames are averaged for the picture
EACH, QUICK_EACH = 6, 1  # frames for each node of a network drawn by hand
FOUND = 0.9  # how often a community has to be right to count as found


@dataclass(frozen=True)
class Communities(Finding):
    """Communities found in a block model and in networks drawn by hand."""

    size: ClassVar[tuple[float, float]] = (12.0, 7.4)
    pictures: tuple[Picture, ...]
    hops: tuple[int, ...]
    cells: tuple[Cell, ...]
    guesses: tuple[tuple[str, float], ...]
    readings: tuple[Reading, ...]

    def of(self, way: Way, tau: float = TAU, epsilon: float = EPSILON, network: str = "block model") -> Score:
        """How one way did."""
        wanted = (network, way, tau, epsilon)
        return next(one.score for one in self.cells if (one.network, one.way, one.tau, one.epsilon) == wanted)

    @property
    def taus(self) -> tuple[float, ...]:
        """Times tried on the block model."""
        return tuple(sorted({one.tau for one in self.cells if one.network == "block model"}))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Epsilons tried."""
        return tuple(sorted({one.epsilon for one in self.cells}))

    def tables(self) -> tuple[Table, ...]:
        return (*(self._grid(way) for way in RIVALS), self._halves(), self._named(), self._captions())

    def _halves(self) -> Table:
        rows = [
            (str(way), _percent(self.of(way)), f"{100 * self.of(way).person:.1f}", f"{self.of(way).hops:.2f}")
            for way in Way
        ]
        title = f"Block model, tau = {TAU:g}, epsilon = {EPSILON:g}: what the noise does, and what the recovery"
        return Table(title, ("", "percent right", "percent the very node", "steps off"), tuple(rows))

    def _grid(self, way: Way) -> Table:
        rows = [
            (f"tau = {tau:g}", *(_percent(self.of(way, tau, epsilon)) for epsilon in self.epsilons))
            for tau in self.taus
        ]
        frames = self.of(way).frames
        title = f"Block model, percent with the right community over {frames} frames, {way}"
        return Table(title, ("", *(f"epsilon = {epsilon:g}" for epsilon in self.epsilons)), tuple(rows))

    def _named(self) -> Table:
        rows = []
        for name, guess in self.guesses:
            for epsilon in self.epsilons:
                both = [self.of(way, NAMED_TAU, epsilon, name) for way in RIVALS]
                rows.append(
                    (
                        f"{name}, epsilon = {epsilon:g}",
                        *(_percent(one) for one in both),
                        f"{100 * guess:.0f}",
                        *(f"{100 * one.person:.0f}" for one in both),
                        *(f"{one.hops:.2f}" for one in both),
                    )
                )
        names = ("right: papers", "ours", "guess", "who: papers", "ours", "steps off: papers", "ours")
        title = f"Networks drawn by hand, tau = {NAMED_TAU:g}: percent right (community; the very node), steps off"
        return Table(title, ("", *names), tuple(rows))

    def _captions(self) -> Table:
        rows = [
            (
                f"{100 * one.inside:g} % inside, {100 * one.between:g} % between",
                f"{one.home:.6f}",
                f"{100 * one.right:.2f}",
            )
            for one in self.readings
        ]
        names = ("", "heat still in its community", "percent right, best linear rule")
        return Table(f"The caption, both ways, tau = {TAU:g}, epsilon = {EPSILON:g}", names, tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        apart, swapped = self.readings
        papers = self.pictures[0]
        return (
            Claim(
                "5 % between communities, 0.1 % inside them",
                "Gilbert and McMillan, Figure 3, caption",
                f"heat still in its community: {swapped.home:.6f} so, {apart.home:.3f} with the two swapped",
                Agreement.WRONG if abs(swapped.home - 0.5) < 1e-3 else Agreement.AGREES,
            ),
            Claim(
                "on average R finds the community of the source",
                "Gilbert and McMillan, Figure 3",
                f"{100 * papers.left:.0f} % of the recovered weight is in it; {100 * papers.right:.0f} % of single "
                "frames have more there",
                _on_average(papers),
            ),
            Claim(
                "the community is found if tau is not too large or small and epsilon not too small",
                "Gilbert and McMillan, section 5",
                self._found_where(),
                self._conditions(),
            ),
        )

    def _found_where(self) -> str:
        top = self.epsilons[-1]
        shares = ", ".join(f"{100 * self.of(Way.PAPERS, tau, top).right:.0f}" for tau in self.taus)
        return (
            f"R at epsilon {top:g}: {shares} % right for tau = {', '.join(f'{tau:g}' for tau in self.taus)}; "
            f"at epsilon {self.epsilons[0]:g} at most {100 * self._best(self.epsilons[0]).right:.0f} %"
        )

    def _best(self, epsilon: float) -> Score:
        return max((self.of(Way.PAPERS, tau, epsilon) for tau in self.taus), key=lambda one: one.right)

    def _conditions(self) -> Agreement:
        """Whether each of the three conditions is needed; a large tau does no harm where the noise follows it."""
        best = self._best(self.epsilons[-1])
        if best.right < FOUND or self._best(self.epsilons[0]).right >= FOUND:
            return Agreement.WRONG
        early, late = (self.of(Way.PAPERS, self.taus[end], self.epsilons[-1]) for end in (0, -1))
        if _clearly_below(early, best):
            return Agreement.AGREES if _clearly_below(late, best) else Agreement.LOOSER
        return Agreement.UNDECIDED

    def measures(self) -> tuple[Measure, ...]:
        found = [
            Measure(f"block model, right community, {way}", self.of(way).right, self.of(way).right_error)
            for way in RIVALS
        ]
        for name, _ in self.guesses:
            for way in RIVALS:
                one = self.of(way, NAMED_TAU, EPSILON, name)
                found.append(Measure(f"{name}, right community, {way}", one.right, one.right_error))
                found.append(Measure(f"{name}, steps off, {way}", one.hops, one.hops_error))
        return (*found, *(Measure(f"heat at home, {one.inside:g} inside", one.home) for one in self.readings))

    def words(self) -> tuple[str, ...]:
        papers, ours = self.of(Way.PAPERS), self.of(Way.OURS)
        apart, swapped = self.readings
        club = [self.of(way, NAMED_TAU, EPSILON, self.guesses[0][0]) for way in RIVALS]
        top = self.epsilons[-1]
        sure = [self.of(way, NAMED_TAU, top, self.guesses[0][0]) for way in RIVALS]
        return (
            f"Each dot of the two discs is one of {len(self.hops)} people; the rumour starts in the middle of the left "
            "disc, and the farther out, the more steps away. Colour is the share of all recovered weight, from none "
            f"to {DARK:g} times an even share. With the "
            f"papers' noise and R {100 * self.pictures[0].left:.0f} % of it is on the left, and a single frame names "
            f"the right community in {100 * papers.right:.0f} % of the cases. Exact noise and the posterior over who "
            f"it was do so in {100 * ours.right:.0f} % at the same (epsilon, delta); naming the likelier community is "
            f"the best that can be done with that noise. Who it was stays hidden: the very node is named in "
            f"{100 * ours.person:.1f} %.",
            "The caption swaps its two probabilities. Read as printed, "
            f"{swapped.home:.4f} of the heat is left in its own community, which is nothing to go by; the other way "
            f"round it is {apart.home:.2f}. {self._late()}",
            "Small networks are harder: one step is a large part of them, and a whole source is hidden within a step. "
            f"In the karate club the right side is named in {100 * club[0].right:.0f} % (papers) and "
            f"{100 * club[1].right:.0f} % (ours) of frames at epsilon {EPSILON:g}, and {100 * sure[0].right:.0f} % and "
            f"{100 * sure[1].right:.0f} % at {top:g}, where the node that ours names is {sure[1].hops:.1f} steps off "
            "on average.",
        )

    def _late(self) -> str:
        """What a large tau does, in words."""
        late, best = self.of(Way.PAPERS, self.taus[-1], self.epsilons[-1]), self._best(self.epsilons[-1])
        if _clearly_below(late, best):
            return "As the papers say, a large tau does harm."
        return (
            f"A large tau does no harm, other than the papers say: at tau = {self.taus[-1]:g} and epsilon "
            f"{self.epsilons[-1]:g} R is right in {100 * late.right:.0f} %. The signal shrinks, and the noise that "
            "hides a neighbour shrinks with it."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 3)
        for axes, picture in zip(panels[0, :2], self.pictures, strict=True):
            _draw_discs(axes, picture, self.hops)
        self._draw_lines(panels[0, 2], [(tau, EPSILON) for tau in self.taus])
        self._draw_lines(panels[1, 0], [(TAU, epsilon) for epsilon in self.epsilons])
        self._draw_named(panels[1, 1], right=True)
        self._draw_named(panels[1, 2], right=False)
        legend_below(figure, panels[1, 1])

    def _draw_lines(self, axes: Any, settings: list[tuple[float, float]]) -> None:
        along_tau = len({tau for tau, _ in settings}) > 1
        x = [tau if along_tau else epsilon for tau, epsilon in settings]
        for number, way in enumerate(RIVALS):
            scores = [self.of(way, tau, epsilon) for tau, epsilon in settings]
            up, bars = [100 * one.right for one in scores], [200 * one.right_error for one in scores]
            style = {"marker": MARKERS[number], "color": SERIES[1 - number], "elinewidth": 1, "capsize": 2}
            axes.errorbar(x, up, yerr=bars, label=str(way), **style)
        axes.axhline(50, color=INK, linestyle=":", linewidth=1)
        log_scale(axes, x)
        axes.set_ylim(40, 115)
        axes.set_yticks(range(40, 101, 10))
        axes.set_title(f"block model, {f'epsilon = {EPSILON:g}' if along_tau else f'tau = {TAU:g}'}")
        axes.set_xlabel(r"$\tau$" if along_tau else "epsilon")
        axes.set_ylabel("percent with the right community")
        if not along_tau:
            axes.legend(fontsize=8, loc="upper left")
        axes.grid()

    def _draw_named(self, axes: Any, *, right: bool) -> None:
        for number, (name, _) in enumerate(self.guesses):
            for way in RIVALS:
                scores = [self.of(way, NAMED_TAU, epsilon, name) for epsilon in self.epsilons]
                up = [100 * one.right if right else one.hops for one in scores]
                line = "-" if way is Way.OURS else "--"
                label = name if way is Way.OURS else None
                axes.plot(self.epsilons, up, line, marker=MARKERS[number], color=SERIES[number], label=label, ms=4)
        log_scale(axes, self.epsilons)
        axes.set_title(f"drawn by hand, tau = {NAMED_TAU:g} (dashed: papers)")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("percent with the right community" if right else "steps from the source to who is named")
        axes.set_ylim(bottom=0)
        axes.grid()


def _percent(one: Score) -> str:
    return f"{100 * one.right:.0f} ± {100 * one.right_error:.0f}"


def _clearly_below(one: Score, other: Score) -> bool:
    return one.right + 2 * math.hypot(one.right_error, other.right_error) < other.right


def _on_average(picture: Picture) -> Agreement:
    """More weight on the side of the source, and single frames that point there more often than a coin."""
    if picture.left <= 0.5:
        return Agreement.WRONG
    sure = picture.right - 2 * share_error(picture.right, picture.frames) > 0.5
    return Agreement.AGREES if sure else Agreement.UNDECIDED


def _draw_discs(axes: Any, picture: Picture, hops: tuple[int, ...]) -> None:
    """Two discs of dots, in each the nodes nearest to the source in the middle."""
    half = len(hops) // 2
    for side, nodes in enumerate((range(half), range(half, len(hops)))):
        order = sorted(nodes, key=lambda node: hops[node])
        k = np.arange(len(order))
        radius, angle = np.sqrt((k + 0.5) / len(order)), k * math.pi * (3 - math.sqrt(5))
        x, y = radius * np.cos(angle) + 2.3 * side, radius * np.sin(angle)
        colour = [picture.shares[node] for node in order]
        look = {"cmap": "YlOrRd", "vmin": 0.0, "vmax": DARK / len(hops), "edgecolors": FAINT, "linewidths": 0.3}
        axes.scatter(x, y, c=colour, s=22, **look)
        share = picture.left if side == 0 else 1 - picture.left
        axes.text(2.3 * side, -1.3, f"{100 * share:.0f} % of the weight", ha="center", fontsize=9, color=INK)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(str(picture.way))


def _work(*, quick: bool, seed: int, progress: Progress) -> Communities:
    taus, epsilons = (QUICK_TAUS, QUICK_EPSILONS) if quick else (TAUS, EPSILONS)
    frames, each = (QUICK_FRAMES, QUICK_EACH) if quick else (FRAMES, EACH)
    block, drawn = block_model(NODES, HIGH, LOW, GRAPH), named_networks()
    total = 100 * (2 + len(taus) + len(drawn))
    cells: list[Cell] = []
    for number, tau in enumerate(taus):
        cells += cells_of(block, tau, epsilons, frames, (seed, 0, number))
        progress(100 * (number + 1), total)
    share = part(progress, 100 * len(taus), 200, total)
    pictures = []
    for number, way in enumerate(RIVALS):
        pictures.append(picture_of(block, way, SHOWN * frames, (seed, 1, number)))
        share(number + 1, len(RIVALS))
    for number, network in enumerate(drawn):
        cells += cells_of(network, NAMED_TAU, epsilons, each, (seed, 2, number))
        progress(100 * (2 + len(taus) + number + 1), total)
    hops = tuple(int(steps) for steps in block.physics(TAU).space.distances(SOURCE))
    readings = (reading_of(HIGH, LOW), reading_of(LOW, HIGH))
    guesses = tuple((network.name, network.guess) for network in drawn)
    return Communities(tuple(pictures), hops, tuple(cells), guesses, readings)


EXPERIMENT = Experiment(
    "communities",
    "Which community a rumour began in, and how near the one who began it can be found",
    Communities,
    _work,
    shows=("Gilbert and McMillan, Figure 3", "McMillan, Figure 8.3"),
    minutes=2.0,
)
