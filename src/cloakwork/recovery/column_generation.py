"""Basis pursuit over a network whose matrix is not formed: columns are computed where the certificate asks for them."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray, read_only
from cloakwork.physics import Space
from cloakwork.recovery import active_set
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.vicinity import MIN_SHARE, Source, position, touching

ENOUGH = 1e-6  # gap at which a map counts as exact, relative to its total (at least 1)
ADDED = 16  # columns a round
MAX_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Pursuit:
    """A map, how its solution ended, its misfit and the bound on its excess."""

    weights: FloatArray
    code: int
    misfit: float
    gap: float


def _best_map(columns: FloatArray, y: FloatArray, rho2: float) -> tuple[FloatArray, int]:
    """The map of least total on the places of some columns (m, k), and how its solution ended."""
    Q, R = np.linalg.qr(columns)
    inside, k = y @ Q, columns.shape[1]
    filled = maps, codes, _, _ = np.zeros((1, k)), np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1)
    radius = np.array([rho2 - float(y @ y) + float(inside @ inside)])
    active_set.pursue(read_only(R), np.array(R.T, order="C"), inside[None], radius, 0, filled)
    return maps[0], int(codes[0])


def pursue(problem: Problem, y: FloatArray, rho2: float) -> Pursuit:
    """The map of least total within the radius, for whitened readings y, with a certificate over all places.

    Notes
    -----
    The problem is solved on the places with a column. One adjoint of the misfit then prices all places, which gives
    the lower bound of `certify` and the places whose columns are worth computing, until the bound is within
    `ENOUGH`.
    """
    n, places, columns = problem.physics.places, list[int](), np.empty((len(y), 0))
    weights, rest = np.zeros(n), y
    if float(y @ y) <= rho2:
        return Pursuit(weights, active_set.EMPTY, float(np.linalg.norm(y)), 0.0)
    code, gap, size = active_set.BEST_FIT, math.inf, 0.0
    for _ in range(MAX_ROUNDS):
        prices = problem.physics.adjoint(problem.whiten(rest))
        size = max(size, float(prices.max()))
        if places:
            t = _threshold(prices, weights) if code == active_set.SOLVED else 0.0
            gap = _gap(y, rest, prices, weights, math.sqrt(max(rho2, 0.0)), t)
            if gap <= ENOUGH * max(1.0, float(weights.sum())) or code == active_set.STOPPED:
                break
        else:
            t = 0.0
        chosen = _worth_a_column(prices, t + 1e-12 * size, places, problem.physics.space)
        if not len(chosen):
            break
        units = np.zeros((len(chosen), n))
        units[np.arange(len(chosen)), chosen] = 1.0
        places += chosen.tolist()
        columns = np.concatenate([columns, problem.whiten(problem.physics.apply(units)).T], axis=1)
        found, code = _best_map(columns, y, rho2)
        weights = np.zeros(n)
        weights[places] = found
        rest = y - columns @ found
    else:
        code = active_set.STOPPED
    return Pursuit(weights, code, float(np.linalg.norm(rest)), max(gap, 0.0))


def _threshold(prices: FloatArray, weights: FloatArray) -> float:
    """The price that free places share."""
    free = (weights > 0) & (weights < 1)
    return float(prices[free].mean()) if free.any() else float(prices.max())


def _gap(y: FloatArray, rest: FloatArray, prices: FloatArray, weights: FloatArray, rho: float, t: float) -> float:
    """The bound of `active_set.certify`, of the total or, with t = 0, of the misfit."""
    norm, along = float(np.linalg.norm(rest)), float(y @ rest)
    if t <= 0:
        return 0.0 if norm == 0 else norm - (along - float(np.maximum(prices, 0.0).sum())) / norm
    bounds = [(along - rho * norm) / s - float(np.maximum(prices / s - 1, 0.0).sum()) for s in (t, float(prices.max()))]
    return float(weights.sum()) - max(bounds)


def _worth_a_column(prices: FloatArray, least: float, known: list[int], space: Space) -> IntArray:
    """The places with the highest prices, first those above all of their neighbours."""
    left = prices.copy()
    left[known] = -np.inf
    candidates = np.flatnonzero(left > least)
    best = candidates[np.argsort(-left[candidates])[: 64 * ADDED]]
    starts, near = space.adjacency.indptr, space.adjacency.indices
    peaks = np.array([left[at] >= left[near[starts[at] : starts[at + 1]]].max(initial=-np.inf) for at in best], bool)
    return np.concatenate([best[peaks], best[~peaks]])[:ADDED] if len(best) else best


def patches(weights: FloatArray, space: Space) -> tuple[Source, ...]:
    """One source for each connected patch of weight, heaviest first."""
    parts = touching(weights, space)
    groups = [np.flatnonzero(parts == part) for part in range(parts.max(initial=-1) + 1)]
    totals = [float(weights[group].sum()) for group in groups]
    sources = []
    for total, group in sorted(zip(totals, groups, strict=True), key=lambda pair: -pair[0]):
        if total < MIN_SHARE * max(totals):
            break
        centre = int(group[np.argmax(weights[group])])
        radius = float(space.distances(centre)[group].max()) if len(group) > 1 else 0.0
        sources.append(Source(centre, position(space.places[centre], centre, space), total, radius, group))
    return tuple(sources)
