"""What is asked of tests of privacy: settings, the queries that each takes by every account, and how they grow."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from cloakwork.auditing import Verdict, audit
from cloakwork.auditing.testers import KnownPair, KnownPure, Pair, UnknownPair, share_limit
from cloakwork.auditing.testers.query_costs import boundary_pair
from cloakwork.auditing.testers.query_plan import most_failures, votes
from cloakwork.auditing.testers.random_privacy import share_size
from papers.experiment import stream
from papers.queries import (
    Contest,
    halves,
    known_contest,
    pure_contest,
    seldom,
    shuffled,
    strained,
    unknown_contest,
)
from papers.slopes import Slope, fitted

EPSILON, DELTA = 1.0, 0.05
GAMMA = 0.05  # share of the pairs of inputs that may be bad, for random privacy
DECIDES = 256  # number of outcomes from which on it is that number that decides
SMALL = 0.2  # gap up to which the bound here is one for small gaps
MOST_REPORTS = 200_000


class Cell(StrEnum):
    """A cell of the table."""

    UNKNOWN = "approximate, no information"
    KNOWN = "approximate, full information"
    PURE = "pure, full information"

    @property
    def where(self) -> str:
        """Where its number of queries is stated."""
        return {Cell.UNKNOWN: "Theorem 10.8", Cell.KNOWN: "Proposition 10.10", Cell.PURE: "Theorem 10.11"}[self]


class Along(StrEnum):
    """What is varied."""

    OUTCOMES = "n"
    GAP = "alpha"
    LEAST = "beta"


@dataclass(frozen=True)
class Setting:
    """One number of queries to be found: `beta` is the least probability, for pure privacy alone."""

    tester: Cell
    n: int
    alpha: float
    beta: float | None = None

    @property
    def stated(self) -> Pair:
        """What a maker would state."""
        if self.tester is not Cell.PURE:
            return halves(self.n, EPSILON, DELTA)
        return boundary_pair(self.n, EPSILON) if self.beta is None else seldom(self.n, EPSILON, self.beta)

    @property
    def least(self) -> float:
        """The least probability of the stated pair."""
        return float(min(self.stated.zero.min(), self.stated.one.min()))

    @property
    def contest(self) -> Contest:
        """Pairs to be told apart."""
        if self.tester is Cell.PURE:
            return pure_contest(self.stated, self.alpha)
        made = unknown_contest if self.tester is Cell.UNKNOWN else known_contest
        return made(self.n, EPSILON, DELTA, self.alpha)

    @property
    def far(self) -> Pair:
        """What an audit is given: alpha away from the claim, spread over many outcomes or through the rarest one."""
        if self.tester is Cell.PURE:
            return strained(self.stated, self.alpha, 0.5)
        return halves(self.n, EPSILON, DELTA, moved=self.alpha / (1 + math.exp(EPSILON)))

    @property
    def rate(self) -> float:
        """How the thesis' number grows, whatever its constant."""
        if self.tester is Cell.PURE:
            return math.log(self.n) / (self.alpha * self.least) ** 2
        return (self.n if self.tester is Cell.UNKNOWN else math.sqrt(self.n)) / self.alpha**2

    @property
    def printed(self) -> float | None:
        """The thesis' number at the same gap; None for Algorithm 5, which has a rate and no constant."""
        if self.tester is Cell.KNOWN:
            return None
        if self.tester is Cell.UNKNOWN:
            return max(4 * self.n, 12) * (1 + math.exp(2 * EPSILON)) / (self.alpha / 2) ** 2
        return 10**2 * self.rate

    def planned(self) -> tuple[int, int]:
        """What the tester here plans, and what no test can go below."""
        made: UnknownPair | KnownPair | KnownPure
        if self.tester is Cell.UNKNOWN:
            made = UnknownPair(self.n, EPSILON, DELTA, self.alpha)
        elif self.tester is Cell.KNOWN:
            made = KnownPair(self.stated, EPSILON, DELTA, self.alpha)
        else:
            made = KnownPure(self.stated, EPSILON, self.alpha)
        return made.plan.per_input, made.plan.lower


@dataclass(frozen=True)
class Point:
    """Queries on each input: needed, planned here, printed, the least possible; and the median of what audits used.

    `rate` is the printed rate without its constant, and `printed` None where no constant is printed. `found` says how
    many of the audits found the violation; those that did not count as all reports that they had.
    """

    x: float
    needed: float
    error: float
    planned: int
    printed: float | None
    rate: float
    limit: int
    audited: float
    found: float


