"""How the hiding and the finding of a rumour's source grow with the network, from a thousand nodes to a million."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse, special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Graph
from cloakwork.privacy import Profile, largest_mu
from papers.drawing import FAINT, INK, MARKERS, SERIES, log_x
from papers.experiment import Experiment, Run, stream
from papers.networks import DELTA, EPSILON, TAU
from papers.result import Finding, Measure
from papers.statistics import Mean

SIDES = (32, 100, 316, 1000)  # of the streets
HALVES = (500, 5_000, 50_000, 500_000)  # people of each town
FRAMES = (384, 192, 64, 16)
QUICK_FRAMES = (192, 96)
TIES = 4  # distances around the ring at which two people of a town know each other
WEAK = 0.05  # weight of the tie to the other town
COMPARED = 100_000  # nodes up to which two runs are compared
STREETS, TOWNS = "streets", "two towns"


@dataclass(frozen=True, eq=False)
class Scene:
    """A network with the squared norm of each column (n,), its slope, and the number of the community of each node.

    Both networks are so regular that norms and slope are known exactly from a small kernel, at any size.
    """

    name: str
    graph: Graph
    squares: FloatArray
    slope: float
    towns: IntArray | None = None


def streets(side: int) -> Scene:
    """A square grid. Its heat is a product of two paths, whose kernel is a small matrix."""
    k = np.arange(side * side).reshape(side, side)
    pairs = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((k[:, :-1], k[:, 1:]), (k[:-1], k[1:]))]
    path = np.diag([1.0, *[2.0] * (side - 2), 1.0]) - np.eye(side, k=1) - np.eye(side, k=-1)
    values, vectors = np.linalg.eigh(path)
    kernel = (vectors * np.exp(-2 * TAU * values)) @ vectors.T
    own = np.diagonal(kernel)
    steep = float((own[1:] + own[:-1] - 2 * np.diagonal(kernel, 1)).max() * own.max())
    graph = Graph.from_edges(np.concatenate(pairs), TAU)
    return Scene(STREETS, graph, np.outer(own, own).ravel(), math.sqrt(steep))


def two_towns(half: int) -> Scene:
    """Two rings of people with friends at the same random distances, and a weak tie of each to one of the other town.

    All nodes are alike, so one column has the norm of all and the slope of every kind of edge.
    """
    steps = _distances(half)
    people, rows, columns, weights = np.arange(half), [], [], []
    for town in (0, half):
        for step in steps:
            rows.append(town + people)
            columns.append(town + (people + step) % half)
            weights.append(np.ones(half))
    rows.append(people)
    columns.append(half + people)
    weights.append(np.full(half, WEAK))
    places = (np.concatenate(rows), np.concatenate(columns))
    upper = sparse.coo_array((np.concatenate(weights), places), shape=(2 * half, 2 * half))
    graph = Graph(sparse.csr_array(upper + upper.T), TAU)
    unit = np.zeros(2 * half)
    unit[0] = 1.0
    column = graph.adjoint(graph.apply(unit))
    steep = 2 * float(column[0] - min(column[[*steps, half]]))
    return Scene(TOWNS, graph, np.full(2 * half, column[0]), math.sqrt(steep), np.repeat([0, 1], half))


def _distances(half: int) -> list[int]:
    """Different distances, the first without a common divisor with the ring, so that it hangs together."""
    rng, found = stream(0, half), [1]
    while len(found) < TIES:
        step = int(rng.integers(2, half // 2))
        if step not in found:
            found.append(step)
    return found


@dataclass(frozen=True)
class Grown:
    """One network: its nodes and slope, and what a frame says about the source.

    `bits` are learned about the node at the papers' epsilon, at most `limit` on average in any network of this kind;
    `home` is the probability of the right town; from the mu `needed` on, the most likely node is the right one.
    """

    network: str
    nodes: int
    frames: int
    slope: float
    bits: Mean
    limit: float
    needed: Mean
    home: Mean | None

    @property
    def hidden(self) -> float:
        """Bits about the node that stay unknown."""
        return math.log2(self.nodes) - self.bits.value

    @property
    def epsilon(self) -> float:
        """The epsilon of the noise that is needed to find the node."""
        return Profile(self.needed.value).epsilon(DELTA)


@dataclass(frozen=True)
class Growth(Finding):
    """Hiding and finding in growing networks."""

    size: ClassVar[tuple[float, float]] = (11.5, 4.0)
    grown: tuple[Grown, ...]

    def of(self, network: str) -> tuple[Grown, ...]:
        return tuple(one for one in self.grown if one.network == network)

    def measures(self) -> tuple[Measure, ...]:
        """Up to a hundred thousand nodes: larger ones have too few frames to contradict anything."""
        measures = []
        for one in self.grown:
            name, few = f"{one.network}, {one.nodes:,}", one.nodes > COMPARED
            measures.append(Measure(f"{name}: slope", one.slope))
            if not few:
                measures.append(Measure(f"{name}: mu to find the node", one.needed.value, one.needed.error))
            if one.home is None and not few:
                measures.append(Measure(f"{name}: bits learned", one.bits.value, one.bits.error))
        home = self.of(TOWNS)[0].home or Mean(0.0, 0.0)
        return (*measures, Measure("small towns: the right one", home.value, home.error, share=True))

    def text(self) -> str:
        street, towns, mu = self.of(STREETS), self.of(TOWNS), largest_mu(EPSILON, DELTA)
        last = towns[-1]
        return (
            f"The noise hides a move of one step at ({EPSILON:g}, {DELTA:g}), mu = {mu:.2f}. It depends on the "
            f"steepest edge alone, which a larger network leaves as it is: {street[0].slope:.3f} on "
            f"{street[0].nodes:,} street corners and {street[-1].slope:.3f} on {street[-1].nodes:,}. So what a frame "
            "says about the source levels off: on average it is at most mu^2 |M_v|^2 / (2 Delta^2), "
            f"{street[-1].limit:.1f} bits on streets and {last.limit:.1f} in towns (dashed), however many nodes there "
            "are, because that is the divergence of the readings from mere noise. Of the "
            f"{math.log2(street[-1].nodes):.1f} bits that name one of {street[-1].nodes:,} corners, "
            f"{street[-1].hidden:.1f} stay hidden; of {street[0].nodes:,}, {street[0].hidden:.1f}."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        mu = largest_mu(EPSILON, DELTA)
        for number, name in enumerate((STREETS, TOWNS)):
            found = self.of(name)
            look: dict[str, Any] = {"color": SERIES[number], "marker": MARKERS[number], "label": name, "capsize": 2}
            nodes = [one.nodes for one in found]
            panels[0].errorbar(nodes, [one.bits.value for one in found], [2 * one.bits.error for one in found], **look)
            panels[1].errorbar(
                nodes, [one.needed.value for one in found], [2 * one.needed.error for one in found], **look
            )
        towns = [(one.nodes, one.home) for one in self.of(TOWNS) if one.home is not None]
        panels[2].errorbar(
            [n for n, _ in towns],
            [100 * home.value for _, home in towns],
            [200 * home.error for _, home in towns],
            color=SERIES[1],
            marker=MARKERS[1],
            capsize=2,
        )
        across = [one.nodes for one in self.of(STREETS)]
        for number, name in enumerate((STREETS, TOWNS)):
            panels[0].axhline(self.of(name)[-1].limit, color=SERIES[number], linestyle="--", linewidth=1)
        panels[0].plot(across, np.log2(across), color=INK, linestyle=":", label="all bits")
        panels[1].axhline(mu, color=INK, linestyle=":", label=f"mu of epsilon = {EPSILON:g}")
        panels[2].axhline(50, color=FAINT, linewidth=1)
        for axes, title in zip(
            panels,
            ("bits learned about the node", "mu that finds the node", "probability of the right town, %"),
            strict=True,
        ):
            log_x(axes, (1000, 10_000, 100_000, 1_000_000))
            axes.set(title=title, xlabel="nodes")
            axes.grid()
        panels[0].set_ylim(0)
        panels[1].set_yscale("log")
        panels[2].set_ylim(40, 100)
        for axes in panels[:2]:
            axes.legend(fontsize=8)


def grow(scene: Scene, frames: int, rng: np.random.Generator) -> Grown:
    """Recover sources at random nodes from noisy frames.

    Notes
    -----
    With slope D and noise D / mu, the log likelihood of node w is mu B_w + mu^2 (A_w - |M_w|^2 / 2), where A = M'M e_t
    and B = M'z of the noise z, in units of D. The true node t is the likeliest for every mu above the largest
    (B_w - B_t) / (|M_t - M_w|^2 / 2), in the same units.
    """
    graph, n = scene.graph, scene.graph.places
    at = rng.integers(0, n, frames)
    units = np.zeros((frames, n))
    units[np.arange(frames), at] = 1.0
    overlaps = graph.adjoint(graph.apply(units)) / scene.slope**2
    noise = graph.adjoint(rng.standard_normal((frames, n))) / scene.slope
    mu, half = largest_mu(EPSILON, DELTA), scene.squares / scene.slope**2 / 2
    bits, needed, home = np.empty(frames), np.empty(frames), np.empty(frames)
    for frame, (node, A, B) in enumerate(zip(at, overlaps, noise, strict=True)):
        logs = mu * B + mu**2 * (A - half)
        bits[frame] = (logs[node] - special.logsumexp(logs)) / math.log(2) + math.log2(n)
        apart = half[node] + half - A
        apart[node] = np.inf
        needed[frame] = max(float(((B - B[node]) / apart).max()), 0.0)
        if scene.towns is not None:
            home[frame] = special.softmax(logs)[scene.towns == scene.towns[node]].sum()
    right = None if scene.towns is None else Mean.of(home)
    limit = mu**2 * float(half.mean()) / math.log(2)
    return Grown(scene.name, n, frames, scene.slope, Mean.of(bits), limit, Mean.of(needed), right)


def _work(run: Run) -> Growth:
    sizes = run.choose(4, 2, 1)
    frames = run.choose(FRAMES, QUICK_FRAMES, (8,))
    makers: tuple[tuple[Callable[[int], Scene], tuple[int, ...]], ...] = ((streets, SIDES), (two_towns, HALVES))
    grown = []
    for make, scale, count in run.each(
        [(make, scale, frames[k]) for make, scales in makers for k, scale in enumerate(scales[:sizes])]
    ):
        grown.append(grow(make(scale), count, stream(run.seed, scale)))
    return Growth(tuple(grown))


EXPERIMENT = Experiment(
    "growth",
    "How hiding and finding the source of a rumour grow, from a thousand nodes to a million",
    Growth,
    _work,
    minutes=4.0,
)
