"""Private convolution against the papers' formula."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cloakwork.privacy import largest_mu
from cloakwork.series import Coefficients, Decay, Filter, MovingAverage, PowerDecay, RunningSum, Trend
from papers import Agreement, Result
from papers.experiments.convolution import Convolutions
from papers.filters import (
    DELTA,
    EPSILON,
    Errors,
    PrintedFourier,
    errors,
    filtered,
    gain_at,
    leak,
    magnitudes,
    spectral_shape,
)
from papers.paper_laplace import repaired_delta
from papers.statistics import Mean
from tests.papers.kit import probed
from tests.series.series_kit import dense


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


def test_a_filter_that_looks_ahead_has_no_stream() -> None:
    one = errors(Trend(5), 32, 2, (1, 2))
    assert one.live is None
    assert one.live_seen is None
    assert one.best == one.whole


@pytest.mark.parametrize(
    "filter_", [RunningSum(), MovingAverage(5), Trend(4), Coefficients([1.0, -2.0, 3.0], first=-1)]
)
def test_filters_are_worked_out_as_their_definition_says(filter_: Filter) -> None:
    x = np.random.default_rng(1).poisson(5.0, 20)
    assert filtered(filter_, x) == pytest.approx(dense(filter_, 20) @ x)


def test_the_spectral_shape_is_the_papers() -> None:
    h = magnitudes(Coefficients([1.0, 0.5, 0.25]), 30)
    sizes = np.sort(h / math.sqrt(len(h)))[::-1]
    n = len(sizes)
    by_hand = max((k + 1) ** 2 * sizes[k] ** 2 for k in range(n)) / (n * math.log2(n) ** 2)
    assert spectral_shape(Coefficients([1.0, 0.5, 0.25]), 30) == pytest.approx(by_hand, rel=1e-12)


def test_gaussian_noise_in_the_papers_place_is_exact() -> None:
    mu = largest_mu(1.0, 1e-6)
    assert gain_at(1.0, 1e-6) == pytest.approx(4 * math.log(1e6) * mu**2, rel=3e-3)


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


def test_mending_does_not_mend_it_where_the_papers_budget_is_short() -> None:
    deltas = [repaired_delta(PowerDecay(1.0), n, 10.0, 0.01, circular=True) for n in (16, 64)]
    assert deltas[1] > 0.015
    assert deltas[0] < deltas[1]
    assert repaired_delta(RunningSum(), 16, 1.0, 1e-3, circular=False) < 1e-3


def level(one: Errors, papers: float) -> Errors:
    return replace(one, papers=papers)


def test_verdicts_follow_the_numbers(found: Convolutions) -> None:
    assert [claim.verdict for claim in found.claims()][:3] == [Agreement.WRONG, Agreement.LOOSER, Agreement.WRONG]
    constant = replace(found, sums=tuple(level(one, 300.0) for one in found.sums))
    assert constant.claims()[0].verdict is Agreement.AGREES
    jumping = replace(found, sums=tuple(level(one, 300.0 * 4**k) for k, one in enumerate((*found.sums, found.sums[0]))))
    assert jumping.claims()[0].verdict is Agreement.UNDECIDED
    silent = replace(found, leak=replace(found.leak, printed=found.leak.allowed, mse=Mean(1e3, 1.0)))
    assert [claim.verdict for claim in silent.claims()][1:3] == [Agreement.WRONG, Agreement.UNDECIDED]
    kept = replace(found, mended=tuple(replace(one, true=0.009) for one in found.mended))
    assert kept.claims()[3].verdict is Agreement.UNDECIDED
    short = replace(found, mended=tuple(replace(one, true=0.02) for one in found.mended))
    assert short.claims()[3].verdict is Agreement.WRONG


def test_the_goal_is_three_times_less_everywhere(found: Convolutions) -> None:
    assert found.goals()[0].met
    worse = replace(found, filters=tuple(replace(one, papers=2.9 * one.best) for one in found.filters))
    assert not worse.goals()[0].met
