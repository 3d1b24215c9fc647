"""A rumour on a network where everyone answers "do you know it?" by randomised response: where did it begin?"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import sparse, special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy import Flip
from cloakwork.recovery.origin import TIMES, knowing_chances
from papers.calibration import Calibration
from papers.drawing import INK, MARKERS, SERIES, log_x
from papers.experiment import Experiment, Run, pick, stream
from papers.experiments.communities import GRAPH, HIGH, LOW, NODES
from papers.networks import DELTA, TAU, Network, best_rules, block_model, cloak_of, credit
from papers.result import Finding, Goal, Measure
from papers.statistics import Mean

BoolArray = NDArray[np.bool_]
SPREAD = 0.3  # tau of the model that names the beginner
TOLD = 0.15  # how likely someone who knows tells each neighbour in one round
FEW, MANY, DIFFUSED = KINDS = ("cascade", "longer cascade", "diffusion")
KNOWING = 33.0  # on average, of the diffusion
ENOUGH = {FEW: 20, MANY: 60}  # a cascade ends with the round in which so many know
EPSILONS = (0.5, 1.0, 2.0)
CLEAR = 30.0  # an epsilon at which answers are true
GOALS = {0.5: 0.75, 1.0: 0.88, 2.0: 0.98}
RUMOURS = (4000, 800, 40)  # of each kind
GUESSES = 12  # numbers of people who know that answers are weighed with
SIZES: tuple[tuple[int, ...], ...] = ((1000, 2000), (), ())  # larger networks, of communities of 250
AT, LARGE = 2.0, 1000  # epsilon and rumours there
GROUPS, GROUP, DENSE = 6, 30, (0.2, 0.03)  # small groups, and how likely two people of one and of two groups are tied
NO_CASE_MISSING, MISSING_CASES, OTHER_TIES = SPREADS = (
    "no case missing",
    "40 % of the cases missing",
    "other ties in the same groups",
)
UNLIKE = (4000, 400, 40)  # rumours of each of these


@dataclass(frozen=True)
class Heard:
    """How often the right community is named, by `find_origin` and by counting answers, and the right beginner.

    `stated` is the mean probability of the beginner that is named.
    """

    kind: str
    nodes: int
    epsilon: float
    knowing: float
    right: Mean
    counted: Mean
    beginner: float
    stated: float

    def __str__(self) -> str:
        return _percent(self.right)


@dataclass(frozen=True)
class Unsure:
    """Real spread that is unlike the model: how often the named group and beginner are right, and what is stated.

    `known` is stated for the model's time, `unknown` for a quarter to four times that.
    """

    spread: str
    right: Mean
    known: float
    unknown_right: Mean
    unknown: float
    beginner: float
    beginner_known: float
    beginner_unknown: float


@dataclass(frozen=True)
class Beside:
    """The best rule on the papers' noisy readings of the same network, with their noise and with exact noise."""

    epsilon: float
    papers: Mean
    exact: Mean


