"""The Gaussian mechanisms: their error in closed form and measured, and their privacy from dense covariances."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import fft

from cloakwork._checks import FloatArray
from cloakwork.privacy import SERVER_TABLES, Profile, largest_mu, noise_of_frames, noise_table, simulated_words
from cloakwork.series import (
    Coefficients,
    Filter,
    Fourier,
    Least,
    Mechanism,
    MovingAverage,
    RunningSum,
    SeriesCloak,
    SquareRoot,
)
from cloakwork.series.release_noise import GaussianNoise, ReleaseClaim, draw_from
from cloakwork.series.strategies import rounding_cost
from tests.series.series_kit import CLAIM, TEN, Claimed, released_matrix, task_of

UNIT: Claimed = {"epsilon": 1.0, "delta": Profile(1.0).delta(1.0)}  # mu = 1


def unitary(h: FloatArray, n: int) -> FloatArray:
    """|h^|, the unitary Fourier coefficients, by the dense matrix."""
    times = np.arange(n)
    matrix = np.exp(-2j * np.pi * np.outer(times, times) / n) / np.sqrt(n)
    return np.asarray(np.abs(matrix @ np.pad(h, (0, n - len(h)))))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 31, 50])
@pytest.mark.parametrize("contribution", [1, 7])
def test_the_ideal_error_is_the_l1_norm_squared(n: int, contribution: int, rng: np.random.Generator) -> None:
    h = rng.normal(size=n)
    cloak = SeriesCloak(Coefficients(h), n, **CLAIM, contribution=contribution, circular=True, mechanism=Fourier())
    mu = largest_mu(1.0, 1e-6)
    expected = unitary(h, n).sum() ** 2 / (n * mu**2) * contribution**2
    assert cloak.ideal_mse == pytest.approx(expected, rel=1e-12)
    papers = 4 * np.log(1e6) * unitary(h, n).sum() ** 2 / n * contribution**2
    assert cloak.papers_mse == pytest.approx(papers, rel=1e-12)


@pytest.mark.parametrize("n", [16, 101])
@pytest.mark.parametrize("name", TEN)
def test_the_measured_error_is_the_stated_one_within_3_percent(name: str, n: int) -> None:
    """And rejects a stated error that is 20 % off. 400,000 outputs or more, which are correlated within a series."""
    series = max(400_000 // n, 3000)
    rng = np.random.default_rng(n)
    cloak = SeriesCloak(TEN[name], n, **CLAIM, series=series)
    x = rng.integers(0, 50, size=(series, n))
    published = cloak.simulate(x, rng=rng)
    exact = cloak.strategy.outputs(cloak.strategy.applied(x).astype(np.float64))[0]
    error = (published.values - exact) ** 2
    ratio = error.mean() / cloak.expected_mse
    assert ratio == pytest.approx(1.0, abs=0.03)
    assert not 0.97 < 0.8 * ratio < 1.03
    assert not 0.97 < 1.2 * ratio < 1.03
    spread = published.standard_deviation
    assert error.mean(axis=0) == pytest.approx(spread**2, rel=8 * np.sqrt(2 / series))  # at each time, ends and all
    covered = (np.sqrt(error) <= published.band(0.95)).mean()
    assert covered == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("mechanism", [Fourier(), SquareRoot()])
def test_both_mechanisms_have_their_stated_error(mechanism: Mechanism) -> None:
    cloak = SeriesCloak(RunningSum(), 64, **CLAIM, series=20_000, mechanism=mechanism)
    published = cloak.simulate(np.zeros((20_000, 64)), rng=np.random.default_rng(2))
    assert (published.values**2).mean() == pytest.approx(cloak.expected_mse, rel=0.03)
    assert (published.values**2).mean(axis=0) == pytest.approx(published.standard_deviation**2, rel=0.08)


@pytest.mark.parametrize("n", [1, 3, 64, 20_000])
@pytest.mark.parametrize("name", TEN)
def test_rounding_costs_less_than_2_percent_and_is_reported(name: str, n: int) -> None:
    cloak = SeriesCloak(TEN[name], n, **CLAIM)
    assert cloak.rounding_cost == cloak.expected_mse / cloak.ideal_mse - 1
    assert 0 < cloak.rounding_cost < 2e-3
    stepped = SeriesCloak(TEN[name], n, **CLAIM, step=0.005, touched=1)
    assert 0 < stepped.rounding_cost < 0.02


def test_rounding_that_happens_upon_better_coefficients_is_no_negative_cost() -> None:
    """Those of a moving average over a short series are such: what is left is the cost of rounding the noise."""
    cloak = SeriesCloak(MovingAverage(24), 64, **CLAIM)
    assert rounding_cost(cloak.strategy) < -5e-4
    of_noise = cloak.noise.variance / (cloak.noise.shift**2 * cloak.noise.ideal) - 1
    assert 0 < cloak.rounding_cost == pytest.approx(of_noise, rel=1e-6)
    assert "whole numbers cost less than 0.001 % of the mean squared error" in str(cloak.explain())


def test_a_real_cost_of_rounding_is_in_the_number_whole() -> None:
    cloak = SeriesCloak([RunningSum(), MovingAverage(24)], 300, **CLAIM)
    assert rounding_cost(cloak.strategy) > 3e-4
    assert cloak.rounding_cost > rounding_cost(cloak.strategy)
    assert "whole numbers cost 0.037 % of the mean squared error" in str(cloak.explain())


@pytest.mark.parametrize("name", TEN)
def test_the_error_is_at_least_three_times_below_the_papers(name: str) -> None:
    for n in (16, 256, 4096):
        cloak = SeriesCloak(TEN[name], n, **CLAIM)
        assert cloak.papers_mse / cloak.expected_mse >= 3


def test_running_sums_have_the_published_errors() -> None:
    """||h^||_1^2 / (2 N) at mu = 1, padded to 2 N, as the same sum by a dense transform says too."""
    for n, published in ((64, 5.3), (256, 7.5), (1024, 10.2), (4096, 13.2)):
        h = np.r_[np.ones(n), np.zeros(n)]
        cloak = SeriesCloak(Coefficients(h), 2 * n, **UNIT, circular=True, mechanism=Fourier())
        assert cloak.ideal_mse == pytest.approx(published, abs=0.05)
        if n <= 256:
            assert cloak.ideal_mse == pytest.approx(unitary(h, 2 * n).sum() ** 2 / (2 * n), rel=1e-9)
        linear = SeriesCloak(RunningSum(), n, **UNIT, mechanism=Fourier())
        assert linear.ideal_mse == pytest.approx(published, rel=0.02)


def test_the_square_root_of_running_sums_has_the_published_error() -> None:
    cloak = SeriesCloak(RunningSum(), 4096, **UNIT, mechanism=SquareRoot())
    assert cloak.ideal_mse == pytest.approx(12.6, abs=0.05)
    assert SeriesCloak(RunningSum(), 4096, **UNIT).expected_mse == pytest.approx(cloak.expected_mse)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 31, 32])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_ideal_mechanism_is_private_exactly_as_claimed_for_every_neighbour(
    n: int, zeros: bool, rng: np.random.Generator
) -> None:
    """From its covariance: e_j' S^+ e_j = mu^2 for the noise on x that Fourier coefficients of variance c/|h^| make."""
    h = rng.normal(size=n)
    if zeros and n > 2:
        h -= h.mean()
    task = task_of(Coefficients(h), n, circular=True)
    mu = largest_mu(1.0, 1e-6)
    times = np.arange(n)
    matrix = np.exp(-2j * np.pi * np.outer(times, times) / n) / np.sqrt(n)
    sizes = unitary(h, n)
    used = sizes > 1e-9
    c = sizes[used].sum() / (n * mu**2)
    covariance = (matrix[used].conj().T * (c / sizes[used])) @ matrix[used]
    shifts = np.real(np.diag(np.linalg.pinv(covariance, hermitian=True)))
    assert shifts == pytest.approx(mu**2, rel=1e-9)

    root = fft.irfft(np.sqrt(task.magnitude), n)  # what the weights are before they are rounded
    circle = np.stack([np.roll(root, k) for k in range(n)], axis=1)
    sigma = np.linalg.norm(root) / mu
    assert (np.linalg.norm(circle, axis=0) / sigma) == pytest.approx(mu, rel=1e-12)
    ours = np.linalg.pinv(circle, rcond=1e-9)
    assert sigma**2 * ours @ ours.T == pytest.approx(covariance.real, abs=1e-7 * np.abs(covariance).max())


