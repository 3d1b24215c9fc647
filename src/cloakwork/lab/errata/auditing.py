"""Mistakes about testing a privacy claim."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from cloakwork._checks import IntArray
from cloakwork.auditing.testers import Pair, random_distance
from cloakwork.lab.errata.erratum import Erratum, Part, Promise, share_of
from cloakwork.lab.experiment import stream

PART = Part.AUDITING
TRIES, QUICK_TRIES = 300, 60
RIGHT = 2 / 3  # how often a tester has to be right


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """Testers are run as printed; what proofs say of two distributions is worked out."""
    tries = QUICK_TRIES if quick else TRIES
    yield _table()
    yield _one_direction(tries, stream(*key, 0))
    yield from _sizes()
    yield _counts(tries, stream(*key, 1))
    yield _exponents()
    yield _votes()
    yield from _pairs()


def _table() -> Erratum:
    """A mechanism that is off by 1 in epsilon on every pair of inputs, claimed with gamma = 0, lambda = 1.

    Any (epsilon', gamma') that it meets: with epsilon' = epsilon + 1 and gamma' = gamma the second term is 0.
    """
    met = [(excess, share) for excess in (0.0, 0.5, 1.0) for share in (0.0, 1.0) if excess >= 1.0 or share >= 1.0]
    return Erratum(
        PART,
        "McMillan, Table 9.2",
        "the distance of random privacy is min(|eps - eps'|, lambda |gamma - gamma'|)",
        "distance of a mechanism that misses epsilon by 1 on every pair",
        Promise.EQUAL,
        min(min(excess, share) for excess, share in met),
        random_distance([1.0], [1.0], gamma=0.0, scale=1.0),
        "with min nothing is ever far, and every tester may accept",
    )


def _counted(rng: np.random.Generator, pair: Pair, mean: float) -> tuple[IntArray, IntArray, int]:
    """One Poisson number of answers of each input, as printed."""
    size = int(rng.poisson(mean))
    return pair.counts(0, size, rng), pair.counts(1, size, rng), size


def _one_direction(tries: int, rng: np.random.Generator) -> Erratum:
    """Algorithm 4 on a pair that is private one way only."""
    leaky, epsilon, delta, alpha = Pair([0.1, 0.9], [0.48, 0.52]), 1.0, 0.05, 0.05
    mean = max(4 * leaky.n, 12) * (1 + math.exp(2 * epsilon)) / alpha**2
    rejected = 0
    for _ in range(tries):
        x, y, size = _counted(rng, leaky, mean)
        rejected += float(np.maximum(x - math.exp(epsilon) * y, 0).sum()) / size >= delta + alpha
    share, error = share_of(rejected, tries)
    return Erratum(
        PART,
        "McMillan, Algorithm 4",
        "rejects what is 2 alpha from (epsilon, delta)",
        f"how often it rejects delta = {leaky.delta(epsilon):.2f} where {delta:g} is claimed",
        Promise.AT_LEAST,
        RIGHT,
        share,
        "it tests one direction of two",
        error,
    )


def _sizes() -> Iterator[Erratum]:
    """Numbers of queries: printed, proved and sufficient."""
    n, epsilon, alpha = 100, 1.0, 0.1
    e = math.exp(2 * epsilon)
    yield Erratum(
        PART,
        "McMillan, Theorem 10.8",
        "4 n (1 + e^(2 eps))/alpha^2 queries, with a proof",
        f"queries that the proof ends with, n = {n}, epsilon = {epsilon:g}, alpha = {alpha:g}",
        Promise.EQUAL,
        4 * n * (1 + e) / alpha**2,
        4 * n * (1 + e) ** 2 / alpha**2,
        f"max(n, 24)(1 + e^(2 eps))/alpha^2 = {max(n, 24) * (1 + e) / alpha**2:.3g} suffice",
    )
    yield Erratum(
        PART,
        "McMillan, Proposition 10.10",
        "Algorithm 5 has proximity parameter alpha",
        f"proximity that the proof gives with an identity tester at alpha = {alpha:g}",
        Promise.EQUAL,
        alpha,
        (1 + math.exp(epsilon)) * alpha,
        "identity has to be tested at alpha/(1 + e^eps)",
    )
    outcomes, beta, near = 10, 0.02, 0.2
    yield Erratum(
        PART,
        "McMillan, Theorem 10.11",
        "ln n/(alpha^2 beta^2) queries",
        f"queries that suffice, n = {outcomes}, beta = {beta:g}, alpha = {near:g}",
        Promise.AT_MOST,
        math.log(outcomes) / (near * beta) ** 2,
        3 * math.log(12 * outcomes) / ((1 - math.exp(-near)) ** 2 * beta),
        "1/beta is enough, 1/beta^2 is printed",
    )


def _counts(tries: int, rng: np.random.Generator) -> Erratum:
    """Algorithm 6 on a mechanism that is what it says: counts are compared with probabilities."""
    honest, epsilon, alpha = Pair([0.5, 0.5], [0.4, 0.6]), 0.5, 0.2
    mean = math.log(honest.n) / (alpha * 0.4) ** 2
    accepted = 0
    for _ in range(tries):
        x, y, _ = _counted(rng, honest, mean)
        near = [np.abs(np.log(np.maximum(got, 1e-9) / said)).max() for got, said in ((x, honest.zero), (y, honest.one))]
        spread = np.abs(np.log(np.maximum(x, 1e-9) / np.maximum(y, 1e-9))).max()
        accepted += bool(spread <= epsilon + 2 * alpha and max(near) <= alpha)
    share, error = share_of(accepted, tries)
    return Erratum(
        PART,
        "McMillan, Algorithm 6",
        "accepts an honest mechanism: e^-alpha <= x_i/(Q_0)_i <= e^alpha",
        "how often it accepts a pair that is exactly what it says",
        Promise.AT_LEAST,
        RIGHT,
        share,
        "x_i is a count: it has to be a frequency",
        error,
    )


def _exponents() -> Erratum:
    """P_0/P_1 as a product of five ratios: each with its exponent in alpha."""
    factors = {"P0/Q0": 4, "Q0/x": 1, "x/y": 2, "y/Q1": 1, "Q1/P1": 4}
    return Erratum(
        PART,
        "McMillan, Theorem 10.11",
        "proximity parameter 10 alpha",
        "alphas in e^(4 a + a + eps + 2 a + a + 4 a)",
        Promise.EQUAL,
        10.0,
        float(sum(factors.values())),
        "the printed exponents add to 12 alpha",
    )


def _votes() -> Erratum:
    """The majority of tests that are each right two times in three."""
    ratio = 1000.0  # 2 lambda / alpha
    printed, enough = math.ceil(math.log(ratio)), math.ceil(18 * math.log(ratio)) | 1
    wrong = float(stats.binom.sf(printed // 2, printed, 1 - RIGHT))
    return Erratum(
        PART,
        "McMillan, Algorithm 3",
        "log(2 lambda/alpha) repetitions make a vote wrong with alpha/(2 lambda)",
        f"how often a vote of {printed} is wrong, 2 lambda/alpha = {ratio:g}",
        Promise.AT_MOST,
        1 / ratio,
        wrong,
        f"{enough} repetitions do: {float(stats.binom.sf(enough // 2, enough, 1 - RIGHT)):.1e}",
    )


def _pairs() -> Iterator[Erratum]:
    """Pairs of distributions in proofs, with the parameters that they are said to have."""
    epsilon, delta = 0.1, 0.01
    p = math.exp(epsilon) / 2 + delta
    yield Erratum(
        PART,
        "McMillan, Theorem 10.7, proof",
        "uniform against e^eps/2 + delta is (epsilon, delta)-private",
        f"delta of the first pair at epsilon = {epsilon:g}",
        Promise.AT_MOST,
        delta,
        Pair([0.5, 0.5], [p, 1 - p]).delta(epsilon),
        "the other direction was forgotten",
    )
    a = 0.1
    yield Erratum(
        PART,
        "McMillan, Theorem 10.7, proof",
        "delta of the second pair is at least 2a",
        f"its delta, a = {a:g}",
        Promise.AT_LEAST,
        2 * a,
        Pair([a, 1 - a, 0.0], [0.0, 1 - a, a]).delta(epsilon),
        "the bound that follows has no proof",
    )
    epsilon, beta = 0.5, 0.1
    e = math.exp(epsilon)
    yield Erratum(
        PART,
        "McMillan, Theorem 10.12, proof",
        "(Q_0, Q_1) is epsilon-private",
        f"its epsilon, where {epsilon:g} is said",
        Promise.AT_MOST,
        epsilon,
        Pair([beta, beta, 1 - 2 * beta], [e * beta, (2 - e) * beta, 1 - 2 * beta]).epsilon,
        "the bound that follows has no proof",
    )
    large, epsilon = 5.0, 0.5
    zero = math.exp(-large - epsilon)
    first, second = Pair([zero, 1 - zero], [math.exp(-large), 1 - math.exp(-large)]), math.exp(-2 * large)
    yield Erratum(
        PART,
        "McMillan, Theorem 10.5, proof",
        "D(P_0|Q_0) = e^-A ln e^A + ..., with P_0 = Q_0",
        f"D(P_0|Q_0) at A = {large:g}",
        Promise.EQUAL,
        float(stats.entropy(first.one, [second, 1 - second])),
        float(stats.entropy(first.zero, first.zero)),
        "P_1 and Q_1 are meant; that nothing finite suffices stands",
    )