@dataclass(frozen=True)
class Origins(Finding):
    """Rumours from randomised answers, beside the papers' diffusion."""

    size: ClassVar[tuple[float, float]] = (11.0, 4.4)
    heard: tuple[Heard, ...]
    large: tuple[Heard, ...]
    beside: tuple[Beside, ...]
    unsure: tuple[Unsure, ...]

    def of(self, epsilon: float, kind: str = FEW) -> Heard:
        return pick(self.heard, epsilon=epsilon, kind=kind)

    def goals(self) -> tuple[Goal, ...]:
        return tuple(
            Goal(
                f"right community at epsilon {epsilon:g} in at least {100 * least:.0f} %, with about 33 who know",
                f"{self.of(epsilon)} %",
                self.of(epsilon).right.value >= least,
            )
            for epsilon, least in GOALS.items()
        )

    def measures(self) -> tuple[Measure, ...]:
        measures = []
        for one in self.heard:
            for name, mean in (("by weighing", one.right), ("by counting", one.counted)):
                measures.append(
                    Measure(f"{name}, {one.kind}, {_epsilon(one.epsilon)}", mean.value, mean.error, share=True)
                )
        for rule in self.beside:
            for name, mean in (("papers' noise", rule.papers), ("exact noise", rule.exact)):
                measures.append(Measure(f"best rule, {name}, {rule.epsilon:g}", mean.value, mean.error, share=True))
        return tuple(measures)

    def text(self) -> str:
        few, many = self.of(1.0), self.of(1.0, MANY)
        return (
            f"A rumour begins with one of {NODES} people and passes from friend to friend. When about "
            f"{few.knowing:.0f} know it, everyone is asked, and answers truly with probability e^eps/(1 + e^eps): each "
            "answer hides whether that person knows it at all, with pure privacy. [`cw.find_origin`](bits.md) weighs "
            f"every possible beginner. It names the right community in {self.of(0.5)}, {few} and {self.of(2.0)} % of "
            f"rumours at epsilon 0.5, 1 and 2, and in {self.of(CLEAR)} % from true answers; when about "
            f"{many.knowing:.0f} know, in {many} % at epsilon 1. Counting answers is hardly worse where there are two "
            "communities."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        x = list(EPSILONS)
        for number, kind in enumerate(KINDS):
            _line(left, x, [self.of(epsilon, kind) for epsilon in x], number, f"{kind}, find_origin")
        counted = [100 * self.of(epsilon).counted.value for epsilon in x]
        left.plot(x, counted, "--", color=INK, label="cascade, counting answers")
        _line(right, x, [self.of(epsilon) for epsilon in x], 0, "randomised answers, delta = 0")
        near = [one.epsilon for one in self.beside]
        for name, color, noise in (("exact", SERIES[2], "exact noise"), ("papers", SERIES[1], "papers' noise")):
            means = [getattr(one, name) for one in self.beside]
            bars = [200 * one.error for one in means]
            label = f"best rule, {noise}, delta = {DELTA:g}"
            up = [100 * one.value for one in means]
            right.errorbar(near, up, yerr=bars, fmt="s--", color=color, label=label, capsize=2)
        left.set(title="Randomised answers", ylabel="percent with the right community")
        right.set(title="Beside the papers' figure")
        for axes in (left, right):
            axes.axhline(50, color=INK, linestyle=":", linewidth=1)
            axes.set(xlabel="epsilon", ylim=(30, 102))
            log_x(axes, x)
            axes.grid()
            axes.legend(fontsize=8, loc="lower right")


def _line(axes: Any, x: list[float], heard: list[Heard], number: int, label: str) -> None:
    up, bars = [100 * one.right.value for one in heard], [200 * one.right.error for one in heard]
    axes.errorbar(x, up, yerr=bars, marker=MARKERS[number], color=SERIES[number], label=label, capsize=2)


def _epsilon(epsilon: float) -> str:
    return "true answers" if epsilon == CLEAR else f"epsilon {epsilon:g}"


def _percent(mean: Mean) -> str:
    return f"{100 * mean.value:.1f} ± {100 * mean.error:.1f}"


def cascades(network: Network, starts: IntArray, enough: int, rng: np.random.Generator) -> BoolArray:
    """Who knows, for each beginner: each who knows tells each neighbour with probability 0.15 a round."""
    n, (one, other) = len(network.communities), np.array(network.graph.edges).T
    upper = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(n, n))
    ties = upper + upper.T
    knows = np.zeros((len(starts), n), dtype=np.bool_)
    knows[np.arange(len(starts)), starts] = True
    while (spreading := np.flatnonzero(knows.sum(axis=1) < enough)).size:
        tellers = (ties @ knows[spreading].T.astype(np.float64)).T
        knows[spreading] |= rng.random(tellers.shape) < 1 - (1 - TOLD) ** tellers
    return knows


@lru_cache(maxsize=GUESSES + 1)
def chances(network: Network, number: float, time: float = 1.0) -> FloatArray:
    """How likely i knows if s began, shape (i, s), where `number` people know on average over s."""
    return knowing_chances(np.maximum(network.physics(time * SPREAD).matrix, 0.0), number)


@dataclass(frozen=True, eq=False)
class Rumours:
    """Rumours of one kind on a network: who began each, and who knows it."""

    kind: str
    network: Network
    starts: IntArray
    knows: BoolArray

    @classmethod
    def spread(cls, kind: str, network: Network, count: int, rng: np.random.Generator) -> "Rumours":
        """Rumours from random beginners."""
        starts = rng.integers(0, len(network.communities), count)
        if kind == DIFFUSED:
            likely = chances(network, KNOWING)[:, starts].T
            return cls(kind, network, starts, rng.random(likely.shape) < likely)
        return cls(kind, network, starts, cascades(network, starts, ENOUGH[kind], rng))