@pytest.mark.parametrize("claim", [(0.1, 1e-9), (20.0, 1e-6)])
@pytest.mark.parametrize("mechanism", [Fourier(), Least()])
@pytest.mark.parametrize("name", TEN)
def test_the_release_never_moves_further_than_the_claim_allows(
    name: str, mechanism: Mechanism, claim: tuple[float, float]
) -> None:
    """In whole numbers, for every place: the exact norm of its column over sigma."""
    n, units = 24, 3
    cloak = SeriesCloak(TEN[name], n, epsilon=claim[0], delta=claim[1], contribution=units, mechanism=mechanism)
    allowed = Fraction(largest_mu(*claim))
    assert isinstance(cloak.noise, GaussianNoise)
    sigma = Fraction(cloak.noise.table.ratio)
    worst = Fraction(0)
    for column in released_matrix(cloak.strategy, n).T:
        square = sum(int(value) ** 2 for value in column) * units**2
        worst = max(worst, square / sigma**2)
        assert square / sigma**2 <= Fraction(cloak.noise.mu) ** 2 <= allowed**2
    assert worst >= allowed**2 * (1 - Fraction(1, 10**9))
    assert cloak.noise.delta(claim[0]) <= claim[1] * (1 + 1e-9)
    assert cloak.noise.delta(claim[0]) >= claim[1] * (1 - 1e-6)


