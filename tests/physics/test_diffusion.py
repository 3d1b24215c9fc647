"""Rows of exp(-tau L) and of (kappa L + I)^-1 against dense linear algebra, inside their certified error."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg, sparse

from cloakwork.errors import PhysicsError
from cloakwork.physics.diffusion import laplacian, pulse, steady, unit_rows


def weighted_laplacian(n: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=seed)
    pairs = np.array(graph.edges, dtype=np.int64)
    return laplacian(n, pairs, 10.0 ** rng.uniform(-2, 1, len(pairs)))


def spectral_norm(matrix: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(matrix, 2))


@pytest.mark.parametrize("tau", [1e-6, 0.01, 0.3, 1.0, 7.0, 100.0, 3000.0])
def test_chebyshev_error_is_below_its_bound(tau: float) -> None:
    L = weighted_laplacian(40, 1)
    found = pulse(L, tau, np.eye(40))
    # eigh keeps the relative accuracy that expm loses by squaring for large tau
    values, vectors = np.linalg.eigh(L.toarray())
    exact = vectors * np.exp(-tau * np.maximum(values, 0)) @ vectors.T
    assert spectral_norm(found.values - exact) <= found.error + 1e-13 * (1 + tau * 1e-1)
    assert found.error < 1e-6


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 12), st.floats(0.0, 50.0), st.integers(0, 1000))
def test_pulse_of_any_rows_stays_within_its_error(n: int, tau: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.array([(k, k + 1) for k in range(n - 1)], dtype=np.int64)
    L = laplacian(n, pairs, rng.uniform(0.1, 5.0, n - 1))
    rows = rng.normal(size=(3, n))
    found = pulse(L, tau, rows)
    exact = rows @ linalg.expm(-tau * L.toarray())
    assert spectral_norm(found.values - exact) <= found.error + 1e-12 * spectral_norm(rows)


@pytest.mark.parametrize("kappa", [1e-6, 0.1, 4.0, 1000.0, 1e6])
def test_steady_agrees_with_a_dense_solve(kappa: float) -> None:
    L = weighted_laplacian(40, 4)
    rows = unit_rows(40, np.array([0, 7, 39]))
    found = steady(L, kappa, rows)
    exact = np.linalg.solve(kappa * L.toarray() + np.eye(40), rows.T).T
    # the dense solve has a rounding error of its own
    assert spectral_norm(found.values - exact) <= found.error + 1e-15 * kappa * 40
    assert np.allclose(found.values, exact, rtol=1e-7, atol=1e-12)
    assert found.error < 1e-7


@pytest.mark.parametrize("tau", [0.4, 30.0])
def test_rows_of_both_keep_their_weight_and_stay_positive(tau: float) -> None:
    L = weighted_laplacian(25, 5)
    for found in (pulse(L, tau, np.eye(25)), steady(L, tau, np.eye(25))):
        assert found.values.sum(axis=1) == pytest.approx(np.ones(25), abs=1e-12)
        assert found.values.min() >= -found.error
        assert np.allclose(found.values, found.values.T, atol=1e-12)


def test_more_rows_than_fit_in_memory_are_refused() -> None:
    with pytest.raises(PhysicsError, match=r"1\.6 GB") as problem:
        unit_rows(1_000_000, np.zeros(200, dtype=np.int64))
    assert problem.value.sensors == 200
