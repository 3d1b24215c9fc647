"""A rumour on a network where everyone answers "do you know it?" by randomised response: where did it begin?"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import sparse, special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy import Flip
from cloakwork.recovery.origin import TIMES, knowing_chances
from papers.calibration import Calibration
from papers.drawing import INK, curve, finish
from papers.experiment import Experiment, Run, stream
from papers.experiments.communities import GRAPH, HIGH, LOW, NODES
from papers.networks import DELTA, TAU, Network, best_rules, block_model, cloak_of, credit
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick

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


class Origins(Finding):
    """Rumours from randomised answers, beside the papers' diffusion."""

    size = (11.0, 4.4)

    def right(self, epsilon: float, kind: str = FEW) -> Mean:
        right: Mean = pick(self.heard, epsilon=epsilon, kind=kind).right
        return right

    def goals(self) -> tuple[Goal, ...]:
        return tuple(
            Goal(
                f"right community at epsilon {epsilon:g} in at least {100 * least:.0f} %, with about 33 who know",
                f"{100 * self.right(epsilon):.1f} %",
                self.right(epsilon).value >= least,
            )
            for epsilon, least in GOALS.items()
        )

    def text(self) -> str:
        few, many = (pick(self.heard, epsilon=1.0, kind=kind) for kind in (FEW, MANY))
        low, high, clear = (100 * self.right(epsilon) for epsilon in (0.5, 2.0, CLEAR))
        return (
            f"A rumour begins with one of {NODES} people and passes from friend to friend. When about "
            f"{few.knowing:.0f} know it, everyone is asked, and answers truly with probability e^eps/(1 + e^eps): each "
            "answer hides whether that person knows it at all, with pure privacy. [`cw.find_origin`](bits.md) weighs "
            f"every possible beginner. It names the right community in {low:.1f}, {100 * few.right:.1f} and {high:.1f} "
            f"% of rumours at epsilon 0.5, 1 and 2, and in {clear:.1f} % from true answers; when about "
            f"{many.knowing:.0f} know, in {100 * many.right:.1f} % at epsilon 1. Counting answers is hardly worse "
            "where there are two communities."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        x = list(EPSILONS)
        for number, kind in enumerate(KINDS):
            curve(left, x, [self.right(one, kind) for one in x], number, scale=100, label=f"{kind}, find_origin")
        counted = [100 * pick(self.heard, epsilon=one, kind=FEW).counted.value for one in x]
        left.plot(x, counted, "--", color=INK, label="cascade, counting answers")
        curve(right, x, [self.right(one) for one in x], scale=100, label="randomised answers, delta = 0")
        near = [one.epsilon for one in self.beside]
        for name, number, noise in (("exact", 2, "exact noise"), ("papers", 1, "papers' noise")):
            look = {"linestyle": "--", "marker": "s", "label": f"best rule, {noise}, delta = {DELTA:g}"}
            curve(right, near, [getattr(one, name) for one in self.beside], number, scale=100, **look)
        percent = ("percent with the right community", "")
        for axes, title, y in zip(
            (left, right), ("Randomised answers", "Beside the papers' figure"), percent, strict=True
        ):
            axes.axhline(50, color=INK, linestyle=":", linewidth=1)
            finish(axes, title, "epsilon", y, ticks=x, legend=8, where="lower right", ylim=(30, 102))


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


def listen(rumours: Rumours, epsilon: float, rng: np.random.Generator) -> Row:
    """Randomise the answers and find where rumours began.

    `right` and `counted` are how often `find_origin` and the numbers of answers name the right community, `beginner`
    is how often the right beginner is named, and `stated` the mean probability of the one that is.
    """
    flip, network = Flip(epsilon=epsilon, readings_per_window=1), rumours.network
    answers = flip.simulate(rumours.knows.astype(np.int64), rng=rng)
    home, weights = network.communities[rumours.starts], weigh(network, flip, answers)
    return Row(
        kind=rumours.kind,
        nodes=len(network.communities),
        epsilon=epsilon,
        knowing=float(rumours.knows.sum(axis=1).mean()),
        right=Mean.of(credit(weights @ network.members, home)),
        counted=Mean.of(credit(answers @ network.members, home)),
        beginner=float(credit(weights, rumours.starts).mean()),
        stated=float(weights.max(axis=1).mean()),
    )


def unlike(spread: str, count: int, rng: np.random.Generator) -> Row:
    """Long cascades in small groups, of which the model knows another network, or answers lack cases.

    `right` and `beginner` are how often the named group and beginner are right, and the others what is stated: `known`
    for the model's time, `unknown` for a quarter to four times that.
    """
    flip, network = Flip(epsilon=AT, readings_per_window=1), block_model(GROUPS * GROUP, *DENSE, GRAPH, parts=GROUPS)
    real = block_model(GROUPS * GROUP, *DENSE, GRAPH + 1, parts=GROUPS) if spread == OTHER_TIES else network
    rumours = Rumours.spread(MANY, real, count, rng)
    knows = rumours.knows & (rng.random(rumours.knows.shape) < (0.6 if spread == MISSING_CASES else 1.0))
    answers = flip.simulate(knows.astype(np.int64), rng=rng)
    home = network.communities[rumours.starts]
    known, unknown = (weigh(network, flip, answers, times) for times in ((1.0,), TIMES))
    groups, wide_groups = known @ network.members, unknown @ network.members
    return Row(
        spread=spread,
        right=Mean.of(credit(groups, home)),
        known=float(groups.max(axis=1).mean()),
        unknown_right=Mean.of(credit(wide_groups, home)),
        unknown=float(wide_groups.max(axis=1).mean()),
        beginner=float(credit(unknown, rumours.starts).mean()),
        beginner_known=float(known.max(axis=1).mean()),
        beginner_unknown=float(unknown.max(axis=1).mean()),
    )


def _work(run: Run) -> Origins:
    network = block_model(NODES, HIGH, LOW, GRAPH)
    heard = []
    for number, kind in enumerate(KINDS):
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
        papers, exact = (
            best_rules(network, cloak_of(network, TAU, epsilon, one), stream(run.seed, 20, number)).right
            for one in (Calibration.PAPER, Calibration.EXACT)
        )
        beside.append(Row(epsilon=epsilon, papers=papers, exact=exact))
    unsure = [
        unlike(spread, run.choose(*UNLIKE), stream(run.seed, 30, number)) for number, spread in enumerate(SPREADS)
    ]
    return Origins(heard=tuple(heard), large=tuple(large), beside=tuple(beside), unsure=tuple(unsure))


EXPERIMENT = Experiment(
    "origins",
    "Where a rumour began, from everyone's randomised answer whether they know it",
    Origins,
    _work,
    shows="Gilbert and McMillan, Figure 3 (binary whisper networks, which it names as future work)",
    minutes=0.6,
)