@pytest.mark.parametrize("name", TEN)
def test_brute_force_neighbours_never_move_the_release_further(name: str, rng: np.random.Generator) -> None:
    n, units, series = 15, 5, 2
    cloak = SeriesCloak(TEN[name], n, **CLAIM, contribution=units, series=series)
    assert isinstance(cloak.noise, GaussianNoise)
    limit = cloak.noise.mu * cloak.noise.table.ratio
    worst = 0.0
    for _ in range(200):
        x = rng.integers(0, 1000, size=(series, n))
        y = x.copy()
        for _ in range(units):  # up to five units anywhere, in either direction
            y[rng.integers(series), rng.integers(n)] += rng.choice([-1, 1])
        worst = max(worst, float(np.linalg.norm(cloak.strategy.applied(x) - cloak.strategy.applied(y))))
        y = x.copy()
        y[rng.integers(series), rng.integers(n)] += rng.choice([-units, units])
        worst = max(worst, float(np.linalg.norm(cloak.strategy.applied(x) - cloak.strategy.applied(y))))
    assert worst <= limit
    assert worst >= 0.9 * limit


def test_the_error_of_the_tables_is_taken_off_delta_and_told() -> None:
    """At a large epsilon it is most of a tiny delta."""
    loss = (1 + np.exp(30.0)) * 16 * SERVER_TABLES.error
    cloak = SeriesCloak(Coefficients([1.0]), 16, epsilon=30.0, delta=2 * loss, mechanism=Fourier())
    assert isinstance(cloak.noise, GaussianNoise)
    assert Profile(cloak.noise.mu).delta(30.0) == pytest.approx(loss, rel=1e-6, abs=0)
    told = cloak.noise.delta(30.0) - Profile(cloak.noise.mu).delta(30.0)
    assert told == pytest.approx((1 + np.exp(30.0)) * 16 * cloak.noise.table.error, rel=1e-6, abs=0)
    assert cloak.noise.delta(30.0) <= 2 * loss


