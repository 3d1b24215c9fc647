"""Which community a source is in, and which node it is: a block model and four social networks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from papers import networks
from papers.drawing import FAINT, INK, MARKERS, SERIES, curve, finish, legend_below
from papers.experiment import Experiment, Run, stream
from papers.networks import ALPHA, EPSILON, RIVALS, TAU, Scene, Way, left
from papers.result import Agreement, Claim, Finding
from papers.rows import Mean, Row, pick

BLOCK = "block model"
NODES, HIGH, LOW = 500, 0.05, 0.001
GRAPH = 1  # the seed of the block model, which is part of the setting
NAMED_TAU = 0.5
DARK = 5.0  # times an even share of the weight: the darkest colour
TAUS, QUICK_TAUS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (2.0, 8.0)
EPSILONS, QUICK_EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0), (4.0, 16.0)
FOUND = 0.9  # how often a community has to be right to count as found
NETWORKS = (INK, SERIES[2], SERIES[3], SERIES[4])  # colours; blue and orange are ours and the papers'


# frames of the papers' way and of ours: at the setting of the papers' figure, of social networks there, and elsewhere
FULL = {"figure": (3000, 960), "named": (2000, 400), "other": (600, 240)}
QUICK = {"figure": (500, 160), "named": (500, 80), "other": (20, 10)}
PROBE = {"figure": (8, 8), "named": (8, 8), "other": (4, 4)}


class Communities(Finding):
    """Communities found in a block model and in social networks."""

    size = (12.0, 7.8)

    def of(self, way: Way, tau: float = TAU, epsilon: float = EPSILON, network: str = BLOCK) -> Row:
        score: Row = pick(self.cells, network=network, way=way, tau=tau, epsilon=epsilon).score
        return score

    def rules(self, way: Way, tau: float = TAU, epsilon: float = EPSILON, network: str = BLOCK) -> Row:
        """How often the best rules are right with the noise of one way."""
        rules: Row = pick(self.bests, network=network, calibration=way.calibration, tau=tau, epsilon=epsilon).rules
        return rules

    @property
    def taus(self) -> tuple[float, ...]:
        return tuple(sorted({one.tau for one in self.cells if one.network == BLOCK}))

    @property
    def epsilons(self) -> tuple[float, ...]:
        return tuple(sorted({one.epsilon for one in self.cells}))

    def claims(self) -> tuple[Claim, ...]:
        apart, swapped = self.readings
        papers, others = self.pictures[0], self.spreads[0]
        return (
            Claim(
                "5 % between communities, 0.1 % inside them",
                "Gilbert and McMillan, Figure 3, caption",
                f"heat still in its community: {swapped.home:.6f} as printed, {apart.home:.3f} with the two swapped",
                Agreement.WRONG if abs(swapped.home - 0.5) < 1e-3 else Agreement.AGREES,
            ),
            Claim(
                "on average R finds the community of the source",
                "Gilbert and McMillan, Figure 3",
                f"{100 * left(papers):.0f} % of the recovered weight is in it, on {others.graphs} other graphs "
                f"{100 * others.left:.1f} ± {100 * others.left_deviation:.1f} %; {100 * papers.right:.0f} % of the "
                "single frames of this source have more there",
                _judge_average(papers),
            ),
            Claim(
                "the community is found if tau is not too large or small and epsilon not too small",
                "Gilbert and McMillan, section 5",
                self._conditions_text(),
                self._judge_conditions(),
            ),
        )

    def _conditions_text(self) -> str:
        top, low, coarse = self.epsilons[-1], self.epsilons[0], self.coarse
        shares = ", ".join(f"{100 * self.of(Way.PAPERS, tau, top).right.value:.0f}" for tau in self.taus)
        return (
            f"R at epsilon {top:g}: {shares} % right for tau = {', '.join(f'{tau:g}' for tau in self.taus)}; at "
            f"epsilon {low:g} at most {100 * self._best_time(low).value:.0f} %. If rounding steps did not follow the "
            f"noise, the best rule would have {100 * coarse.coarse.value:.0f} % instead of "
            f"{100 * coarse.fine.value:.0f} % at tau = {coarse.tau:g}"
        )

    def _best_time(self, epsilon: float) -> Mean:
        shares: list[Mean] = [self.of(Way.PAPERS, tau, epsilon).right for tau in self.taus]
        return max(shares, key=lambda one: one.value)

    def _judge_conditions(self) -> Agreement:
        """Whether each of the three conditions is needed; a large tau does no harm if the noise follows it."""
        best = self._best_time(self.epsilons[-1])
        if best.value < FOUND or self._best_time(self.epsilons[0]).value >= FOUND:
            return Agreement.WRONG
        early, late = (self.of(Way.PAPERS, self.taus[end], self.epsilons[-1]).right for end in (0, -1))
        if _clearly_below(early, best):
            return Agreement.AGREES if _clearly_below(late, best) else Agreement.LOOSER
        return Agreement.UNDECIDED

    def text(self) -> str:
        papers, ours, picture = self.of(Way.PAPERS), self.of(Way.OURS), self.pictures[0]
        other, ours_there = self.spreads
        return (
            f"Each dot of the two discs is one of {len(self.hops)} people. The rumour starts in the middle of the left "
            "disc; the farther out, the more steps away. The colour is the share of all recovered weight, from none to "
            f"{DARK:g} times an even share. A move by {ALPHA:g} step is hidden (our choice: the caption gives no "
            f"alpha). On average the papers' method has {100 * left(picture):.0f} % of the weight on the left, "
            f"and {100 * other.left:.1f} ± {100 * other.left_deviation:.1f} % on {other.graphs} other random graphs "
            f"(mean and standard deviation); single frames of ours are right there in {100 * ours_there.right:.1f} ± "
            f"{100 * ours_there.right_deviation:.1f} %. For sources anywhere a frame names the right community in "
            f"{100 * papers.right:.0f} % of cases; the posterior with exact noise, which knows that there is one "
            f"source of strength 1, does so in {100 * ours.right:.0f} %. The node itself mostly stays hidden: the most "
            f"likely node is the right one in {100 * ours.person:.1f} % of frames, and no rule is right in more than "
            f"{100 * self.rules(Way.OURS).person.value:.1f} %."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 3)
        for axes, picture, shades in zip(panels[0, :2], self.pictures, ("Oranges", "Blues"), strict=True):
            _draw_discs(axes, picture, self.hops, shades)
        self._draw_block(panels[0, 2], "tau", self.taus)
        self._draw_block(panels[1, 0], "epsilon", self.epsilons)
        self._draw_named(panels[1, 1], "percent with the right community", lambda one: 100 * one.right.value)
        self._draw_named(panels[1, 2], "steps from the source to the peak of the map", lambda one: one.hops.value)
        legend_below(figure, [panels[1, 0], panels[1, 1]], ncols=4, fontsize=9)

    def _draw_block(self, axes: Any, along: str, x: tuple[float, ...]) -> None:
        """Draw how often each way is right, and dashed what is best possible with its noise."""
        settings = [(one, EPSILON) if along == "tau" else (TAU, one) for one in x]
        for way, look, noise in ((Way.PAPERS, 1, "papers' noise"), (Way.OURS, 0, "exact noise")):
            curve(axes, x, [self.of(way, *one).right for one in settings], look, scale=100, label=str(way))
            best = [100 * self.rules(way, *one).right.value for one in settings]
            axes.plot(x, best, "--", color=SERIES[look], linewidth=1.2, label=f"best possible, {noise}")
        axes.axhline(50, color=INK, linestyle=":", linewidth=1)
        title = f"block model, {f'epsilon = {EPSILON:g}' if along == 'tau' else f'tau = {TAU:g}'}"
        finish(axes, title, along, "percent with the right community", ticks=x, ylim=(40, 103))

    def _draw_named(self, axes: Any, label: str, value: Callable[[Row], float]) -> None:
        for number, (name, _) in enumerate(self.guesses):
            for way in RIVALS:
                up = [value(self.of(way, NAMED_TAU, epsilon, name)) for epsilon in self.epsilons]
                own = {"linestyle": "-", "label": name} if way is Way.OURS else {"ls": "--", "mfc": "white"}
                curve(axes, self.epsilons, up, color=NETWORKS[number], marker=MARKERS[number + 1], **own)
        finish(axes, f"social networks, tau = {NAMED_TAU:g} (open: papers)", "epsilon", label, ticks=self.epsilons)
        axes.set_ylim(bottom=0)


def _draw_discs(axes: Any, picture: Row, hops: tuple[int, ...], shades: str) -> None:
    """Draw two discs of dots, in each the nodes nearest to the source in the middle."""
    half = len(hops) // 2
    for side, nodes in enumerate((range(half), range(half, len(hops)))):
        order = sorted(nodes, key=lambda node: hops[node])
        k = np.arange(len(order))
        radius, angle = np.sqrt((k + 0.5) / len(order)), k * math.pi * (3 - math.sqrt(5))
        x, y = radius * np.cos(angle) + 2.3 * side, radius * np.sin(angle)
        look = {"cmap": shades, "vmin": 0.0, "vmax": DARK / len(hops), "edgecolors": FAINT, "linewidths": 0.3}
        axes.scatter(x, y, c=[picture.shares[node] for node in order], s=22, **look)
        share = left(picture) if side == 0 else 1 - left(picture)
        axes.text(2.3 * side, -1.3, f"{100 * share:.0f} % of the weight", ha="center", fontsize=9, color=INK)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(str(picture.way))


def _judge_average(picture: Row) -> Agreement:
    """Require more weight on the side of the source, and single frames that point there more often than a coin."""
    if left(picture) <= 0.5:
        return Agreement.WRONG
    sure = picture.right - 2 * Mean.share(picture.right, picture.frames).error > 0.5
    return Agreement.AGREES if sure else Agreement.UNDECIDED


def _clearly_below(low: Mean, high: Mean) -> bool:
    return low.value + 2 * math.hypot(low.error, high.error) < high.value


def _work(run: Run) -> Communities:
    sizes = run.choose(FULL, QUICK, PROBE)
    taus, epsilons = run.choose((TAUS, EPSILONS), (QUICK_TAUS, QUICK_EPSILONS), ((2.0,), (4.0,)))
    pairs, named = ((HIGH, LOW), (LOW, HIGH)), networks.named_networks()
    # the smaller graph of a probe has five times as many edges, so that it is connected
    nodes, dense = run.choose((NODES, 1), (NODES, 1), (100, 5))
    blocks = [networks.block_model(nodes, dense * inside, dense * between, GRAPH) for inside, between in pairs]
    scenes = [Scene(blocks[0], 0, tau, epsilon) for tau in taus for epsilon in epsilons]
    for number, network in enumerate(named, start=1):
        scenes += [Scene(network, number, NAMED_TAU, epsilon) for epsilon in epsilons]
    cells: list[Row] = []
    bests: list[Row] = []
    ratios: list[Row] = []
    for scene in scenes:
        compared = scene.epsilon == EPSILON and scene.tau == (TAU if scene.number == 0 else NAMED_TAU)
        frames = sizes[("figure" if scene.number == 0 else "named") if compared else "other"]
        tried = [scene.tried(way, count, run.seed) for way, count in zip(RIVALS, frames, strict=True)]
        cells += [scene.cell(way, maps) for way, maps in zip(RIVALS, tried, strict=True)]
        bests += [scene.best(way, run.seed) for way in RIVALS]
        if compared:
            ratios.append(scene.ratio(*tried))
    figure = Scene(blocks[0], 0, TAU, EPSILON)
    pursuit, posterior = run.choose(FULL["figure"], QUICK["other"], PROBE["other"])
    for way in (way for way in Way if way not in RIVALS):
        cells.append(figure.cell(way, figure.tried(way, posterior if way.is_posterior else pursuit, run.seed)))
    shown, seed = run.choose(960, 100, 4), run.seed
    return Communities(
        pictures=tuple(
            networks.picture_of(blocks[0], way, shown, (seed, 100, number)) for number, way in enumerate(RIVALS)
        ),
        hops=tuple(int(steps) for steps in blocks[0].physics(TAU).space.distances(networks.SOURCE)),
        cells=tuple(cells),
        bests=tuple(bests),
        ratios=tuple(ratios),
        guesses=tuple((network.name, network.guess) for network in named),
        readings=tuple(
            networks.reading_of(one, *pair, stream(seed, 101)) for one, pair in zip(blocks, pairs, strict=True)
        ),
        coarse=networks.coarse_of(blocks[0], taus[-1], (seed, 102)),
        spreads=_spreads(run, nodes, dense),
    )


def _spreads(run: Run, nodes: int, dense: int) -> tuple[Row, ...]:
    """The two pictures on other graphs."""
    graphs, frames = run.choose((24, (300, 100)), (3, (60, 20)), (2, (4, 4)))
    others = [networks.block_model(nodes, dense * HIGH, dense * LOW, GRAPH + 1 + k) for k in range(graphs)]
    each = enumerate(zip(RIVALS, frames, strict=True))
    return tuple(networks.spread_of(others, way, count, (run.seed, 103, number)) for number, (way, count) in each)


EXPERIMENT = Experiment(
    "communities",
    "Which community a rumour started in, and how closely its source can be found",
    Communities,
    _work,
    shows="Gilbert and McMillan, Figure 3; McMillan, Figure 8.3",
    minutes=2.0,
)
