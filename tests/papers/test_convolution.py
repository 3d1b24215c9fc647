"""Private convolution against the papers' formula."""

import math

import numpy as np
import pytest

from cloakwork.series import Coefficients, Decay
from papers import Result
from papers.experiments.convolution import Convolutions
from papers.filters import (
    DELTA,
    EPSILON,
    PrintedFourier,
    errors,
    leak,
    magnitudes,
    spectral_shape,
)
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("convolution")


@pytest.fixture(scope="module")
def found(result: Result) -> Convolutions:
    assert isinstance(result.finding, Convolutions)
    return result.finding


def test_the_papers_error_of_running_sums_is_that_of_a_step(found: Convolutions) -> None:
    """The step of N ones on a circle of 2N has the spectrum N, then 1/sin(pi k / 2N) at odd k and 0 at even k."""
    for one in found.sums:
        n = one.n
        total = n + (1 / np.sin(np.pi * np.arange(1, 2 * n, 2) / (2 * n))).sum()
        assert one.papers == pytest.approx(4 * math.log(1 / DELTA) / EPSILON**2 * (total / (2 * n)) ** 2, rel=1e-9)


def test_the_root_grows_by_one_over_pi_for_each_factor_e(found: Convolutions) -> None:
    assert found.growth.slope * EPSILON / math.sqrt(4 * math.log(1 / DELTA)) == pytest.approx(1 / math.pi, rel=1e-3)
    assert found.growth.misses < 1e-3


def test_what_is_measured_is_what_is_expected() -> None:
    one = errors(Decay(0.8), 128, 400, (1, 2))
    assert one.live is not None
    assert one.live_seen is not None
    assert abs(one.whole_seen.value - one.whole) < 4 * one.whole_seen.error
    assert abs(one.live_seen.value - one.live) < 4 * one.live_seen.error
    assert one.whole_seen.error < 0.05 * one.whole


def test_the_spectral_shape_is_the_papers() -> None:
    h = magnitudes(Coefficients([1.0, 0.5, 0.25]), 30)
    sizes = np.sort(h / math.sqrt(len(h)))[::-1]
    n = len(sizes)
    by_hand = max((k + 1) ** 2 * sizes[k] ** 2 for k in range(n)) / (n * math.log2(n) ** 2)
    assert spectral_shape(Coefficients([1.0, 0.5, 0.25]), 30) == pytest.approx(by_hand, rel=1e-12)


def test_imaginary_parts_go_out_without_noise() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, (5, 12))
    mechanism = PrintedFourier(rng.normal(size=12), 0.5, 1e-6)
    outputs = mechanism.outputs(x, rng)
    wanted = np.fft.fft(x, norm="ortho", axis=1).imag[:, 1:6]
    assert mechanism.exact_places.tolist() == [1, 2, 3, 4, 5]
    assert mechanism.exact(outputs) == pytest.approx(wanted, abs=1e-9)
    clear = np.fft.ifft(np.fft.fft(mechanism.kernel) * np.fft.fft(x, axis=1), axis=1)
    assert np.abs(outputs - clear).min() > 1e-3


def test_the_printed_algorithm_tells_everyone_and_has_the_error_of_its_formula() -> None:
    seen = leak(32, 300, 1.0, 1e-6, np.random.default_rng(1))
    assert seen.printed == 1.0
    assert seen.exact == 16
    assert seen.allowed == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert 0.5 < seen.ours < 0.56
    assert abs(seen.mse.value - seen.formula) < 4 * seen.mse.error
