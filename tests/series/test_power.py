"""Power series against binomials in exact fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from cloakwork.series.convolution import inverse, square_root


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
