"""Mistakes about how far apart maps are, and about bounds on that."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats
from scipy.optimize import linprog

from cloakwork._checks import FloatArray
from cloakwork.accuracy import Constants, LineSetting, emd, proof_constants
from cloakwork.physics import HeatLine, Space
from papers.errata.erratum import Erratum, Part, Promise

PART = Part.MEASURES
M = 50
LATE, EARLY = 0.05, 0.001
LIKELY = 0.9  # what is taken here for a high probability


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """None of them needs chance, or time."""
    del quick, key
    yield _transport()
    yield from _constants(LATE, ("C1", "C2", "C3", "C5"))
    yield from _constants(EARLY, ("C2", "C3"))  # the other two are off by about the same
    yield _misfit()
    yield _bend()
    yield _ends()
    yield _several()
    yield from _fano()


def _transport() -> Erratum:
    """e1 + e5 against e1 + e9: with inequalities and one unit to move, the first unit stays where it is."""
    n = 10
    one, other = np.zeros(n), np.zeros(n)
    one[[0, 4]], other[[0, 8]] = 1.0, 1.0
    space = Space.line(n)
    return Erratum(
        PART,
        "Gilbert and McMillan, Definition 1",
        "flows sum to at most p_i and q_j, and to 1 in all",
        "EMD between e1 + e5 and e1 + e9, n = 10",
        Promise.EQUAL,
        _printed_transport(one, other),
        emd(one, other, space),
        "different maps at distance 0",
    )


def _printed_transport(one: FloatArray, other: FloatArray) -> float:
    n = len(one)
    along = np.arange(1, n + 1) / n
    costs = np.abs(along[:, None] - along).ravel()
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    found = linprog(
        costs, A_ub=np.vstack([rows, columns]), b_ub=np.concatenate([one, other]), A_eq=np.ones((1, n * n)), b_eq=[1.0]
    )
    return float(found.fun or 0.0)


def _constants(T: float, names: tuple[str, ...]) -> Iterator[Erratum]:
    """The constants of the proof of Theorem 14 as printed, and as they are for one source in the middle."""
    true = _true_constants(T)
    p = M * math.sqrt(T / 2)
    half = M * math.sqrt(T / 8)
    product = p * (p + 1) ** 2 / (6 * M**2)
    printed = {
        "C1": (17 * math.exp(-1 / 32) / 512 / (M * T**3), Promise.AT_LEAST, true.C1),
        "C2": (math.exp(-1 / (4 * M**2 * T)) / (2 * math.sqrt(4 * math.pi * T)), Promise.AT_MOST, _steepest(T)),
        "C3": (
            product * 7 * math.exp(-1 / 4) / (512 * math.sqrt(4 * math.pi) * T**3.5),
            Promise.AT_LEAST,
            true.C3,
        ),
        "C5": (3 * math.exp(-5 / 8) / (64 * math.pi * T**3) * half * (half + 1) / M, Promise.AT_LEAST, true.C5),
    }
    for name in names:
        value, promise, found = printed[name]
        yield Erratum(
            PART,
            f"Gilbert and McMillan, Theorem 14, {name}",
            f"{name} {promise} its printed value",
            f"{name} at m = {M}, T = {T:g}",
            promise,
            value,
            found,
            "a bound made with it is too small",
        )


def _true_constants(T: float) -> Constants:
    """Where a sensor is at the source, which suits the print best: its nearest sensors are then 1/m away."""
    return proof_constants(LineSetting.from_line(HeatLine(n=100, m=M, T=T), np.array([0.5])), 0.0)


def _steepest(T: float) -> float:
    """Largest |g'| over the sensors that the proof uses, which lie within sqrt(T/2) of the source."""
    at = np.linspace(0.0, math.sqrt(T / 2), 2001)
    return float((at / (2 * T) * np.exp(-(at**2) / (4 * T)) / math.sqrt(4 * math.pi * T)).max())