def test_every_table_of_a_server_keeps_its_stated_error() -> None:
    for ratio in (1.0, 1000.0, 2.0**20, 2.0**31, 2.0**40):
        assert noise_table(ratio, size=SERVER_TABLES).error <= SERVER_TABLES.error


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_noise_that_is_20_percent_off_would_be_noticed(factor: float) -> None:
    strategy = Fourier().strategy(task_of(RunningSum(), 32))
    noise = GaussianNoise.meeting(strategy, ReleaseClaim(1.0, 1e-6, 1))
    rng = np.random.default_rng(1)
    draws = noise.draw(100_000, lambda count: rng.integers(0, 1 << 64, size=(count, 2), dtype=np.uint64))
    assert draws.var() == pytest.approx(noise.variance, rel=0.02)
    assert draws.var() != pytest.approx(noise.variance * factor**2, rel=0.2)


@pytest.mark.parametrize(
    "filters", [RunningSum(), [RunningSum(), TEN["average"]]], ids=["one filter", "several filters"]
)
def test_the_noise_of_a_real_release_has_the_stated_size(filters: Filter | list[Filter]) -> None:
    n, series = 40, 5000
    cloak = SeriesCloak(filters, n, **CLAIM, series=series)
    x = np.random.default_rng(1).integers(0, 9, size=(series, n))
    values = cloak.release(x).values
    exact = cloak.strategy.outputs(cloak.strategy.applied(x).astype(np.float64))
    error = ((values - exact.reshape(values.shape)) ** 2).reshape(-1, series, n).mean(axis=(1, 2))
    assert error == pytest.approx(cloak.expected_mses, rel=0.05)


def test_more_privacy_and_more_contribution_cost_what_they_should() -> None:
    base = SeriesCloak(RunningSum(), 100, **CLAIM)
    double = SeriesCloak(RunningSum(), 100, **CLAIM, contribution=2)
    assert double.expected_mse == pytest.approx(4 * base.expected_mse, rel=1e-3)
    strict = SeriesCloak(RunningSum(), 100, epsilon=0.5, delta=1e-6)
    expected = (largest_mu(1.0, 1e-6) / largest_mu(0.5, 1e-6)) ** 2
    assert strict.expected_mse / base.expected_mse == pytest.approx(expected, rel=1e-3)
    together = SeriesCloak(RunningSum(), 100, **CLAIM, series=50)
    assert together.expected_mse == pytest.approx(base.expected_mse, rel=1e-9)  # contribution counts over all series


def test_the_spectral_shape_is_the_papers() -> None:
    n = 16
    h = np.random.default_rng(4).normal(size=n)
    cloak = SeriesCloak(Coefficients(h), n, **CLAIM, circular=True)
    sizes = np.sort(unitary(h, n))[::-1]
    expected = max(k**2 * sizes[k - 1] ** 2 / (n * np.log2(n) ** 2) for k in range(1, n + 1))
    assert cloak.spectral_shape == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 1024, 1025, 2048, 2049, 5000])
@pytest.mark.parametrize("ratio", [3.0, 3017.0, 2.0**30])
def test_few_draws_are_the_same_as_those_of_the_sampler_for_frames(ratio: float, count: int) -> None:
    table = noise_table(ratio, size=SERVER_TABLES)
    frames = noise_of_frames([table], count, simulated_words(np.random.default_rng(3)))[:, 0]
    assert draw_from(table, count, simulated_words(np.random.default_rng(3))).tolist() == frames.tolist()
    words = simulated_words(np.random.default_rng(3))
    assert [int(draw_from(table, 1, words)[0]) for _ in range(min(count, 50))] == frames[:50].tolist()