def weigh(network: Network, flip: Flip, answers: IntArray, times: tuple[float, ...] = (1.0,)) -> FloatArray:
    """The probability of each beginner for each row of answers, by the law of `find_origin`, for many rumours at once.

    The number of people who know, as estimated from the answers, is rounded to one of `GUESSES`.
    """
    n, said = len(network.communities), answers.astype(np.float64)
    shares = (said.mean(axis=1) - flip.other) / (flip.truth - flip.other)
    guesses = np.geomspace(1.0, 0.99 * n, GUESSES)
    nearest = np.abs(np.log(n * np.clip(shares, 1 / n, 0.99))[:, None] - np.log(guesses)).argmin(axis=1)
    weights = np.empty((len(said), n))
    for guess in np.unique(nearest):
        own, logs = said[nearest == guess], []
        for time in times:
            yes = flip.other + (flip.truth - flip.other) * chances(network, float(guesses[guess]), time)
            logs.append(own @ np.log(yes) + (1 - own) @ np.log1p(-yes))
        weights[nearest == guess] = special.softmax(special.logsumexp(logs, axis=0), axis=1)
    return weights


def listen(rumours: Rumours, epsilon: float, rng: np.random.Generator) -> Heard:
    """Randomise the answers and find where rumours began."""
    flip, network = Flip(epsilon=epsilon, readings_per_window=1), rumours.network
    answers = flip.simulate(rumours.knows.astype(np.int64), rng=rng)
    home, weights = network.communities[rumours.starts], weigh(network, flip, answers)
    return Heard(
        rumours.kind,
        len(network.communities),
        epsilon,
        float(rumours.knows.sum(axis=1).mean()),
        Mean.of(credit(weights @ network.members, home)),
        Mean.of(credit(answers @ network.members, home)),
        float(credit(weights, rumours.starts).mean()),
        float(weights.max(axis=1).mean()),
    )


def unlike(spread: str, count: int, rng: np.random.Generator) -> Unsure:
    """Long cascades in small groups, of which the model knows another network, or answers lack cases."""
    flip, network = Flip(epsilon=AT, readings_per_window=1), block_model(GROUPS * GROUP, *DENSE, GRAPH, parts=GROUPS)
    real = block_model(GROUPS * GROUP, *DENSE, GRAPH + 1, parts=GROUPS) if spread == OTHER_TIES else network
    rumours = Rumours.spread(MANY, real, count, rng)
    knows = rumours.knows & (rng.random(rumours.knows.shape) < (0.6 if spread == MISSING_CASES else 1.0))
    answers = flip.simulate(knows.astype(np.int64), rng=rng)
    home = network.communities[rumours.starts]
    known, unknown = (weigh(network, flip, answers, times) for times in ((1.0,), TIMES))
    groups, wide_groups = known @ network.members, unknown @ network.members
    return Unsure(
        spread,
        Mean.of(credit(groups, home)),
        float(groups.max(axis=1).mean()),
        Mean.of(credit(wide_groups, home)),
        float(wide_groups.max(axis=1).mean()),
        float(credit(unknown, rumours.starts).mean()),
        float(known.max(axis=1).mean()),
        float(unknown.max(axis=1).mean()),
    )


def _work(run: Run) -> Origins:
    network = block_model(NODES, HIGH, LOW, GRAPH)
    heard = []
    for number, kind in enumerate(run.each(KINDS, after=1)):
        rng = stream(run.seed, number)
        rumours = Rumours.spread(kind, network, run.choose(*RUMOURS), rng)
        heard += [listen(rumours, one, rng) for one in (*EPSILONS, *((CLEAR,) if kind == FEW else ()))]
    large = []
    for n in run.choose(*SIZES):
        rng, parts = stream(run.seed, 10, n), 2 * n // NODES
        wide = block_model(n, HIGH, LOW / (parts - 1), GRAPH, parts=parts)
        large.append(listen(Rumours.spread(FEW, wide, LARGE, rng), AT, rng))
    beside = []
    for number, epsilon in enumerate(run.choose(EPSILONS, (1.0,), (1.0,))):
        shares = [
            best_rules(network, cloak_of(network, TAU, epsilon, one), stream(run.seed, 20, number)).right
            for one in (Calibration.PAPER, Calibration.EXACT)
        ]
        beside.append(Beside(epsilon, *shares))
    unsure = [
        unlike(spread, run.choose(*UNLIKE), stream(run.seed, 30, number)) for number, spread in enumerate(SPREADS)
    ]
    run.progress(1, 1)
    return Origins(tuple(heard), tuple(large), tuple(beside), tuple(unsure))


EXPERIMENT = Experiment(
    "origins",
    "Where a rumour began, from everyone's randomised answer whether they know it",
    Origins,
    _work,
    shows="Gilbert and McMillan, Figure 3 (binary whisper networks, which it names as future work)",
    minutes=0.6,
)
