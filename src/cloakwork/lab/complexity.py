"""What is asked of tests of privacy: settings, the queries that each takes by every account, and how they grow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cloakwork.auditing import Verdict, audit
from cloakwork.auditing.testers import KnownPair, KnownPure, Pair, UnknownPair, share_limit
from cloakwork.auditing.testers.costs import boundary_pair
from cloakwork.auditing.testers.plan import most_failures, votes
from cloakwork.auditing.testers.random_privacy import share_size
from cloakwork.lab.experiment import stream
from cloakwork.lab.queries import (
    Contest,
    halves,
    known_contest,
    pure_contest,
    seldom,
    shuffled,
    strained,
    unknown_contest,
)
from cloakwork.lab.slopes import Slope, fitted

EPSILON, DELTA = 1.0, 0.05
GAMMA = 0.05  # share of the pairs of inputs that may be bad, for random privacy
DECIDES = 64  # number of outcomes from which on it is that number that decides
MOST_REPORTS = 200_000


class Cell(StrEnum):
    """A cell of the table."""

    UNKNOWN = "approximate, no information"
    KNOWN = "approximate, full information"
    PURE = "pure, full information"

    @property
    def theorem(self) -> str:
        """Where its number of queries is stated."""
        return {Cell.UNKNOWN: "10.8", Cell.KNOWN: "10.10", Cell.PURE: "10.11"}[self]


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
    def printed(self) -> float:
        """The thesis' number at the same gap; for Algorithm 5, which has no constant, 3 sqrt(n) / a^2."""
        e = math.exp(EPSILON)
        if self.tester is Cell.UNKNOWN:
            return max(4 * self.n, 12) * (1 + e * e) / (self.alpha / 2) ** 2
        if self.tester is Cell.KNOWN:
            return 3 * math.sqrt(self.n) / (self.alpha / (1 + e)) ** 2
        return math.log(self.n) / ((self.alpha / 10) ** 2 * self.least**2)

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

    `found` says how many of the audits found the violation; those that did not count as all reports that they had.
    """

    x: float
    needed: float
    error: float
    planned: int
    printed: float
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
        """The exponent of what is needed; in n from 64 on, where it is n that decides."""
        kept = [one for one in self.points if self.along is not Along.OUTCOMES or one.x >= DECIDES]
        kept = kept if len(kept) > 1 else list(self.points)
        return fitted([one.x for one in kept], [one.needed for one in kept], [one.error for one in kept])

    @property
    def claimed(self) -> float:
        """The exponent of what is printed, over the same values."""
        return fitted([one.x for one in self.points], [one.printed for one in self.points]).value

    @property
    def audited(self) -> Slope | None:
        """The exponent of what audits use, where most of them came to an end; None if that is so at one point only."""
        kept = [one for one in self.points if one.found > 0.5]
        return fitted([one.x for one in kept], [one.audited for one in kept]) if len(kept) > 1 else None


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


def audited(setting: Setting, audits: int, key: tuple[int, ...]) -> Sequence[float]:
    """Reports on each input until a violation was announced, for each audit; infinite if none was."""
    used = []
    delta = 0.0 if setting.tester is Cell.PURE else DELTA
    for number in range(audits):
        rng = stream(*key, 1000 + number)
        found = audit(shuffled(setting.far, rng), epsilon=EPSILON, delta=delta, reports=MOST_REPORTS, rng=rng)
        used.append(float(found.reports_used) if found.verdict is Verdict.VIOLATION else math.inf)
    return used


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
