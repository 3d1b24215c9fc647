"""Lemmas that relate the sensitivity of a matrix to its condition number, tried on matrices."""

import math
from collections.abc import Callable

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import Graph, Matrix, Space
from papers.result import Agreement, Claim
from papers.rows import Row

RHO = 1e-3
STAR, TAU = 10, 0.5  # nodes and time of the star that Lemma 18 is tried on
ROUNDING = 1e-9


def check(lemma: str, matrix: str, promised: float, true: float, *, at_least: bool) -> Row:
    """A lemma tried on one matrix: the bound on the sensitivity that it promises, and the true sensitivity."""
    return Row(lemma=lemma, matrix=matrix, promised=promised, true=true, at_least=at_least)


def claim(one: Row, text: str, source: str) -> Claim:
    """A lemma as a claim of its paper."""
    sign, excess = ">=" if one.at_least else "<=", one.true - one.promised
    held = excess >= -ROUNDING if one.at_least else excess <= ROUNDING
    found = f"{one.matrix}: promised Delta {sign} {one.promised:.4g}, true Delta {one.true:.4g}"
    return Claim(text, source, found, Agreement.of(held))


def sensitivity_of(values: FloatArray) -> float:
    """Delta of a matrix whose places are in a row at distance 1, with alpha = 1."""
    n = values.shape[1]
    return Matrix(values, Space.path([(k, k + 1) for k in range(n - 1)])).moves().steepest().value


def condition_of(values: FloatArray) -> float:
    """The largest singular value over the smallest that is not 0."""
    singular = np.linalg.svd(values, compute_uv=False)
    kept = singular[singular > 1e-12 * singular[0]]
    return float(kept[0] / kept[-1])


def converse_of(values: FloatArray) -> float:
    """4 nu of Lemma 7: nu bounds the sum of the lesser singular values, and the difference of neighbours' norms."""
    lesser = float(np.linalg.svd(values, compute_uv=False)[1:].sum())
    norms = np.linalg.norm(values, axis=0)
    return 4 * max(lesser, float(np.abs(np.diff(norms)).max()))


def counterexamples() -> tuple[Row, ...]:
    """Matrices of two places that contradict the lemmas, the one that the papers give, and Lemma 18 on a star."""
    twins, opposites = np.array([[1.0, 1.0]]) / math.sqrt(2), np.array([[1.0, -1.0]])
    uneven = np.diag([1.0, RHO])
    ill = f"diag(1, {RHO:g}), kappa = {condition_of(uneven):.0f}"
    return (
        check("Lemma 6", "[1 1]/sqrt 2", 1 / condition_of(twins), sensitivity_of(twins), at_least=True),
        check("Lemma 7, converse", "[1 -1]", converse_of(opposites), sensitivity_of(opposites), at_least=False),
        check("section 2.1", ill, 1.0, sensitivity_of(uneven), at_least=True),
        *_eigenvector_bounds(),
    )


def _eigenvector_bounds() -> tuple[Row, Row]:
    """Lemma 18 on a star whose hub has the last number: as printed, with s_i of the hub, and with s_k and all edges."""
    hub = STAR - 1
    adjacency = np.zeros((STAR, STAR))
    adjacency[hub, :hub] = adjacency[:hub, hub] = 1.0
    values, vectors = np.linalg.eigh(np.diag(adjacency.sum(axis=0)) - adjacency)
    apart = np.abs(vectors[hub] - vectors[:hub])[:, 1:]
    printed = float(math.exp(-TAU * values[hub]) * apart.sum(axis=1).max())
    corrected = float((apart @ np.exp(-TAU * values[1:])).max())
    true, where = Graph(adjacency, tau=TAU).moves().steepest().value, f"star of {STAR} nodes, hub numbered last"
    return (
        check("Lemma 18, e^(-tau s_i)", where, printed, true, at_least=False),
        check("Lemma 18, e^(-tau s_k)", where, corrected, true, at_least=False),
    )


def random_matrices(count: int, rng: np.random.Generator) -> tuple[Row, ...]:
    """Try each lemma on random matrices, with its missing condition and without."""
    full_rank, converse = "sqrt 2 times the least singular value, full column rank", "Lemma 7, converse"
    kinds: tuple[tuple[str, str, Callable[[], bool]], ...] = (
        ("Lemma 6, corrected", full_rank, lambda: _below_floor(rng)),
        (converse, "no negative entries", lambda: _above(rng, signed=False)),
        (converse, "any signs", lambda: _above(rng, signed=True)),
    )
    return tuple(
        Row(lemma=lemma, kind=kind, tried=count, violated=sum(violates() for _ in range(count)))
        for lemma, kind, violates in kinds
    )


def _below_floor(rng: np.random.Generator) -> bool:
    n = int(rng.integers(2, 8))
    values = rng.normal(size=(n + int(rng.integers(0, 8)), n))
    least = float(np.linalg.svd(values, compute_uv=False)[-1])
    return sensitivity_of(values) < math.sqrt(2) * least - ROUNDING


def _above(rng: np.random.Generator, *, signed: bool) -> bool:
    """Whether a random matrix near rank one exceeds the bound of the converse."""
    m, n = int(rng.integers(1, 8)), int(rng.integers(2, 8))
    along = rng.uniform(0.9, 1.1, n) * (rng.choice([-1.0, 1.0], n) if signed else 1.0)
    values = np.outer(rng.uniform(0.5, 1.5, m), along) + 10 ** rng.uniform(-4, 0) * rng.normal(size=(m, n))
    values = values if signed else np.abs(values)
    return sensitivity_of(values) > converse_of(values) + ROUNDING
