"""Mistakes about distances between maps, and about bounds on them."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats
from scipy.optimize import linprog

from cloakwork._checks import FloatArray
from cloakwork.accuracy import emd
from cloakwork.physics import HeatLine, Space
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, erratum
from papers.experiment import Run
from papers.rows import Row
from papers.upper_bound import Constants, LineSetting, proof_constants

M = 50
LATE, EARLY = 0.05, 0.001
LIKELY = 0.9  # what is taken here for a high probability


def measures(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """None of them needs chance, or time."""
    del run, key
    yield _transport()
    yield from _constants(LATE, ("C1", "C2", "C3", "C5"))
    yield from _constants(EARLY, ("C2", "C3"))  # the other two are off by about the same
    yield _misfit()
    yield _bend()
    yield _peak()
    yield _ends()
    yield _several()
    yield from _fano()


def _transport() -> Row:
    """e1 + e5 against e1 + e9: with inequalities and one unit to move, the first unit stays where it is."""
    n = 10
    one, other = np.zeros(n), np.zeros(n)
    one[[0, 4]], other[[0, 8]] = 1.0, 1.0
    space = Space.line(n)
    return erratum(
        "Gilbert and McMillan, Definition 1",
        "flows sum to at most p_i and q_j, and to 1 overall",
        "EMD between e1 + e5 and e1 + e9, n = 10",
        (EQUAL, _printed_transport(one, other), emd(one, other, space)),
        "different maps have distance 0",
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


def _constants(T: float, names: tuple[str, ...]) -> Iterator[Row]:
    """The constants of the proof of Theorem 14 as printed, and as they are for one source in the middle."""
    true = _true_constants(T)
    p = M * math.sqrt(T / 2)
    half = M * math.sqrt(T / 8)
    product = p * (p + 1) ** 2 / (6 * M**2)
    printed = {
        "C1": (17 * math.exp(-1 / 32) / 512 / (M * T**3), AT_LEAST, true.C1),
        "C2": (math.exp(-1 / (4 * M**2 * T)) / (2 * math.sqrt(4 * math.pi * T)), AT_MOST, _steepest(T)),
        "C3": (
            product * 7 * math.exp(-1 / 4) / (512 * math.sqrt(4 * math.pi) * T**3.5),
            AT_LEAST,
            true.C3,
        ),
        "C5": (3 * math.exp(-5 / 8) / (64 * math.pi * T**3) * half * (half + 1) / M, AT_LEAST, true.C5),
    }
    for name in names:
        value, promise, found = printed[name]
        yield erratum(
            f"Gilbert and McMillan, Theorem 14, {name}",
            f"{name} {promise} its printed value",
            f"{name} at m = {M}, T = {T:g}",
            (promise, value, found),
            "a bound that uses it is too small",
        )


def _true_constants(T: float) -> Constants:
    """Where a sensor is at the source, which suits the print best: its nearest sensors are then 1/m away."""
    return proof_constants(LineSetting.from_line(HeatLine(n=100, m=M, T=T), np.array([0.5])), 0.0)


def _steepest(T: float) -> float:
    """Largest |g'| over the sensors that the proof uses, which lie within sqrt(T/2) of the source."""
    at = np.linspace(0.0, math.sqrt(T / 2), 2001)
    return float((at / (2 * T) * np.exp(-(at**2) / (4 * T)) / math.sqrt(4 * math.pi * T)).max())


def _misfit() -> Row:
    """What B bounds, apart from other sources: sqrt(m) ||y - y^|| over sigma, y^ within the radius of y + z."""
    longest = math.sqrt(float(stats.chi2.ppf(LIKELY, M)))
    return erratum(
        "Gilbert and McMillan, Theorem 14, B",
        "sqrt(m) ||y - y^|| <= 2 sigma m with high probability",
        f"sqrt(m) (radius + ||z||)/sigma that holds in {100 * LIKELY:.0f} % of frames, m = {M}, radius sigma sqrt(m)",
        (AT_MOST, 2.0 * M, math.sqrt(M) * (math.sqrt(M) + longest)),
        f"2 sigma m holds in {100 * float(stats.chi2.cdf(M, M)):.0f} %; we read high probability as {LIKELY:g}",
    )


