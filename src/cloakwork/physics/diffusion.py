"""Diffusion over the edges of a graph, row by row, with a certified error."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.sparse import linalg as sparse_linalg

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import PhysicsError

MAX_ENTRIES = 100_000_000  # largest dense block of rows: 800 MB
TRUNCATION = 1e-15


@dataclass(frozen=True, eq=False)
class CertifiedRows:
    """Rows of an operator, shape (rows, n), dense or sparse, and a bound on the spectral norm of their error."""

    values: Any
    error: float

    def __post_init__(self) -> None:
        values = self.values if isinstance(self.values, np.ndarray) else self.values.data
        if not (np.isfinite(values).all() and np.isfinite(self.error)):
            raise PhysicsError("the diffusion overflows: reduce the time or the weights.", error=self.error)


def laplacian(n: int, pairs: IntArray, weights: FloatArray) -> sparse.csr_array:
    """L = D - W of an undirected graph."""
    i, j = pairs.T
    half = sparse.coo_array((weights, (i, j)), shape=(n, n))
    adjacency = (half + half.T).tocsr()
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    return sparse.csr_array(sparse.diags_array(degrees) - adjacency)


def unit_rows(n: int, places: IntArray) -> FloatArray:
    """One row per place, with a 1 at that place."""
    if len(places) * n > MAX_ENTRIES:
        raise PhysicsError(
            f"{len(places)} sensors and {n} places need {8e-9 * len(places) * n:.1f} GB: "
            f"use at most {MAX_ENTRIES // n} sensors, or larger cells.",
            sensors=len(places),
        )
    rows = np.zeros((len(places), n))
    rows[np.arange(len(places)), places] = 1.0
    return rows


def pulse(L: sparse.csr_array, tau: float, rows: FloatArray) -> CertifiedRows:
    """CertifiedRows @ exp(-tau L) by a Chebyshev series.

    With the spectrum of L in [0, b] and c = tau b / 2, exp(-tau L) = e^-c I_0(c) + 2 sum_k e^-c I_k(c) (-1)^k
    T_k(2L/b - 1). The coefficients are positive and sum to 1 at L = 0, so the truncated tail bounds the error.
    """
    bound = _spectrum(L)
    if tau == 0 or bound == 0:
        return CertifiedRows(rows.copy(), 0.0)
    coefficients = chebyshev_coefficients(tau * bound / 2)
    doubled = 2 * (sparse.identity(L.shape[0], format="csr") - L * (2 / bound)).tocsr()
    total = _chebyshev_sum(doubled, coefficients, np.ascontiguousarray(rows.T))
    roundings = np.finfo(float).eps * (8 + len(coefficients) ** 2)
    return CertifiedRows(np.ascontiguousarray(total.T), (TRUNCATION + roundings) * _norm(rows))


def _chebyshev_sum(doubled: sparse.csr_array, coefficients: FloatArray, columns: FloatArray) -> FloatArray:
    """The sum of c_k T_k(A) columns, for the sparse matrix 2 A and columns (n, k)."""
    total, previous, current = coefficients[0] * columns, columns, columns
    for k, coefficient in enumerate(coefficients[1:]):
        following = doubled @ current
        if k == 0:
            following *= 0.5
        else:
            following -= previous
        previous, current = current, following
        total += coefficient * current
    return np.asarray(total)


def pulse_reach(L: sparse.csr_array, tau: float) -> int:
    """How many edges away from a place `pulse` still changes a row."""
    return len(chebyshev_coefficients(tau * _spectrum(L) / 2))


def _spectrum(L: sparse.csr_array) -> float:
    return 2 * float(L.diagonal().max(initial=0.0)) * (1 + 1e-12)


def chebyshev_coefficients(c: float, truncation: float = TRUNCATION) -> FloatArray:
    """e^-c I_0(c) and 2 e^-c I_k(c) for k = 1, 2, ..., up to a tail below `truncation`."""
    terms = special.ive(np.arange(int(12 * np.sqrt(c) + 60)), c)  # I_k(c) e^-c falls like exp(-k^2 / 2c)
    terms[1:] *= 2
    tail = np.cumsum(terms[::-1])[::-1]
    return np.asarray(terms[: max(1, int(np.searchsorted(-tail, -truncation)))])


def steady(L: sparse.csr_array, kappa: float, rows: FloatArray) -> CertifiedRows:
    """Rows @ (kappa L + I)^-1 by a sparse factorisation; the residual bounds the error, since kappa L + I >= I."""
    system = (kappa * L + sparse.identity(L.shape[0], format="csr")).tocsc()
    solve = sparse_linalg.splu(system).solve
    right = np.ascontiguousarray(rows.T)
    solution = solve(right)
    solution += solve(right - system @ solution)
    residual = float(np.linalg.norm(right - system @ solution))
    rounding = np.finfo(float).eps * 8 * (1 + kappa * float(L.diagonal().max(initial=0.0)))
    return CertifiedRows(np.ascontiguousarray(solution.T), residual + rounding * float(np.linalg.norm(solution)))


def _norm(rows: FloatArray) -> float:
    """Bound on the spectral norm: sqrt of the largest row sum times the largest column sum of |rows|."""
    magnitudes = np.abs(rows)
    return float(np.sqrt(magnitudes.sum(axis=0).max(initial=0.0) * magnitudes.sum(axis=1).max(initial=0.0)))
