"""Private convolution against the papers' formula."""

import math

import numpy as np
import pytest

from cloakwork.series import Coefficients
from papers.filters import (
    DELTA,
    EPSILON,
    leak,
    magnitudes,
    spectral_shape,
)
from papers.result import Finding
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def found() -> Finding:
    return probed("convolution").finding


def test_the_papers_error_of_running_sums_is_that_of_a_step(found: Finding) -> None:
    """The step of N ones on a circle of 2N has the spectrum N, then 1/sin(pi k / 2N) at odd k and 0 at even k."""
    for one in found.sums:
        n = one.n
        total = n + (1 / np.sin(np.pi * np.arange(1, 2 * n, 2) / (2 * n))).sum()
        assert one.papers == pytest.approx(4 * math.log(1 / DELTA) / EPSILON**2 * (total / (2 * n)) ** 2, rel=1e-9)


def test_the_spectral_shape_is_the_papers() -> None:
    h = magnitudes(Coefficients([1.0, 0.5, 0.25]), 30)
    sizes = np.sort(h / math.sqrt(len(h)))[::-1]
    n = len(sizes)
    by_hand = max((k + 1) ** 2 * sizes[k] ** 2 for k in range(n)) / (n * math.log2(n) ** 2)
    assert spectral_shape(Coefficients([1.0, 0.5, 0.25]), 30) == pytest.approx(by_hand, rel=1e-12)


def test_the_printed_algorithm_tells_everyone_and_has_the_error_of_its_formula() -> None:
    seen = leak(32, 300, 1.0, 1e-6, np.random.default_rng(1))
    assert seen.printed == 1.0
    assert seen.exact == 16
    assert seen.allowed == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert 0.5 < seen.ours < 0.56
    assert abs(seen.mse.value - seen.formula) < 4 * seen.mse.error
