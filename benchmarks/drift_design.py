"""Noise that is designed for readings that drift, against the plan's, which does not know about drift.

The flat of `cloakwork init` at its claim, one window. With offsets integrated out the information about a place is
J' (diag(1/w) + C)^-1 J, concave in the weights w = 1/sigma^2, so linear programs within a trust region find the best
weights. C is the covariance of the offsets: as stated, or as it is after a filter has learnt them from windows with
known sources.
"""

import math

import numpy as np
from rich.table import Table
from scipy.optimize import linprog

from benchmarks.drift import ASSUMED, flat
from cloakwork._checks import FloatArray
from cloakwork.accuracy import limits
from cloakwork.privacy.variance import Moves

ROUNDS, WINDOWS = 60, 100
MOST_SLOPES = 100_000
ENOUGH = 0.03  # a design that lowers the error by more would be worth having


def curve(moves: Moves, weights: FloatArray, offsets: FloatArray) -> tuple[float, FloatArray]:
    """The mean variance of a lone source, and its derivative by each weight."""
    inner = np.linalg.inv(np.diag(1 / weights) + offsets)
    inverse = np.linalg.inv(moves.known + moves.slopes @ inner @ np.swapaxes(moves.slopes, 1, 2))
    turned = inverse @ (moves.slopes @ inner)
    slope = np.einsum("b,bam->m", moves.shares, turned**2) / weights**2
    return float(moves.shares @ np.trace(inverse, axis1=1, axis2=2)), -slope


def best_weights(moves: Moves, rows: FloatArray, weights: FloatArray, offsets: FloatArray) -> FloatArray:
    """Improve weights under rows @ w <= 1."""
    value, slope = curve(moves, weights, offsets)
    span = 1.5
    for _ in range(ROUNDS):
        near = rows @ weights > 0.3
        box = [(1 / span, span)] * len(weights)
        found = linprog(slope * weights, A_ub=rows[near] * weights, b_ub=np.ones(near.sum()), bounds=box)
        assert found.x is not None, "scaling all weights down is always allowed"
        target = weights * found.x
        target /= max(1.0, float((rows @ target).max()))
        tried = [weights + share * (target - weights) for share in (0.1, 0.25, 0.5, 1.0)]
        best = min(tried, key=lambda w: curve(moves, w, offsets)[0])
        if curve(moves, best, offsets)[0] < value * (1 - 1e-6):
            weights = best
            value, slope = curve(moves, weights, offsets)
        else:
            span = math.sqrt(span)
    return weights


def learnt(weights: FloatArray, seconds: float) -> FloatArray:
    """The covariance of the offsets before a window, once those before have been seen, (m, m)."""
    nuisance = ASSUMED.on(flat()[1])
    columns, prior = nuisance.columns, np.diag(nuisance.deviations**2)
    kept, after = np.exp(-seconds / nuisance.over), prior
    before = prior
    for _ in range(WINDOWS):
        before = kept[:, None] * after * kept + prior * (1 - kept**2)
        gain = before @ columns.T @ np.linalg.inv(np.diag(1 / weights) + columns @ before @ columns.T)
        after = before - gain @ columns @ before
    return np.asarray(columns @ before @ columns.T)


def run() -> tuple[Table, bool]:
    """The table, and whether the plan's noise is within 3 % of the error of noise that knows the drift."""
    site, physics, cloak = flat()
    window, allowance = cloak.readings_per_window, cloak.allowance
    search, moves = allowance.search().run(), Moves.of(physics)
    start = 1 / search.sigma**2
    start /= float((search.rows @ start).max())
    stated = ASSUMED.on(physics).factor @ ASSUMED.on(physics).factor.T
    table = Table(title="A lone source from one window of the example flat, with drift integrated out")
    for name in ("offsets", "noise", "standard deviation, m", "less", "mean distance at least, m", "less"):
        table.add_column(name, justify="left" if name in ("offsets", "noise") else "right")
    good = True
    seconds = site.spec.privacy.window
    for name, offsets in (("as stated", stated), ("learnt before", learnt(start, seconds))):
        weights = best_weights(moves.thinned(MOST_SLOPES), search.rows, start, offsets)
        aware = allowance.scaled(np.sqrt(window / weights)).sigma
        spreads, bounds = [], []
        for kind, sigma in (("equal", allowance.equal().sigma), ("plan", cloak.sigmas), ("knows drift", aware)):
            spreads.append(math.sqrt(curve(moves, window / sigma**2, offsets)[0]))
            row = [name, kind, f"{spreads[-1]:.3f}", "" if kind != "knows drift" else _less(spreads)]
            if offsets is stated:
                bounds.append(limits(physics, sigma / math.sqrt(window), drift=ASSUMED).average_emd)
                row += [f"{bounds[-1]:.3f}", "" if kind != "knows drift" else _less(bounds)]
            table.add_row(*row)
        errors = bounds or spreads
        good &= errors[-1] > (1 - ENOUGH) * errors[-2]
    table.caption = "standard deviation: root of the mean variance along one axis, Cramer-Rao"
    return table, good


def _less(errors: list[float]) -> str:
    return f"{100 * (1 - errors[-1] / errors[-2]):.1f} %"