@dataclass(frozen=True)
class Sweep:
    """What one tester needs as one thing is varied."""

    tester: Cell
    along: Along
    points: tuple[Point, ...]

    @property
    def slope(self) -> Slope:
        """The exponent of what is needed; in n from 256 on, where it is n that decides."""
        kept = [one for one in self.points if self.along is not Along.OUTCOMES or one.x >= DECIDES]
        kept = kept if len(kept) > 1 else list(self.points)
        return fitted([one.x for one in kept], [one.needed for one in kept], [one.error for one in kept])

    @property
    def claimed(self) -> float:
        """The exponent of the printed rate, over the same values."""
        return fitted([one.x for one in self.points], [one.rate for one in self.points]).value

    @property
    def proved(self) -> Slope:
        """The exponent of what no test goes below; in alpha where that is small."""
        kept = [one for one in self.points if self.along is not Along.GAP or one.x <= SMALL]
        kept = kept if len(kept) > 1 else list(self.points)
        return fitted([one.x for one in kept], [float(one.limit) for one in kept])

    @property
    def rate_through_first(self) -> tuple[float, ...]:
        """The printed rate with the constant that makes it what is needed at the first value."""
        first = self.points[0]
        return tuple(first.needed * one.rate / first.rate for one in self.points)

    @property
    def audited(self) -> Slope | None:
        """The exponent of what audits use, where most of them came to an end; None if that is so at one point only."""
        kept = [one for one in self.points if one.found > 0.5]
        return fitted([one.x for one in kept], [one.audited for one in kept]) if len(kept) > 1 else None


@dataclass(frozen=True)
class Rare:
    """Pure privacy without information: what it takes to tell the two pairs of the thesis' proof apart at one A.

    One is epsilon-private, the other has `far` in the place of epsilon, and they differ in an outcome of probability
    e^-A alone. `needed` is exact, for the best of all tests; `printed` is what the proof says that it is at least.
    """

    depth: float
    far: float
    needed: int
    printed: float
    audited: float
    found: float


@dataclass(frozen=True)
class Share:
    """Random privacy: pairs of inputs and votes on each, for one slack in the share of bad pairs."""

    slack: float
    pairs: int
    corrected: float
    limit: int
    printed_votes: int
    needed_votes: int
    left: float
    allowed: float


@dataclass(frozen=True)
class Audited:
    """The median of what audits used until they announced a violation, and how many of them did."""

    reports: float
    found: float


def audited(pair: Pair, delta: float, audits: int, key: tuple[int, ...]) -> Audited:
    """Audit a pair against the claim; an audit that announces nothing counts as all reports that it may use."""
    used, found = [], 0
    for number in range(audits):
        rng = stream(*key, 1000 + number)
        one = audit(shuffled(pair, rng), epsilon=EPSILON, delta=delta, reports=MOST_REPORTS, rng=rng)
        violated = one.verdict is Verdict.VIOLATION
        used.append(one.reports_used if violated else MOST_REPORTS)
        found += violated
    return Audited(float(np.median(used)), found / audits)


def rare(depth: float, audits: int, key: tuple[int, ...]) -> Rare:
    """What it takes to tell the pairs of McMillan's Theorem 10.5 apart, with A = `depth`.

    Notes
    -----
    Input 0 is the same in both. On input 1 the rare outcome has probability p = e^-A or q = e^-2A, and the best test
    asks whether it was seen: it is right two times in three on both pairs if ((1-p)/(1-q))^r <= 1/2, a coin helping
    where it was not. The proof has 2/9 over the divergence of the two.
    """
    private, far = hidden_pairs(depth)
    p, q = float(private.one[0]), float(far.one[0])
    used = audited(far, 0.0, audits, key)
    return Rare(
        depth=depth,
        far=far.epsilon,
        needed=math.ceil(math.log(2) / (math.log1p(-q) - math.log1p(-p))),
        printed=2 / 9 / float(stats.entropy(private.one, far.one)),
        audited=used.reports,
        found=used.found,
    )


def hidden_pairs(depth: float) -> tuple[Pair, Pair]:
    """The private pair and the far one of that proof."""
    zero, near, hidden = (math.exp(-power) for power in (depth + EPSILON, depth, 2 * depth))
    private, far = ([[share, 1 - share] for share in shares] for shares in ((zero, near), (zero, hidden)))
    return Pair(*private), Pair(*far)


def share(slack: float) -> Share:
    """What random privacy takes at one slack, by exact binomial tails; the thesis' alpha/lambda is half the slack."""
    wrong, half = slack / 4, slack / 2
    pairs = share_size(GAMMA + (1 - GAMMA) * wrong, (GAMMA + slack) * (1 - wrong), 1 / 3).pairs
    printed = math.ceil(math.log(2 / half)) | 1
    return Share(
        slack=slack,
        pairs=pairs,
        corrected=math.log(3) * (8 * GAMMA + 56 * half / 3) / half**2,
        limit=share_limit(gamma=GAMMA, slack=slack),
        printed_votes=printed,
        needed_votes=votes(1 / 3, half / 2),
        left=most_failures(printed, 1 / 3),
        allowed=half / 2,
    )