def _misfit() -> Erratum:
    """What B bounds, apart from other sources: sqrt(m) ||y - y^|| over sigma, y^ within the radius of y + z."""
    longest = math.sqrt(float(stats.chi2.ppf(LIKELY, M)))
    return Erratum(
        PART,
        "Gilbert and McMillan, Theorem 14, B",
        "sqrt(m) ||y - y^|| <= 2 sigma m with high probability",
        f"sqrt(m) (radius + ||z||)/sigma that is kept in {100 * LIKELY:.0f} % of frames, m = {M}, radius sigma sqrt(m)",
        Promise.AT_MOST,
        2.0 * M,
        math.sqrt(M) * (math.sqrt(M) + longest),
        f"2 sigma m holds in {100 * float(stats.chi2.cdf(M, M)):.0f} %; high probability is read as {LIKELY:g} here",
    )


def _bend() -> Erratum:
    """-2T g''(z)/g(z) by differences, at z = sqrt(2T), where g turns."""
    T, step = 0.05, 1e-4
    z = math.sqrt(2 * T)
    g = [math.exp(-((z + k * step) ** 2) / (4 * T)) for k in (-1, 0, 1)]
    return Erratum(
        PART,
        "Gilbert and McMillan, Lemma 20",
        "g'' has the factor 1 - z^2/(4T)",
        "-2T g''/g at z = sqrt(2T)",
        Promise.EQUAL,
        1 - z**2 / (4 * T),
        round(-2 * T * (g[0] - 2 * g[1] + g[2]) / step**2 / g[1], 5) + 0.0,
        "it is 1 - z^2/(2T): the printed curvature is too large",
    )


def _ends() -> Erratum:
    T, place = 0.05, 0.05
    setting = LineSetting.from_line(HeatLine(n=100, m=M, T=T), np.array([place]))
    return Erratum(
        PART,
        "Gilbert and McMillan, Theorem 14",
        "holds for sources anywhere on the line",
        f"sensors on one side of a source at {place:g}, T = {T:g}: needed by the proof, there",
        Promise.AT_LEAST,
        setting.pairs,
        setting.sensors_on_each_side,
        "sources near the ends are not covered",
    )


def _several() -> Erratum:
    """Several sources, each found d away: the first term of (5) against what it bounds."""
    n, k, moved = 100, 4, 2
    truth, found = np.zeros(n), np.zeros(n)
    at = np.arange(1, k + 1) * n // (k + 1)
    truth[at], found[at + moved] = 1.0, 1.0
    squares = k * (moved / n) ** 2
    return Erratum(
        PART,
        "Gilbert and McMillan, Theorem 14, (5)",
        "sum f |x - l| / ||f|| <= sqrt(sum f (x - l)^2) / k",
        f"mean distance of {k} sources, each found {moved / n:g} away",
        Promise.AT_MOST,
        math.sqrt(squares) / k,
        emd(truth, found, Space.line(n)),
        "1/sqrt(k) by Cauchy and Schwarz, where 1/k is printed",
    )


def _fano() -> Iterator[Erratum]:
    """The four sources of the proof of Theorem 15, a apart; 20 steps to a."""
    steps = 20
    n = 4 * steps
    middle, a = n // 2, steps / n
    placed = (
        {middle: 1.0},
        {middle - steps // 2: 0.5, middle + steps // 2: 0.5},
        {middle - steps: 0.25, middle: 0.5, middle + steps: 0.25},
        {middle - steps: 0.5, middle + steps: 0.5},
    )
    maps = np.zeros((4, n))
    for row, where in zip(maps, placed, strict=True):
        row[list(where)] = list(where.values())
    space = Space.line(n)
    pairs = [emd(maps[i], maps[j], space) / a for i in range(4) for j in range(i)]
    yield Erratum(
        PART,
        "Gilbert and McMillan, Theorem 15, proof",
        "the four vectors are at distance a from each other",
        f"least distance of two, in a ({sum(one < 0.999 for one in pairs)} of 6 pairs are nearer than a)",
        Promise.EQUAL,
        1.0,
        min(pairs),
        "the packing number is not 4",
    )
    yield Erratum(
        PART,
        "Gilbert and McMillan, Theorem 15, proof",
        "1 - (d_KL + 1)/log M >= 3/4",
        "1 - (3/2)/2",
        Promise.EQUAL,
        0.75,
        1 - (1 / 2 + 1) / math.log2(4),
        "the constant, and with the distances the step, does not hold",
    )
