"""The cells of McMillan's table of query complexities: settings, the queries that each needs, and how they grow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.auditing import KnownPair, KnownPure, Pair, RandomPrivacy, UnknownPair, Verdict, audit
from papers.experiment import stream
from papers.queries import Contest, halves, known_contest, pure_contest, seldom, shuffled, strained, unknown_contest
from papers.query_limits import approximate_limit, boundary_pair, most_failures, pure_limit, share_limit, votes
from papers.rows import Mean, Row
from papers.statistics import fit_slope

EPSILON, DELTA = 1.0, 0.05
GAMMA = 0.05  # share of the pairs of inputs that may be bad, for random privacy
DECIDES = 256  # number of outcomes from which on it dominates the cost
SMALL = 0.2  # gap up to which our lower bound holds
MAX_REPORTS = 200_000


class Cell(StrEnum):
    """A cell of the table."""

    UNKNOWN = "approximate, no information"
    KNOWN = "approximate, full information"
    PURE = "pure, full information"

    @property
    def source(self) -> str:
        """Where its number of queries is stated."""
        return {Cell.UNKNOWN: "Theorem 10.8", Cell.KNOWN: "Proposition 10.10", Cell.PURE: "Theorem 10.11"}[self]


class Along(StrEnum):
    """The parameter that varies."""

    OUTCOMES = "n"
    GAP = "alpha"
    LEAST = "beta"


@dataclass(frozen=True)
class Setting:
    """One number of queries to find; `beta` is the least probability, for pure privacy only."""

    tester: Cell
    n: int
    alpha: float
    beta: float | None = None

    @property
    def stated(self) -> Pair:
        """The pair that a manufacturer would state."""
        if self.tester is not Cell.PURE:
            return halves(self.n, EPSILON, DELTA)
        return boundary_pair(self.n, EPSILON) if self.beta is None else seldom(self.n, EPSILON, self.beta)

    @property
    def least(self) -> float:
        return float(min(self.stated.zero.min(), self.stated.one.min()))

    def x(self, along: Along) -> float:
        return {Along.OUTCOMES: float(self.n), Along.GAP: self.alpha, Along.LEAST: self.least}[along]

    @property
    def contest(self) -> Contest:
        if self.tester is Cell.PURE:
            return pure_contest(self.stated, self.alpha)
        made = unknown_contest if self.tester is Cell.UNKNOWN else known_contest
        return made(self.n, EPSILON, DELTA, self.alpha)

    @property
    def far(self) -> Pair:
        """The pair that is audited: alpha away from the claim, over many outcomes or through the rarest one."""
        if self.tester is Cell.PURE:
            return strained(self.stated, self.alpha, 0.5)
        return halves(self.n, EPSILON, DELTA, moved=self.alpha / (1 + math.exp(EPSILON)))

    @property
    def rate(self) -> float:
        """The thesis' rate, without its constant."""
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
        """The cost of our tester, and the lower bound for any test."""
        if self.tester is Cell.PURE:
            pure = KnownPure(self.stated, EPSILON, self.alpha).plan
            return pure.per_input, pure_limit(self.stated, epsilon=EPSILON, alpha=self.alpha)
        limit = approximate_limit(n=self.n, epsilon=EPSILON, delta=DELTA, alpha=self.alpha)
        if self.tester is Cell.UNKNOWN:
            return UnknownPair(self.n, EPSILON, DELTA, self.alpha).plan.per_input, limit
        return KnownPair(self.stated, EPSILON, DELTA, self.alpha).plan.per_input, limit

    def search(self, searches: int, runs: int, key: tuple[int, ...]) -> FloatArray:
        contest, start = self.contest, float(self.planned()[1])
        return np.array([contest.needed(runs, stream(*key, k), start=start) for k in range(searches)])

    def point(self, along: Along, needed: Mean, audits: int, key: tuple[int, ...]) -> Row:
        """Queries on each input: needed, planned here, printed, the least possible; and the median used by audits.

        `rate` is the printed rate without its constant, `printed` is None where no constant is printed. `found` is the
        share of audits that found the violation; the others count with all reports that they had.
        """
        planned, limit = self.planned()
        reports, found = audit_pair(self.far, 0.0 if self.tester is Cell.PURE else DELTA, audits, key)
        return Row(
            x=self.x(along),
            needed=needed,
            planned=planned,
            printed=self.printed,
            rate=self.rate,
            limit=limit,
            audited=reports,
            found=found,
        )


def slope(sweep: Row) -> Mean:
    """The exponent of what is needed; in n from 256 on."""
    return _exponent(
        sweep, "needed", [one for one in sweep.points if sweep.along != Along.OUTCOMES or one.x >= DECIDES]
    )


def claimed(sweep: Row) -> float:
    """The exponent of the printed rate, over the same values."""
    return _exponent(sweep, "rate", sweep.points).value


def proved(sweep: Row) -> Mean:
    """The exponent of our lower bound; in alpha where that is small."""
    return _exponent(sweep, "limit", [one for one in sweep.points if sweep.along != Along.GAP or one.x <= SMALL])


def _exponent(sweep: Row, name: str, kept: Sequence[Row]) -> Mean:
    kept = kept if len(kept) > 1 else sweep.points
    return fit_slope([one.x for one in kept], [getattr(one, name) for one in kept])


