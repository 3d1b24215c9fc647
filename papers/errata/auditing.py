"""Mistakes about tests of a privacy claim."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from cloakwork.auditing import Pair
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, erratum
from papers.experiment import Run, stream
from papers.query_limits import random_distance
from papers.rows import Mean, Row

TRIES, QUICK_TRIES, PROBE_TRIES = 300, 60, 4
RIGHT = 2 / 3  # how often a tester has to be right


def auditing(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """What tests do as printed is run or worked out; what proofs say of two distributions is worked out."""
    yield _bernstein()
    yield _table()
    yield from _poisson()
    yield from _sizes()
    yield from _ratios(run.choose(TRIES, QUICK_TRIES, PROBE_TRIES), stream(*key, 0))
    yield _exponents()
    yield _pairs_of_inputs()
    yield from _pairs()
    yield _queries()
    yield _neighbourhood()


def _bernstein() -> Row:
    """X is 1 with a small probability and -1 otherwise, so X - EX reaches almost 2."""
    n, p, many = 10_000, 0.003, 150
    t, variance = 2 * many / n - 2 * p, 4 * p * (1 - p)
    return erratum(
        "McMillan, Lemma 1.3",
        "P(mean - E mean >= t) <= e^(-n t^2/(2 sigma^2 + 2 c t/3)) if |X| <= c",
        f"logarithm of the probability of {many} or more ones among {n:,}, each with probability {p:g}, otherwise -1",
        (AT_MOST, -n * t**2 / (2 * variance + 2 * t / 3), float(stats.binom.logsf(many - 1, n, p))),
        "it needs |X - EX| <= c",
    )


def _table() -> Row:
    """A mechanism that is off by 1 in epsilon on every pair of inputs, claimed with gamma = 0, lambda = 1.

    Any (epsilon', gamma') that it meets: with epsilon' = epsilon + 1 and gamma' = gamma the second term is 0.
    """
    met = [(excess, share) for excess in (0.0, 0.5, 1.0) for share in (0.0, 1.0) if excess >= 1.0 or share >= 1.0]
    return erratum(
        "McMillan, Table 9.2",
        "the distance of random privacy is min(|eps - eps'|, lambda |gamma - gamma'|)",
        "distance of a mechanism that misses epsilon by 1 on every pair",
        (EQUAL, min(min(excess, share) for excess, share in met), random_distance([1.0], [1.0], gamma=0.0, scale=1.0)),
        "with min no mechanism is ever far, and a tester may accept everything",
    )


def _poisson() -> Iterator[Row]:
    """Algorithm 4 draws one number r for both inputs, divides by it, and sums up to it."""
    pair, epsilon, alpha = Pair([0.1, 0.9], [0.48, 0.52]), 1.0, 0.05
    mean = max(4 * pair.n, 12) * (1 + math.exp(2 * epsilon)) / alpha**2
    where = "McMillan, Algorithm 4"
    yield erratum(
        where,
        "with one Poisson number r for both inputs all counts are independent",
        "correlation of x_2 and y_2, probabilities 0.9 and 0.52",
        (EQUAL, 0.0, math.sqrt(float(pair.zero[1] * pair.one[1]))),
        "each input needs its own number, as in the text before it",
    )
    yield erratum(
        where,
        "the z_i, counts over r, are independent",
        f"correlation of x_1/r and x_2/r with {pair.n} outcomes",
        (EQUAL, 0.0, -math.sqrt(float(np.prod(pair.zero) / np.prod(1 - pair.zero)))),
        "counts over r sum to 1: they must be divided by the mean of r",
    )
    yield erratum(
        where,
        "z sums max(0, z_i) for i from 1 to r",
        f"mean number of terms, {pair.n} outcomes, epsilon = {epsilon:g}, alpha = {alpha:g}",
        (EQUAL, mean, float(pair.n)),
        "the sum is over the n outcomes",
    )


def _sizes() -> Iterator[Row]:
    """Numbers of queries: printed, proved and sufficient."""
    n, epsilon, alpha = 100, 1.0, 0.1
    e = math.exp(2 * epsilon)
    yield erratum(
        "McMillan, Theorem 10.8",
        "4 n (1 + e^(2 eps))/alpha^2 queries, with a proof",
        f"queries at the end of the proof, n = {n}, epsilon = {epsilon:g}, alpha = {alpha:g}",
        (EQUAL, 4 * n * (1 + e) / alpha**2, 4 * n * (1 + e) ** 2 / alpha**2),
        f"max(n, 24)(1 + e^(2 eps))/alpha^2 = {max(n, 24) * (1 + e) / alpha**2:.3g} suffice",
    )
    yield erratum(
        "McMillan, Proposition 10.10",
        "Algorithm 5 has proximity parameter alpha",
        f"proximity that the proof gives with an identity tester at alpha = {alpha:g}",
        (EQUAL, alpha, (1 + math.exp(epsilon)) * alpha),
        "identity must be tested at alpha/(1 + e^eps)",
    )


def _ratios(tries: int, rng: np.random.Generator) -> Iterator[Row]:
    """Algorithm 6 with frequencies, where an outcome is stated never to occur."""
    stated, epsilon, alpha = Pair([0.1, 0.9, 0.0], [0.1, 0.9, 0.0]), 0.5, 0.2
    where, leaks = "McMillan, Algorithm 6", 0.05
    yield erratum(
        where,
        "x_i/y_i and x_i/(Q_0)_i are compared for all i",
        f"defined ratios, of {stated.n} outcomes of which one never occurs",
        (EQUAL, float(stated.n), float((stated.zero > 0).sum())),
        "0/0 needs a definition",
    )
    queries = math.ceil(math.log(stated.n) / (alpha * float(stated.zero[0])) ** 2)
    device = Pair([0.1 * (1 - leaks), 0.9 * (1 - leaks), leaks], stated.one)
    accepted = sum(_passes(device, stated, queries, epsilon, alpha, rng) for _ in range(tries))
    yield erratum(
        where,
        "rejects what is not epsilon-private (with ratios where they are defined)",
        f"how often it accepts a device that reveals input 0 with probability {leaks:g}, {queries} queries",
        (AT_MOST, 1 - RIGHT, Mean.share(accepted / tries, tries)),
        "probability outside the stated outcomes must be rejected",
    )


def _passes(device: Pair, stated: Pair, queries: int, epsilon: float, alpha: float, rng: np.random.Generator) -> bool:
    """One test with frequencies in the place of counts, which looks at the stated outcomes alone."""
    used = stated.zero > 0
    x, y = (np.maximum(device.counts(k, queries, rng)[used], 1e-9) / queries for k in (0, 1))
    misfits = [np.abs(np.log(got / said[used])).max() for got, said in ((x, stated.zero), (y, stated.one))]
    return bool(np.abs(np.log(x / y)).max() <= epsilon + 2 * alpha and max(misfits) <= alpha)


def _exponents() -> Row:
    """P_0/P_1 as a product of five ratios: each with its exponent in alpha."""
    factors = {"P0/Q0": 4, "Q0/x": 1, "x/y": 2, "y/Q1": 1, "Q1/P1": 4}
    return erratum(
        "McMillan, Theorem 10.11",
        "proximity parameter 10 alpha",
        "multiples of alpha in e^(4 a + a + eps + 2 a + a + 4 a)",
        (EQUAL, 10.0, float(sum(factors.values()))),
        "the printed exponents add up to 12 alpha",
    )


def _pairs_of_inputs() -> Row:
    """Algorithm 3 on a mechanism that has just the share of bad pairs that it may, its votes as good as promised.

    The proof's exponent has the square of the mean where Bernstein has the variance, and alpha/lambda where it has
    half of that.
    """
    gamma, ratio = 0.05, 0.001  # ratio: alpha/lambda
    mean = gamma + ratio / 2
    printed = math.ceil(math.log(3) * (2 * mean**2 + 2 * ratio) / ratio**2)
    enough = math.ceil(math.log(3) * (8 * gamma + 56 * ratio / 3) / ratio**2)
    wrong = [float(stats.binom.sf(math.floor((gamma + ratio) * m), m, mean)) for m in (printed, enough)]
    return erratum(
        "McMillan, Theorem 10.3, proof",
        "e^(-m (alpha/lambda)^2 / (2 (alpha/2 lambda + gamma)^2 + 2 alpha/lambda)) <= 1/3",
        f"how often {printed:,} pairs of inputs wrongly reject, gamma = {gamma:g}, alpha/lambda = {ratio:g}",
        (AT_MOST, 1 - RIGHT, wrong[0]),
        f"{enough:,} pairs suffice: {wrong[1]:.2g}",
    )


def _pairs() -> Iterator[Row]:
    """Pairs of distributions in proofs, with the parameters that they are said to have."""
    epsilon, delta = 0.1, 0.01
    p = math.exp(epsilon) / 2 + delta
    yield erratum(
        "McMillan, Theorem 10.7, proof",
        "uniform against e^eps/2 + delta is (epsilon, delta)-private",
        f"delta of the first pair at epsilon = {epsilon:g}",
        (AT_MOST, delta, Pair([0.5, 0.5], [p, 1 - p]).delta(epsilon)),
        "the other direction is missing",
    )
    a = 0.1
    yield erratum(
        "McMillan, Theorem 10.7, proof",
        "delta of the second pair is at least 2a",
        f"its delta, a = {a:g}",
        (AT_LEAST, 2 * a, Pair([a, 1 - a, 0.0], [0.0, 1 - a, a]).delta(epsilon)),
        "the bound that follows has no proof",
    )
    epsilon, beta = 0.5, 0.1
    e = math.exp(epsilon)
    yield erratum(
        "McMillan, Theorem 10.12, proof",
        "(Q_0, Q_1) is epsilon-private",
        f"its epsilon, where {epsilon:g} is stated",
        (AT_MOST, epsilon, Pair([beta, beta, 1 - 2 * beta], [e * beta, (2 - e) * beta, 1 - 2 * beta]).epsilon),
        "the bound that follows has no proof",
    )
    large, epsilon = 5.0, 0.5
    zero = math.exp(-large - epsilon)
    first, second = Pair([zero, 1 - zero], [math.exp(-large), 1 - math.exp(-large)]), math.exp(-2 * large)
    yield erratum(
        "McMillan, Theorem 10.5, proof",
        "D(P_0|Q_0) = e^-A ln e^A + ..., with P_0 = Q_0",
        f"D(P_0|Q_0) at A = {large:g}",
        (EQUAL, float(stats.entropy(first.one, [second, 1 - second])), float(stats.entropy(first.zero, first.zero))),
        "correct with P_1 and Q_1; the conclusion stands",
    )


def _queries() -> Row:
    """Two coins: a test of 2r throws that is right two times in three, and the distance of r throws."""
    fair, other, r = 0.5, 0.62, 7

    def apart(throws: int) -> float:
        heads = np.arange(throws + 1)
        return float(np.abs(stats.binom.pmf(heads, throws, fair) - stats.binom.pmf(heads, throws, other)).sum() / 2)

    return erratum(
        "McMillan, Corollary 3.4",
        "a tester with 2r queries needs TV(P^r, Q^r) >= 1/3",
        f"TV of {r} throws of coins with {fair:g} and {other:g}",
        (AT_LEAST, 1 / 3, apart(r)),
        f"r queries are meant: {2 * r} throws have {apart(2 * r):.3f}, and the best test of them is right "
        f"{100 * _balanced(fair, other, 2 * r):.1f} % of the time with either coin",
    )


def _balanced(p: float, q: float, throws: int) -> float:
    """How often the best test is right with either of two coins, p < q, when both count the same."""
    heads = np.arange(throws + 1)
    false, missed = stats.binom.sf(heads, throws, p), stats.binom.cdf(heads, throws, q)  # "q" above `heads` heads
    cut = int(np.argmax(missed >= false))
    # a coin decides between the cut and the one before it, so that both errors are equal
    gaps = missed - false
    share = gaps[cut] / (gaps[cut] - gaps[cut - 1])
    return 1 - float(share * missed[cut - 1] + (1 - share) * missed[cut])


def _neighbourhood() -> Row:
    """The largest delta within alpha of a pair: an event gains at most alpha, and loses at most all that it has."""
    epsilon, alpha, pair = 1.0, 0.1, Pair([0.1, 0.9], [0.0, 1.0])
    events = [np.array(event) for event in ((1, 0), (0, 1))]
    largest = max(
        min(1.0, float(one @ event) + alpha) - math.exp(epsilon) * max(0.0, float(other @ event) - alpha)
        for event in events
        for one, other in ((pair.zero, pair.one), (pair.one, pair.zero))
    )
    return erratum(
        "McMillan, Lemma 10.6",
        "delta + (1 + e^eps) alpha is tight if alpha <= (1 - delta)/(1 + e^eps)",
        f"largest delta within alpha = {alpha:g} of (0.1, 0.9) and (0, 1), epsilon = {epsilon:g}",
        (EQUAL, pair.delta(epsilon) + (1 + math.exp(epsilon)) * alpha, largest),
        "its proof moves one of the two and reaches delta + alpha; the upper bound holds",
    )
