"""Power series against binomials, exact fractions and dense triangular matrices."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular, toeplitz

from cloakwork._checks import FloatArray
from cloakwork.series.convolution import inverse, product, square_root

#: coefficients for which neither the inverse nor the square root grows
tame = st.lists(st.floats(-0.15, 0.15), max_size=6).map(lambda rest: np.array([1.0, *rest]))


def triangle(series: FloatArray, n: int) -> FloatArray:
    column = np.zeros(n)
    column[: min(n, len(series))] = series[:n]
    return np.asarray(toeplitz(column, np.zeros(n)))


@settings(max_examples=40, deadline=None)
@given(first=tame, second=tame, n=st.integers(1, 40))
def test_a_product_is_that_of_triangular_matrices(first: FloatArray, second: FloatArray, n: int) -> None:
    assert product(first, second, n) == pytest.approx((triangle(first, n) @ triangle(second, n))[:, 0], abs=1e-13)


@settings(max_examples=40, deadline=None)
@given(series=tame, n=st.integers(1, 200), scale=st.floats(1e-3, 1e3))
def test_an_inverse_is_that_of_the_triangular_matrix(series: FloatArray, n: int, scale: float) -> None:
    expected = solve_triangular(triangle(scale * series, n), np.eye(n)[:, 0], lower=True)
    assert inverse(scale * series, n) == pytest.approx(expected, rel=1e-9, abs=1e-11 / scale)


@settings(max_examples=40, deadline=None)
@given(series=tame, n=st.integers(1, 200), scale=st.floats(1e-3, 1e3))
def test_a_square_root_squared_is_the_series(series: FloatArray, n: int, scale: float) -> None:
    root = triangle(square_root(scale * series, n), n)
    assert (root @ root)[:, 0] == pytest.approx(triangle(scale * series, n)[:, 0], rel=1e-9, abs=1e-11 * scale)
    assert root[0, 0] > 0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000, 4097])
def test_the_root_of_running_sums_is_the_central_binomials(n: int) -> None:
    exact = [Fraction(comb(2 * k, k), 4**k) for k in range(min(n, 200))]
    found = square_root(np.ones(n), n)
    assert found[:200] == pytest.approx([float(value) for value in exact], rel=1e-12)
    places = np.arange(200, n)
    assert found[200:] * np.sqrt(np.pi * (places + 0.25)) == pytest.approx(1.0, abs=1e-6)  # Wallis
    inverted = inverse(found, n)
    assert inverted[0] == pytest.approx(1.0)
    assert inverted[1:100] == pytest.approx([-float(exact[k]) / (2 * k - 1) for k in range(1, min(n, 100))], rel=1e-9)