def _bend() -> Row:
    """-2T g''(z)/g(z) by differences, at z = sqrt(2T), where g turns."""
    T, step = 0.05, 1e-4
    z = math.sqrt(2 * T)
    g = [math.exp(-((z + k * step) ** 2) / (4 * T)) for k in (-1, 0, 1)]
    return erratum(
        "Gilbert and McMillan, Lemma 20",
        "g'' has the factor 1 - z^2/(4T)",
        "-2T g''/g at z = sqrt(2T)",
        (EQUAL, 1 - z**2 / (4 * T), round(-2 * T * (g[0] - 2 * g[1] + g[2]) / step**2 / g[1], 5) + 0.0),
        "correct is 1 - z^2/(2T): the printed curvature is too large",
    )


def _peak() -> Row:
    """The sum of slope times height of two sensors one spacing away from the source, at each side."""
    T, d = LATE, 1 / M
    height = math.exp(-(d**2) / (4 * T)) / math.sqrt(4 * math.pi * T)
    return erratum(
        "Gilbert and McMillan, Theorem 14, proof",
        "W_ij(x_i) <= (|s_j+p - x_i| + |x_i - s_j|)/(16 pi T^2)",
        f"W_ij(x_i) for sensors {d:g} to the left and right, T = {T:g}",
        (AT_MOST, 2 * d / (16 * math.pi * T**2), 2 * d / (2 * T) * height**2),
        "the constant is 8 pi",
    )


def _ends() -> Row:
    T, place = 0.05, 0.05
    setting = LineSetting.from_line(HeatLine(n=100, m=M, T=T), np.array([place]))
    return erratum(
        "Gilbert and McMillan, Theorem 14",
        "holds for sources anywhere on the line",
        f"sensors on one side of a source at {place:g}, T = {T:g}: needed by the proof, and present",
        (AT_LEAST, setting.pairs, setting.sensors_on_each_side),
        "sources near the ends are not covered",
    )


def _several() -> Row:
    """Several sources, each found d away: the first term of (5) against what it bounds."""
    n, k, moved = 100, 4, 2
    truth, found = np.zeros(n), np.zeros(n)
    at = np.arange(1, k + 1) * n // (k + 1)
    truth[at], found[at + moved] = 1.0, 1.0
    squares = k * (moved / n) ** 2
    return erratum(
        "Gilbert and McMillan, Theorem 14, (5)",
        "sum f |x - l| / ||f|| <= sqrt(sum f (x - l)^2) / k",
        f"mean distance of {k} sources that are each found {moved / n:g} away",
        (AT_MOST, math.sqrt(squares) / k, emd(truth, found, Space.line(n))),
        "Cauchy-Schwarz gives 1/sqrt(k), not 1/k",
    )


def _fano() -> Iterator[Row]:
    """The four sources of the proof of Theorem 15, a apart; 20 steps to a."""
    steps = 20
    n = 4 * steps
    middle, a = n // 2, steps / n
    placed = (
        {middle: 1.0},
        {middle - steps // 2: 0.5, middle + steps // 2: 0.5},
        {middle - steps: 0.25, middle: 0.5, middle + steps: 0.25},
        {middle: 0.5, middle + steps: 0.5},
    )
    maps = np.zeros((4, n))
    for row, where in zip(maps, placed, strict=True):
        row[list(where)] = list(where.values())
    space = Space.line(n)
    pairs = [emd(maps[i], maps[j], space) / a for i in range(4) for j in range(i)]
    yield erratum(
        "Gilbert and McMillan, Theorem 15, proof",
        "the four vectors are at distance a from each other",
        "distance of two of them in units of a, the same for all six pairs",
        (EQUAL, 1.0, max(pairs)),
        "they are a/2 apart",
    )
    likely = 1 - ((max(pairs) ** 2) / 2 + math.log(2)) / math.log(4)  # d_KL is 1/2 at a distance of a
    yield erratum(
        "Gilbert and McMillan, Theorem 15, proof",
        "inf sup E[EMD] >= 3/4 a",
        "what Fano's inequality gives for these four vectors, in units of a",
        (EQUAL, 0.75, min(pairs) / 2 * likely),
        "the rate of the theorem stands, with a smaller constant",
    )
    yield erratum(
        "Gilbert and McMillan, Theorem 15, proof",
        "1 - (d_KL + 1)/log M >= 3/4",
        "1 - (3/2)/2",
        (EQUAL, 0.75, 1 - (1 / 2 + 1) / math.log2(4)),
        "M is 4 and its logarithm to base 2 is 2; the constant is wrong",
    )
