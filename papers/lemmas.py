"""Lemmas and theorems that the papers borrow or state in passing, each tried on one case: promised, and true."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.recovery import Bregman, recover
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, erratum
from papers.rows import Row
from papers.trials import Distances, Setting

PAPER = "Gilbert and McMillan"
MIDDLE = 49  # the place 0.5
ITERATIONS = 12


def lemmas(pairs: int, frames: int, rng: np.random.Generator) -> Iterator[Row]:
    """Try all of them, on random pairs of maps and frames of readings where chance is involved."""
    yield _tail()
    yield from _sparse_recovery()
    yield _transport(pairs, rng)
    yield _near_optimal()
    yield _divergence(frames, rng)
    yield _blindness()


def _tail() -> Row:
    m, t = 50, 1.0
    return erratum(
        f"{PAPER}, Lemma 10",
        "||z||^2 exceeds sigma^2 (m + 2 sqrt(m t) + 2 t) with probability e^-t at most",
        f"that probability, m = {m}, t = {t:g}",
        (AT_MOST, math.exp(-t), float(stats.chi2.sf(m + 2 * math.sqrt(m * t) + 2 * t, m))),
        "our radius is the quantile itself",
    )


def _sparse_recovery() -> Iterator[Row]:
    """The two conditions on the papers' line; with columns of norm 1 the isometry constant of order 2 is coherence."""
    matrix = Setting().line.matrix
    columns = matrix / np.linalg.norm(matrix, axis=0)
    coherence = float(np.triu(np.abs(columns.T @ columns), 1).max())
    yield erratum(
        f"{PAPER}, Theorem 11 (Tropp)",
        "up to 1/(3 coherence) sources are found by R",
        f"sources that this allows on the line, coherence {coherence:.6f}",
        (AT_LEAST, 1.0, 1 / (3 * coherence)),
        "it covers no source at all, as the papers say",
        assumed=True,
    )
    yield erratum(
        f"{PAPER}, Theorem 12 (Candes)",
        "R is close in l2 if the isometry constant of order 2k is below sqrt 2 - 1",
        "isometry constant of order 2 on the line",
        (AT_MOST, math.sqrt(2) - 1, coherence),
        "it covers no source at all, as the papers say",
        assumed=True,
    )


def _transport(pairs: int, rng: np.random.Generator) -> Row:
    """Maps of up to four places with random weights."""
    line = Setting().line
    maps = np.zeros((2, pairs, line.places))
    for one in maps.reshape(-1, line.places):
        one[rng.choice(line.places, 4, replace=False)] = rng.dirichlet(np.full(4, 0.5))
    shifts = np.linalg.norm(line.apply(maps[0] - maps[1]), axis=1)
    return erratum(
        f"{PAPER}, Lemma 16",
        "||A f - A f'|| is at most a constant times EMD(f, f')",
        f"largest ratio over {pairs:,} random pairs of maps, and the steepest slope as the constant",
        (AT_MOST, line.moves().steepest().value, float((shifts / Distances.between(*maps).emd).max())),
        "no pair of maps is told apart better than the worst neighbours",
    )


def _near_optimal() -> Row:
    """Theorem 6 with the constants of its proof, for a mean over 8 of 256 values."""
    n, delta = 256, 1e-6
    sizes = np.sort(np.abs(np.fft.fft(np.repeat([1 / 8, 0.0], [8, n - 8]), norm="ortho")))[::-1]
    used = int((sizes > 1e-12).sum())
    k = np.arange(1, n + 1)
    least = float((k**2 * sizes**2).max()) / (n * math.log2(n) ** 2)
    allowed = 4 * math.log(1 / delta) * (float((1 / k[:used]).sum()) * math.log2(n)) ** 2
    return erratum(
        "Fawaz, Muthukrishnan and Nikolov, Theorem 6",
        "the error is within log^2 N log^2 |I| ln(1/delta)/eps^2 of the lower bound specLB",
        f"error over specLB with the constants of the proof, mean over 8 of {n} values, (1, {delta:g})",
        (AT_MOST, allowed, 4 * math.log(1 / delta) * float(sizes.sum()) ** 2 / n / least),
        "specLB has an unknown constant, so this says nothing about the best possible error",
    )


def _divergence(frames: int, rng: np.random.Generator) -> Row:
    """How often an iteration outside the radius brings the Bregman divergence to the truth down, if that is feasible.

    D(f_0, f_t) = ||f_0||_1 - ||f_t||_1 - <p_t, f_0 - f_t>, and p_t is the sum of all M'(y - M f_s) over the penalty.
    """
    setting = Setting(sigma=0.1)
    truth = np.eye(setting.line.places)[MIDDLE]
    readings = setting.line.apply(truth) + 0.1 * rng.standard_normal((frames, setting.line.sensors))
    maps = [_iterated(readings, most) for most in range(1, ITERATIONS + 1)]
    radius = float(recover(readings[0], setting.line, sigma=0.1).radius)
    basis = setting.line.range().basis
    feasible = np.linalg.norm((readings - setting.line.apply(truth)) @ basis, axis=1) <= radius
    penalty = 0.5 * np.maximum(readings @ setting.line.matrix, 0.0).max(axis=1)
    tilt, before = np.zeros((frames, setting.line.places)), np.full(frames, truth.sum())
    falls = steps = 0
    for found in maps:
        misfit = readings - setting.line.apply(found)
        tilt = tilt + misfit @ setting.line.matrix / penalty[:, None]
        after = truth.sum() - found.sum(axis=1) - ((truth - found) * tilt).sum(axis=1)
        counted = feasible & (np.linalg.norm(misfit @ basis, axis=1) > radius)
        falls, steps = falls + int((after < before)[counted].sum()), steps + int(counted.sum())
        before = after
    return erratum(
        "McMillan, Theorem 8.4",
        "outside the radius, each Bregman iteration lowers the divergence to the truth, if that is feasible",
        f"share of such iterations, {frames} frames with a source at 0.5, sigma = 0.1",
        (EQUAL, 1.0, falls / max(steps, 1)),
        "it holds for the divergence, which is no distance of maps",
    )


def _iterated(readings: FloatArray, most: int) -> FloatArray:
    line = Setting().line
    return recover(readings, line, sigma=0.1, estimator=Bregman(iterations=most)).map


def _blindness() -> Row:
    n = 10**6
    proved = n / (1000 * 2 ** (4 * math.sqrt(math.log2(n))))
    root = 2 + math.sqrt(4 + math.log2(1000))  # log2 n - 4 sqrt(log2 n) = log2 1000
    return erratum(
        "McMillan, Lemma 3.5 (Valiant)",
        "k beta/(1000 2^(4 sqrt(log n))) queries are too few",
        f"queries that this rules out, n = k = {n:,}, beta = 1",
        (AT_LEAST, 1.0, proved),
        f"it rules out a single query only from {2 ** (root**2):.1g} outcomes on",
        assumed=True,
    )
