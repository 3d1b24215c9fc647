"""The likelihood of each beginner of a rumour on a network whose matrix is not formed."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Graph

SAMPLED = 1024  # columns from which the number of nodes that know is scaled
SCREENED, WHOLE_SAMPLE = 256, 32  # columns computed whole, and those for scaling, where hubs spread heat far
MAX_WHOLE = 10_000  # nodes of which all columns are computed whole
MAX_JUMPS = 60.0  # expected jumps of a walker; with more, no column is local
MAX_TOUCHED = 1e11  # steps of work for all nodes, some ten minutes on two cores
MAX_AGAIN = 2e9  # steps of work for each round of sharper columns
GROWTH = 4.0  # of the work of a column, at most about, when it is sharper
ENTRIES = 2e7  # of columns at once
DROP, SHARPER, ROUNDS = 1e-3, 30.0, 4
CLOSE = 0.01  # error of all probabilities together that is not made smaller
NEAR, FAR = 0.001, 0.2  # share of those who know, where columns are not computed, that is no matter, and too large
_SMALLEST = 1e-12


class Likelihoods(NamedTuple):
    """Log likelihood of each node up to one constant, shape (n,), and a bound on the error of each."""

    logs: FloatArray
    errors: FloatArray


def knowing_factor(entries: FloatArray, columns: int, number: float, lost: float = 0.0) -> float:
    """The c with which the average over columns of sum_i 1 - exp(-c M_is) is `number`, from all entries M_is.

    `lost` is the heat of a column without entries, so spread out that c times it know. The average is concave in c and
    at most c times the heat of a column, so Newton's steps from there approach it from below.
    """
    c = number / (float(entries.sum()) / columns + lost)
    for _ in range(60):
        left = np.exp(-c * entries)
        gap = number - c * lost - float((1 - left).sum()) / columns
        slope = lost + float((entries * left).sum()) / columns
        if gap < 1e-6 * number or slope < _SMALLEST * c:
            break
        c += gap / slope
    return c


def wide_likelihoods(graph: Graph, odds: FloatArray, knowing: float) -> Likelihoods:
    """Log likelihood of each node as the beginner: sum_i log(1 + odds_i (1 - exp(-h_i))), h_i = c M_is.

    `odds` (m,) is how much more likely each answer is from someone who knows, less 1; 0 without an answer.

    Notes
    -----
    The sum is that of odds_i h_i, which one adjoint gives for all nodes exactly, and a rest of second order, which the
    nodes near s suffice for. The slope of the rest is at most |odds_i|, so heat f that is left out changes the sum by
    at most c f max |odds_i|. With e_s this bound, the probabilities p_s are off by at most sum_s p_s (e^e_s - 1), as
    half the sum of the differences; nodes that add most to that are computed again, more sharply. Where hubs spread
    heat far, the adjoint with the average slope of a random sample of columns screens all nodes, and the best ones are
    computed whole; the errors of the others are unknown.
    """
    if not np.array_equal(np.sort(graph.sensor_places), np.arange(graph.places)):
        raise InputError("find_origin: give a graph with one sensor at each node.", sensors=graph.sensors)
    by_node = np.empty(graph.places)
    by_node[graph.sensor_places] = odds
    found = near_likelihoods(graph, odds, by_node, knowing) if _is_local(graph) else None
    return screened(graph, odds, knowing) if found is None else found


def _is_local(graph: Graph) -> bool:
    """Whether heat stays near enough for the columns of all nodes."""
    if graph.tau * float(graph.kernel.diagonal.max()) > MAX_JUMPS:
        return False
    few = np.random.default_rng(0).choice(graph.places, min(graph.places, 8), replace=False)
    return graph.near_columns(few, DROP).touched / len(few) * graph.places <= MAX_TOUCHED


def near_likelihoods(graph: Graph, odds: FloatArray, by_node: FloatArray, knowing: float) -> Likelihoods | None:
    """The likelihoods from the nodes near each; None if a rumour that so many know is not near its beginner."""
    factor = _near_factor(graph, knowing)
    if factor is None:
        return None
    n = graph.places
    steepest = float(np.abs(odds).max(initial=0.0)) * factor
    rounding = steepest * graph.error / graph.gain * math.sqrt(n) + 1e-12 * n
    linear = factor / graph.gain * graph.adjoint(odds)
    columns = 1024.0
    logs, errors, which, drop = linear.copy(), np.empty(n), np.arange(n), DROP
    for _ in range(ROUNDS):
        touched, entries = 0.0, 0.0
        for piece in np.array_split(which, math.ceil(len(which) / columns)):
            near = graph.near_columns(piece, drop)
            heard, weight = factor * near.values, by_node[near.nodes]
            logs[piece] = linear[piece] + near.sums(np.log1p(-weight * np.expm1(-heard)) - weight * heard)
            errors[piece] = steepest * near.lost + rounding
            touched, entries = touched + near.touched, max(entries, len(near.values) / len(piece))
        which = _doubtful(logs, errors)[: int(MAX_AGAIN * len(which) / (GROWTH * touched + 1))]
        drop, columns = drop / SHARPER, max(1.0, ENTRIES / (GROWTH * entries))
        if not len(which):
            break
    return Likelihoods(logs, errors)


def _near_factor(graph: Graph, knowing: float) -> float | None:
    """The c of `knowing_factor` times gain, from a sample of columns that is made sharper while that matters."""
    n = graph.places
    some = np.random.default_rng(0).choice(n, min(n, SAMPLED), replace=False)
    factor, lost, drop = math.inf, 1.0, DROP
    for _ in range(ROUNDS):
        sample = graph.near_columns(some, drop)
        lost = float(sample.lost.mean())
        factor = knowing_factor(sample.values, len(some), knowing, lost)
        if factor * lost <= NEAR * knowing:
            break
        some = some[: max(1, int(MAX_AGAIN * len(some) / (GROWTH * sample.touched + 1)))]
        drop /= SHARPER
    return factor if factor * lost <= FAR * knowing else None


def _doubtful(logs: FloatArray, errors: FloatArray) -> IntArray:
    """The nodes whose errors may change the probabilities by more than `CLOSE` in all, the worst first."""
    doubts = logs + errors + np.log(-np.expm1(-errors)) - special.logsumexp(logs)
    order = np.argsort(doubts)
    small = np.cumsum(np.exp(np.minimum(doubts[order], 700.0))) <= CLOSE
    return order[np.count_nonzero(small) :][::-1]


def screened(graph: Graph, odds: FloatArray, knowing: float) -> Likelihoods:
    """The likelihoods by the average slope of a sample of columns; those of the best nodes from whole columns."""
    n = graph.places
    sample = _whole(graph, np.random.default_rng(0).choice(n, min(n, WHOLE_SAMPLE), replace=False))
    factor = knowing_factor(sample, len(sample), knowing)
    heard = factor * sample
    slopes = np.zeros(n)
    for value in np.unique(odds):
        slopes[odds == value] = np.log1p(-value * np.expm1(-heard)).sum() / heard.sum()
    logs, errors = factor * graph.adjoint(slopes), np.full(n, math.inf)
    best = np.argsort(-logs)[: SCREENED if n > MAX_WHOLE else n]
    for piece in np.array_split(best, math.ceil(len(best) / 16)):
        logs[piece] = np.log1p(-odds * np.expm1(-factor * _whole(graph, piece))).sum(axis=1)
        errors[piece] = factor * float(np.abs(odds).max()) * graph.error * math.sqrt(n)
    return Likelihoods(logs, errors)


def _whole(graph: Graph, sources: IntArray) -> FloatArray:
    """Whole columns of some nodes, shape (k, m)."""
    units = np.zeros((len(sources), graph.places))
    units[np.arange(len(sources)), sources] = 1.0
    return np.maximum(graph.apply(units), 0.0)
