"""Which community a source is in, and who it is: a block model and networks that people have drawn by hand."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from papers.experiment import Experiment, Progress, stream
from papers.networks import ALPHA, RIVALS, Score, Way, block_model, named_networks, share_error
from papers.result import Agreement, Claim, Finding, Measure, Table
from papers.rumour_panels import draw_discs, draw_network, draw_shares, legend_of_both
from papers.rumours import (
    EPSILON,
    SOURCE,
    TAU,
    Best,
    Cell,
    Coarse,
    Frames,
    Picture,
    Ratio,
    Reading,
    Scene,
    coarse_of,
    picture_of,
    reading_of,
)
from papers.style import INK
from papers.trials import Mean

NODES, HIGH, LOW = 500, 0.05, 0.001
GRAPH = 1  # which block model: a part of the setting, like n
NAMED_TAU = 0.5
DARK = 5.0  # times an even share of the weight: the darkest colour
TAUS, QUICK_TAUS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (2.0, 8.0)
EPSILONS, QUICK_EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0), (4.0, 16.0)
FIGURE, QUICK_FIGURE = Frames(3000, 960), Frames(1500, 480)  # at the setting of the papers' figure
FRAMES, QUICK_FRAMES = Frames(600, 240), Frames(100, 40)  # elsewhere
DRAWN, QUICK_DRAWN = Frames(2000, 400), Frames(1500, 240)  # of networks drawn by hand, at the figure's epsilon
SHOWN, QUICK_SHOWN = 960, 100  # frames that are averaged for the picture
FOUND = 0.9  # how often a community has to be right to count as found
NEAR = 0.02  # of the best rule, and a way counts as the best one
HIDDEN = 0.05  # named more often, a node is not hidden
HARM = 0.05  # less often right, and coarse steps do harm


@dataclass(frozen=True)
class Communities(Finding):
    """Communities found in a block model and in networks drawn by hand."""

    size: ClassVar[tuple[float, float]] = (12.0, 7.8)
    pictures: tuple[Picture, ...]
    hops: tuple[int, ...]
    cells: tuple[Cell, ...]
    bests: tuple[Best, ...]
    ratios: tuple[Ratio, ...]
    guesses: tuple[tuple[str, float], ...]
    readings: tuple[Reading, ...]
    coarse: Coarse

    def of(self, way: Way, tau: float = TAU, epsilon: float = EPSILON, network: str = "block model") -> Score:
        """How one way did."""
        wanted = (network, way, tau, epsilon)
        return next(one.score for one in self.cells if (one.network, one.way, one.tau, one.epsilon) == wanted)

    def best(self, way: Way, tau: float = TAU, epsilon: float = EPSILON, network: str = "block model") -> Mean:
        """How often the best rule is right with the noise of one way."""
        wanted = (network, way.calibration, tau, epsilon)
        return next(one.right for one in self.bests if (one.network, one.calibration, one.tau, one.epsilon) == wanted)

    @property
    def short(self) -> Mean:
        """How much less often than the best rule ours is right, on average over all settings."""
        ours = [one for one in self.cells if one.way is Way.OURS]
        best = [self.best(one.way, one.tau, one.epsilon, one.network) for one in ours]
        gaps = [limit.value - one.score.right for limit, one in zip(best, ours, strict=True)]
        errors = [math.hypot(limit.error, one.score.right_error) for limit, one in zip(best, ours, strict=True)]
        return Mean(float(np.mean(gaps)), math.hypot(*errors) / len(ours))

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
            (
                str(way),
                str(self.of(way)),
                f"{100 * self.best(way).value:.0f}",
                f"{100 * self.of(way).person:.1f}",
                f"{self.of(way).hops:.2f}",
            )
            for way in Way
        ]
        title = f"Block model, tau = {TAU:g}, epsilon = {EPSILON:g}: what the noise does, and what the recovery"
        names = ("percent right", "best possible with this noise", "percent the very node", "steps off")
        return Table(title, ("", *names), tuple(rows))

    def _grid(self, way: Way) -> Table:
        cells = {
            (tau, epsilon): f"{self.of(way, tau, epsilon)} ({100 * self.best(way, tau, epsilon).value:.0f})"
            for tau in self.taus
            for epsilon in self.epsilons
        }
        rows = [(f"tau = {tau:g}", *(cells[tau, epsilon] for epsilon in self.epsilons)) for tau in self.taus]
        frames = [self.of(way, tau, epsilon).frames for tau, epsilon in cells]
        title = (
            f"Block model, percent with the right community (in brackets: the best possible with this noise), {way}, "
            f"{min(frames):,} to {max(frames):,} frames"
        )
        return Table(title, ("", *(f"epsilon = {epsilon:g}" for epsilon in self.epsilons)), tuple(rows))

    def _named(self) -> Table:
        rows = []
        for name, guess in self.guesses:
            for epsilon in self.epsilons:
                both = [self.of(way, NAMED_TAU, epsilon, name) for way in RIVALS]
                best = [self.best(way, NAMED_TAU, epsilon, name).value for way in RIVALS]
                rows.append(
                    (
                        f"{name}, epsilon = {epsilon:g}",
                        *(f"{one} ({100 * limit:.0f})" for one, limit in zip(both, best, strict=True)),
                        f"{100 * guess:.0f}",
                        *(f"{100 * one.person:.0f}" for one in both),
                        *(f"{one.hops:.2f}" for one in both),
                    )
                )
        names = ("right: papers (best)", "ours (best)", "guess", "who: papers", "ours", "steps off: papers", "ours")
        title = f"Networks drawn by hand, tau = {NAMED_TAU:g}: percent right (community; the very node), steps off"
        return Table(title, ("", *names), tuple(rows))

    def _captions(self) -> Table:
        rows = [
            (
                f"{100 * one.inside:g} % inside, {100 * one.between:g} % between",
                f"{one.home:.6f}",
                f"{100 * one.right.value:.1f} ± {100 * one.right.error:.1f}",
            )
            for one in self.readings
        ]
        names = ("", "heat still in its community", "percent right, best rule")
        return Table(f"The caption, both ways, tau = {TAU:g}, epsilon = {EPSILON:g}", names, tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        apart, swapped = self.readings
        papers = self.pictures[0]
        return (
            Claim(
                "5 % between communities, 0.1 % inside them",
                "Gilbert and McMillan, Figure 3, caption",
                f"heat still in its community: {swapped.home:.6f} so, {apart.home:.3f} with the two swapped",
                Agreement.WRONG if swapped.level else Agreement.AGREES,
            ),
            Claim(
                "on average R finds the community of the source",
                "Gilbert and McMillan, Figure 3",
                f"{100 * papers.left:.0f} % of the recovered weight is in it; {100 * papers.right:.0f} % of the single "
                "frames of this source have more there",
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
        one = self.coarse
        return (
            f"R at epsilon {top:g}: {shares} % right for tau = {', '.join(f'{tau:g}' for tau in self.taus)}; "
            f"at epsilon {self.epsilons[0]:g} at most {100 * self._best(self.epsilons[0]).right:.0f} %; were steps not "
            f"to follow the noise, the best rule would have {100 * one.coarse.value:.0f} % and not "
            f"{100 * one.fine.value:.0f} % at tau = {one.tau:g}"
        )

    def _best(self, epsilon: float) -> Score:
        return max((self.of(Way.PAPERS, tau, epsilon) for tau in self.taus), key=lambda one: one.right)

    def _conditions(self) -> Agreement:
        """Whether each of the three conditions is needed; a large tau does no harm where the noise follows it."""
        best = self._best(self.epsilons[-1])
        if best.right < FOUND or self._best(self.epsilons[0]).right >= FOUND:
            return Agreement.WRONG
        early, late = (self.of(Way.PAPERS, self.taus[end], self.epsilons[-1]) for end in (0, -1))
        if early.clearly_below(best):
            return Agreement.AGREES if late.clearly_below(best) else Agreement.LOOSER
        return Agreement.UNDECIDED

    def measures(self) -> tuple[Measure, ...]:
        found = []
        for way in RIVALS:
            one, best = self.of(way), self.best(way)
            found.append(Measure(f"block model, right community, {way}", one.right, one.right_error, share=True))
            found.append(
                Measure(f"block model, best rule, {way.calibration} noise", best.value, best.error, share=True)
            )
        for name, _ in self.guesses:
            papers, ours = (self.of(way, NAMED_TAU, EPSILON, name) for way in RIVALS)
            best = self.best(Way.OURS, NAMED_TAU, EPSILON, name)
            found.append(Measure(f"{name}, right community, papers", papers.right, papers.right_error, share=True))
            found.append(Measure(f"{name}, best rule, exact noise", best.value, best.error, share=True))
            found.append(Measure(f"{name}, steps off, papers", papers.hops, papers.hops_error))
            found.append(Measure(f"{name}, steps off, ours", ours.hops, ours.hops_error))
        found += [
            Measure(f"{one.network}, steps off, papers/ours", one.steps.value, one.steps.error) for one in self.ratios
        ]
        return (*found, *(Measure(f"heat at home, {one.inside:g} inside", one.home) for one in self.readings))

    def words(self) -> tuple[str, ...]:
        papers, ours, picture = self.of(Way.PAPERS), self.of(Way.OURS), self.pictures[0]
        return (
            f"Each dot of the two discs is one of {len(self.hops)} people; the rumour starts in the middle of the left "
            "disc, and the farther out, the more steps away. Colour is the share of all recovered weight, from none "
            f"to {DARK:g} times an even share. A move by {ALPHA:g} step is hidden, which is our choice: the "
            f"caption gives no alpha. With the papers' noise and R {100 * picture.left:.0f} % of the weight is on the "
            f"left on average, and most of it in {100 * picture.right:.0f} % of single frames of this source; for "
            f"sources anywhere a frame names the right community in {papers} % of the cases. Exact noise and the "
            f"posterior over who it was do so in {ours} % at the same (epsilon, delta). The posterior is told that "
            "there is one source of strength 1, and R cannot be told.",
            f"{self._at_best()} {self._who()}",
            f"{self._caption()} {self._late()}",
            self._small(),
        )

    def _at_best(self) -> str:
        """How near the best rule ours is, in words."""
        limits = [100 * self.best(way).value for way in (Way.OURS, Way.PAPERS)]
        short = f"{100 * self.short.value:+.1f} ± {100 * self.short.error:.1f} points"
        told = (
            f"Ours is this rule, but for the draws that it is made of: the best is ahead by {short}, on average"
            if self.short.value < NEAR
            else f"Ours is not this rule: the best is ahead by {short}, on average"
        )
        return (
            "Dashed lines are the best that any rule can do: weigh all nodes by their likelihood, and name the "
            f"likelier community. It is right in {limits[0]:.0f} % with exact noise and in {limits[1]:.0f} % with the "
            f"papers'. {told} over all settings."
        )

    def _who(self) -> str:
        """Whether the node itself is found, in words."""
        person = self.of(Way.OURS).person
        begin = "Who it was stays hidden: the" if person < HIDDEN else "The"
        return f"{begin} very node is named in {100 * person:.1f} % of frames."

    def _caption(self) -> str:
        """What the two readings of the caption give, in words."""
        apart, swapped = self.readings
        if not swapped.level:
            return f"Read as printed, the caption leaves {swapped.home:.4f} of the heat in its own community."
        return (
            f"The caption swaps its two probabilities. Read as printed, {swapped.home:.4f} of the heat is left in its "
            f"own community, which is nothing to go by; the other way round it is {apart.home:.2f}."
        )

    def _late(self) -> str:
        """What a large tau does, in words."""
        late, best = self.of(Way.PAPERS, self.taus[-1], self.epsilons[-1]), self._best(self.epsilons[-1])
        if late.clearly_below(best):
            return "As the papers say, a large tau does harm."
        one = self.coarse
        end = ": then the papers are right" if one.fine.value - one.coarse.value > HARM else ""
        return (
            "A large tau does no harm, other than the papers say, as long as steps are as fine as the noise asks for: "
            f"at tau = {self.taus[-1]:g} and epsilon {self.epsilons[-1]:g} R is right in {late} %. The "
            f"signal shrinks, and the noise that hides a neighbour shrinks with it: Delta is {one.before:.2g} at tau = "
            f"{TAU:g} and {one.sensitivity:.2g} at {one.tau:g}. With the steps of tau = {TAU:g} it would need "
            f"{one.noise:.1f} times the noise there, and the best rule would be right in "
            f"{100 * one.coarse.value:.0f} % and not {100 * one.fine.value:.0f} % at epsilon {EPSILON:g}{end}."
        )

    def _small(self) -> str:
        """How it goes in the club, in words."""
        name, top = self.guesses[0][0], self.epsilons[-1]
        club = [self.of(way, NAMED_TAU, EPSILON, name) for way in RIVALS]
        sure = [self.of(way, NAMED_TAU, top, name) for way in RIVALS]
        harder = club[1].right < self.of(Way.OURS).right
        return (
            f"{'Small networks are harder: one step is a large part of them. ' if harder else ''}"
            "In those drawn by hand all ties count the same, also where they have been given weights, and a source is "
            f"as likely at each node. In the {name} the right side is named in {club[0]} % (papers) and {club[1]} % "
            f"(ours) of frames at epsilon {EPSILON:g}, and in {sure[0]} % and {sure[1]} % at {top:g}, where the node "
            f"that ours names is {sure[1].hops:.1f} ± {sure[1].hops_error:.1f} steps off on average."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 3)
        for axes, picture, shades in zip(panels[0, :2], self.pictures, ("Oranges", "Blues"), strict=True):
            draw_discs(axes, picture, self.hops, shades, darkest=DARK)
        self._draw_block(panels[0, 2], "tau", self.taus)
        self._draw_block(panels[1, 0], "epsilon", self.epsilons)
        self._draw_named(panels[1, 1], "percent with the right community", lambda one: 100 * one.right)
        self._draw_named(panels[1, 2], "steps from the source to who is named", lambda one: one.hops)
        legend_of_both(figure, panels[1, 0], panels[1, 1])

    def _draw_block(self, axes: Any, along: str, x: tuple[float, ...]) -> None:
        settings = [(one, EPSILON) if along == "tau" else (TAU, one) for one in x]
        for way in RIVALS:
            scores = [self.of(way, *setting) for setting in settings]
            draw_shares(axes, x, way, scores, [self.best(way, *setting).value for setting in settings])
        axes.axhline(50, color=INK, linestyle=":", linewidth=1)
        axes.set_ylim(40, 103)
        axes.set_title(f"block model, {f'epsilon = {EPSILON:g}' if along == 'tau' else f'tau = {TAU:g}'}")
        axes.set_xlabel(along)
        axes.set_ylabel("percent with the right community")

    def _draw_named(self, axes: Any, what: str, value: Callable[[Score], float]) -> None:
        for number, (name, _) in enumerate(self.guesses):
            for way in RIVALS:
                up = [value(self.of(way, NAMED_TAU, epsilon, name)) for epsilon in self.epsilons]
                draw_network(axes, self.epsilons, up, way, (number, name))
        axes.set_title(f"drawn by hand, tau = {NAMED_TAU:g} (open: papers)")
        axes.set_xlabel("epsilon")
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)


def _on_average(picture: Picture) -> Agreement:
    """More weight on the side of the source, and single frames that point there more often than a coin."""
    if picture.left <= 0.5:
        return Agreement.WRONG
    sure = picture.right - 2 * share_error(picture.right, picture.frames) > 0.5
    return Agreement.AGREES if sure else Agreement.UNDECIDED


def _work(*, quick: bool, seed: int, progress: Progress) -> Communities:
    taus, epsilons = (QUICK_TAUS, QUICK_EPSILONS) if quick else (TAUS, EPSILONS)
    pairs, drawn = ((HIGH, LOW), (LOW, HIGH)), named_networks()
    block, swapped = (block_model(NODES, *pair, GRAPH) for pair in pairs)
    scenes = [Scene(block, 0, tau, epsilon) for tau in taus for epsilon in epsilons]
    for number, network in enumerate(drawn, start=1):
        scenes += [Scene(network, number, NAMED_TAU, epsilon) for epsilon in epsilons]
    cells: list[Cell] = []
    bests: list[Best] = []
    ratios: list[Ratio] = []
    for number, scene in enumerate(scenes):
        frames = _frames(scene, quick=quick)
        papers, ours = (scene.tried(way, frames.of(way), seed) for way in RIVALS)
        cells += [scene.cell(way, tried) for way, tried in zip(RIVALS, (papers, ours), strict=True)]
        bests += [scene.best(way, seed) for way in RIVALS]
        if _compared(scene):
            ratios.append(scene.ratio(papers, ours))
        progress(number + 1, len(scenes) + 3)
    figure = Scene(block, 0, TAU, EPSILON)
    halves = QUICK_FRAMES if quick else FIGURE
    cells += [figure.cell(way, figure.tried(way, halves.of(way), seed)) for way in Way if way not in RIVALS]
    progress(len(scenes) + 1, len(scenes) + 3)
    shown = QUICK_SHOWN if quick else SHOWN
    pictures = [picture_of(block, way, shown, (seed, 100, number)) for number, way in enumerate(RIVALS)]
    progress(len(scenes) + 3, len(scenes) + 3)
    return Communities(
        tuple(pictures),
        tuple(int(steps) for steps in block.physics(TAU).space.distances(SOURCE)),
        tuple(cells),
        tuple(bests),
        tuple(ratios),
        tuple((network.name, network.guess) for network in drawn),
        tuple(reading_of(one, *pair, stream(seed, 101)) for one, pair in zip((block, swapped), pairs, strict=True)),
        coarse_of(block, taus[-1], (seed, 102)),
    )


def _compared(scene: Scene) -> bool:
    """Whether it is one of those by which runs are compared."""
    return scene.epsilon == EPSILON and scene.tau == (TAU if scene.number == 0 else NAMED_TAU)


def _frames(scene: Scene, *, quick: bool) -> Frames:
    if not _compared(scene):
        return QUICK_FRAMES if quick else FRAMES
    if scene.number == 0:
        return QUICK_FIGURE if quick else FIGURE
    return QUICK_DRAWN if quick else DRAWN


EXPERIMENT = Experiment(
    "communities",
    "Which community a rumour began in, and how near the one who began it can be found",
    Communities,
    _work,
    shows=("Gilbert and McMillan, Figure 3", "McMillan, Figure 8.3"),
    minutes=2.0,
)