def audit_pair(pair: Pair, delta: float, audits: int, key: tuple[int, ...]) -> tuple[float, float]:
    """Audit a pair several times; return the median of the reports used, and the share that found a violation.

    An audit that finds none counts with all reports that it may use.
    """
    used, found = [], 0
    for number in range(audits):
        rng = stream(*key, 1000 + number)
        one = audit(shuffled(pair, rng), epsilon=EPSILON, delta=delta, reports=MAX_REPORTS, rng=rng)
        violated = one.verdict is Verdict.VIOLATION
        used.append(one.reports_used if violated else MAX_REPORTS)
        found += violated
    return float(np.median(used)), found / audits


def rare(depth: float, audits: int, key: tuple[int, ...]) -> Row:
    """The cost of separating the pairs of McMillan's Theorem 10.5, with A = `depth`.

    One pair is epsilon-private, the other has epsilon `far`, and they differ only in an outcome of probability e^-A.
    `needed` is exact, for the best test; `printed` is the lower bound of the proof.

    Notes
    -----
    Input 0 is the same in both. On input 1 the rare outcome has probability p = e^-A or q = e^-2A, and the best test
    asks whether it was seen: it is right two times in three on both pairs if ((1-p)/(1-q))^r <= 1/2, with a coin where
    it was not. The proof has 2/9 over the divergence of the two.
    """
    private, far = hidden_pairs(depth)
    p, q = float(private.one[0]), float(far.one[0])
    reports, found = audit_pair(far, 0.0, audits, key)
    return Row(
        depth=depth,
        far=far.epsilon,
        needed=math.ceil(math.log(2) / (math.log1p(-q) - math.log1p(-p))),
        printed=2 / 9 / float(stats.entropy(private.one, far.one)),
        audited=reports,
        found=found,
    )


def hidden_pairs(depth: float) -> tuple[Pair, Pair]:
    """The private pair and the far one of that proof."""
    zero, near, hidden = (math.exp(-power) for power in (depth + EPSILON, depth, 2 * depth))
    private, far = ([[share, 1 - share] for share in shares] for shares in ((zero, near), (zero, hidden)))
    return Pair(*private), Pair(*far)


def share(slack: float) -> Row:
    """The cost of random privacy at one slack in the share of bad pairs: pairs of inputs, and votes on each.

    By exact binomial tails; the thesis' alpha/lambda is half the slack.
    """
    half = slack / 2
    tester = RandomPrivacy(UnknownPair(2, EPSILON, DELTA), lambda _: (0, 1), GAMMA, slack)
    printed = math.ceil(math.log(2 / half)) | 1
    return Row(
        slack=slack,
        pairs=tester.size[0],
        corrected=math.log(3) * (8 * GAMMA + 56 * half / 3) / half**2,
        limit=share_limit(gamma=GAMMA, slack=slack),
        printed_votes=printed,
        needed_votes=votes(1 / 3, half / 2),
        left=most_failures(printed, 1 / 3),
        allowed=half / 2,
    )


ONE_WAY = Pair([0.1, 0.9], [0.1 * math.e + 0.21, 0.79 - 0.1 * math.e])
"""Private from the first input to the second, and far from it in the other direction."""
COIN = Pair([0.75, 0.25], [0.25, 0.75])
ONE_WAY_ALPHA = 0.1


def mistakes(runs: int, rng: np.random.Generator) -> Row:
    """How often tests accept, of `runs`, as printed and as implemented here.

    `one_way` is a pair that needs `one_way_delta` in one direction only and must be rejected; `honest` is a device that
    is private and exactly as stated, and must be accepted.
    """
    unknown, known = UnknownPair(2, EPSILON, DELTA, ONE_WAY_ALPHA), KnownPure(COIN, COIN.epsilon, 0.5)
    return Row(
        runs=runs,
        one_way_delta=ONE_WAY.delta(EPSILON),
        one_way_printed=sum(printed_unknown(ONE_WAY, rng) for _ in range(runs)) / runs,
        one_way_here=sum(unknown.test(ONE_WAY, rng).accepts for _ in range(runs)) / runs,
        honest_printed=sum(printed_pure(COIN, COIN, 0.05, rng) for _ in range(runs)) / runs,
        honest_here=sum(known.test(COIN, rng).accepts for _ in range(runs)) / runs,
    )


def printed_unknown(pair: Pair, rng: np.random.Generator) -> bool:
    """Algorithm 4 as printed, at half the gap since its proximity parameter is twice its alpha: one direction only."""
    half = ONE_WAY_ALPHA / 2
    size = int(rng.poisson(max(4 * pair.n, 12) * (1 + math.exp(2 * EPSILON)) / half**2))
    x, y = (pair.counts(database, size, rng) for database in (0, 1))
    return bool(np.maximum(x - math.exp(EPSILON) * y, 0.0).sum() / size < DELTA + half)


def printed_pure(pair: Pair, stated: Pair, alpha: float, rng: np.random.Generator) -> bool:
    """Algorithm 6 as printed: it compares counts with probabilities."""
    beta = float(min(stated.zero.min(), stated.one.min()))
    size = int(rng.poisson(math.log(pair.n) / (alpha**2 * beta**2)))
    x, y = (pair.counts(database, size, rng) for database in (0, 1))
    if float(np.abs(np.log(x) - np.log(y)).max()) > stated.epsilon + 2 * alpha:
        return False
    pairs = ((x, stated.zero), (y, stated.one))
    return all(bool((np.abs(np.log(counts / q)) <= alpha).all()) for counts, q in pairs)
