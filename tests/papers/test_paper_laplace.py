"""The paper's mechanism, mended: its scales, its error, where it is not private, and what was wrong with it."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy.laplace_losses import laplace_delta
from cloakwork.series import Coefficients, Fourier, Mechanism, RunningSum, SeriesCloak, convolve
from papers.paper_laplace import LONGEST, LaplaceNoise, PaperLaplace, largest_delta, real_basis
from tests.series.series_kit import CLAIM, TEN, released_matrix, task_of

H = np.array([1.0, 0.6, 0.3, 0.1, 0.0, 0.0, 0.05, 0.2])
X = np.array([[3.0, 0, 4, 1, 7, 0, 2, 5], [3.0, 1, 4, 1, 7, 0, 2, 5]])


def papers_shifts(h: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """R_ij / sqrt(gamma / |h^_i|), by the paper's formulas, with the basis by its definition."""
    n = len(h)
    times = np.arange(n)
    sizes = np.abs(np.fft.fft(h)) / math.sqrt(n)
    gamma = 2 * math.log(1 / delta) * sizes.sum() / (epsilon**2 * n)
    rows: list[FloatArray] = [np.full(n, math.sqrt(sizes[0] / gamma / n))]
    for k in range(1, (n + 1) // 2):
        root = math.sqrt(2 / n * sizes[k] / gamma)
        rows += [root * np.cos(2 * np.pi * k * times / n), root * np.sin(2 * np.pi * k * times / n)]
    if n % 2 == 0:
        rows.append(np.asarray((-1.0) ** times * math.sqrt(sizes[n // 2] / gamma / n)))
    return np.asarray(np.abs(rows))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15])
def test_the_basis_is_orthonormal_and_that_of_fourier(n: int) -> None:
    basis, frequencies = real_basis(n)
    assert basis @ basis.T == pytest.approx(np.eye(n), abs=1e-14)
    for row, frequency in zip(basis, frequencies, strict=True):
        spectrum = np.abs(np.fft.fft(row)) ** 2
        assert spectrum[[frequency, -frequency]].sum() / (1 + (2 * frequency % n == 0)) == pytest.approx(n)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_shifts_are_the_papers(n: int, rng: np.random.Generator) -> None:
    h = rng.normal(size=n)
    cloak = SeriesCloak(Coefficients(h), n, **CLAIM, contribution=4, circular=True, mechanism=PaperLaplace())
    assert isinstance(cloak.noise, LaplaceNoise)
    ours = np.abs(released_matrix(cloak.strategy, n)) * 4 / cloak.noise.table.ratio
    theirs = papers_shifts(h, 1.0, 1e-6)
    assert np.sort(ours, axis=0) == pytest.approx(np.sort(theirs[(theirs > 1e-9).any(axis=1)], axis=0), abs=1e-8)
    for column in np.sort(np.abs(released_matrix(cloak.strategy, n)), axis=0).T:  # every neighbour is accounted for
        exactly = column[:, None] * 4 / cloak.noise.table.ratio
        assert (np.abs(cloak.noise.shifts - exactly).max(axis=0) < 1e-12).any()
        assert ((cloak.noise.shifts >= exactly).all(axis=0)).any()


@pytest.mark.parametrize("n", [4, 31, 64])
@pytest.mark.parametrize("name", ["running sum", "any", "looking ahead"])
def test_the_error_is_the_papers_and_measured(name: str, n: int) -> None:
    cloak = SeriesCloak(TEN[name], n, **CLAIM, series=6_000, mechanism=PaperLaplace())
    assert cloak.ideal_mse == pytest.approx(cloak.papers_mse, rel=1e-12)
    assert abs(cloak.rounding_cost) < 1e-6
    x = np.random.default_rng(n).integers(0, 100, size=(6_000, n))
    published = cloak.simulate(x, rng=np.random.default_rng(n))
    exact = SeriesCloak(TEN[name], n, **CLAIM, series=6_000, mechanism=Fourier()).strategy
    error = published.values - exact.outputs(exact.applied(x).astype(np.float64))[0]
    assert (error**2).mean() == pytest.approx(cloak.expected_mse, rel=0.03)
    assert error.mean() == pytest.approx(0.0, abs=5 * math.sqrt(cloak.expected_mse / 6_000))


@pytest.mark.parametrize(("n", "times"), [(64, 1.9), (256, 3.3)])
def test_at_a_large_epsilon_the_papers_noise_is_not_private_and_refused(n: int, times: float) -> None:
    """Delta is twice to three times the claim for x itself (h = 1); dp-accounting, which knows no Fourier, agrees."""
    identity = Coefficients([1.0])
    with pytest.raises(CalibrationError, match="Fourier") as caught:
        SeriesCloak(identity, n, epsilon=10.0, delta=0.01, circular=True, mechanism=PaperLaplace())
    found = caught.value.true_delta
    assert isinstance(found, float)
    assert found / 0.01 == pytest.approx(times, abs=0.1)
    if n == 64:
        worst = 0.0
        for column in papers_shifts(np.eye(n)[0], 10.0, 0.01).T[: n // 2 + 1 : 8]:
            total = pld.identity(value_discretization_interval=2e-3)
            for shift in column[column > 1e-6]:
                total = total.compose(pld.from_laplace_mechanism(1 / shift, value_discretization_interval=2e-3))
            worst = max(worst, total.get_delta_for_epsilon(10.0))
        assert 0.01 < worst <= found
        assert found / worst < 1.05
    SeriesCloak(identity, n, epsilon=10.0, delta=0.01, circular=True, mechanism=Fourier())


def test_an_average_of_8_over_256_values_has_the_delta_that_the_pages_state() -> None:
    with pytest.raises(CalibrationError) as caught:
        convolve(np.zeros(256), np.ones(8) / 8, epsilon=10.0, delta=0.01, mechanism=PaperLaplace())
    assert caught.value.true_delta == pytest.approx(0.027, abs=5e-4)


@pytest.mark.parametrize("claim", [(1.0, 1e-6), (0.1, 1e-8), (3.0, 1e-3)])
def test_at_a_small_epsilon_the_papers_noise_is_private(claim: tuple[float, float], rng: np.random.Generator) -> None:
    for n in (16, 101):
        h = rng.normal(size=n)
        cloak = SeriesCloak(
            Coefficients(h), n, epsilon=claim[0], delta=claim[1], circular=True, mechanism=PaperLaplace()
        )
        assert cloak.noise.delta(claim[0]) <= claim[1]
        by_formula = max(laplace_delta(column, claim[0]) for column in papers_shifts(h, *claim).T)
        assert cloak.noise.delta(claim[0]) == pytest.approx(by_formula, rel=1e-3, abs=1e-20)


def test_delta_falls_with_epsilon_and_includes_what_tables_are_off_by() -> None:
    cloak = SeriesCloak(RunningSum(), 12, epsilon=2.0, delta=0.01, series=3, mechanism=PaperLaplace())
    assert isinstance(cloak.noise, LaplaceNoise)
    deltas = [cloak.noise.delta(epsilon) for epsilon in (0.0, 0.5, 1.0, 2.0, 40.0)]
    assert deltas == sorted(deltas, reverse=True)
    draws = 3 * cloak.strategy.length
    assert cloak.noise.delta(40.0) == pytest.approx(
        (1 + math.exp(40.0)) * draws * cloak.noise.table.error, rel=1e-6, abs=0
    )


def test_the_largest_of_all_neighbours_is_found_whatever_is_left_out(rng: np.random.Generator) -> None:
    shifts = rng.normal(size=(20, 9)) * 0.3
    each = [laplace_delta(np.abs(column), 1.5) for column in shifts.T]
    assert largest_delta(shifts, 1.5) == max(each)
    assert largest_delta(shifts, 1.5, ignored=0.9 * max(each)) == max(each)
    assert largest_delta(shifts, 1.5, ignored=1.0) == 0.0
    assert largest_delta(np.zeros((4, 3)), 0.0) == 0.0


def test_claims_below_the_error_of_the_tables_are_refused() -> None:
    with pytest.raises(CalibrationError, match="Fourier"):
        SeriesCloak(RunningSum(), 12, epsilon=40.0, delta=1e-19, mechanism=PaperLaplace())


def test_long_tasks_are_refused() -> None:
    PaperLaplace().strategy(task_of(RunningSum(), LONGEST, circular=True))
    with pytest.raises(InputError, match="Fourier") as caught:
        PaperLaplace().strategy(task_of(RunningSum(), LONGEST + 1, circular=True))
    assert caught.value.coefficients == LONGEST + 1
    with pytest.raises(InputError, match="Fourier"):
        PaperLaplace().strategy(task_of(RunningSum(), LONGEST // 2 + 10))


def printed(x: FloatArray, h: FloatArray, epsilon: float, delta: float, rng: np.random.Generator) -> FloatArray:
    """Algorithm 1 as it is printed, with F h for the misprinted F x: Laplace noise on complex coefficients."""
    n = len(x)
    spectrum = np.fft.fft(h) / math.sqrt(n)
    gamma = 2 * math.log(1 / delta) * np.abs(spectrum).sum() / (epsilon**2 * n)
    noisy = np.fft.fft(x) / math.sqrt(n) + rng.laplace(scale=np.sqrt(gamma / np.abs(spectrum)))
    return np.asarray(np.fft.ifft(math.sqrt(n) * spectrum * noisy) * math.sqrt(n))


def imaginary_parts(outputs: FloatArray, h: FloatArray) -> FloatArray:
    """Those of the noisy coefficients of x, from what is published."""
    return np.asarray((np.fft.fft(outputs) / np.fft.fft(h)).imag)


def test_the_printed_algorithm_gives_imaginary_parts_away(rng: np.random.Generator) -> None:
    parts = np.fft.fft(X, axis=1).imag
    assert np.abs(parts[0] - parts[1]).max() > 0.5
    for _ in range(100):
        for database in (0, 1):
            seen = imaginary_parts(printed(X[database], H, 1.0, 1e-6, rng), H)
            assert seen == pytest.approx(parts[database], abs=1e-9)  # and so neighbours are told apart with certainty


@pytest.mark.parametrize("mechanism", [Fourier(), PaperLaplace()])
def test_ours_give_nothing_of_them_away(mechanism: Mechanism) -> None:
    """The same attack, on 20,000 releases of either neighbour, is right in about every other case."""
    size = 20_000
    cloak = SeriesCloak(Coefficients(H), 8, **CLAIM, series=size, circular=True, mechanism=mechanism)
    parts = np.fft.fft(X, axis=1).imag
    right = 0
    for database in (0, 1):
        values = cloak.simulate(np.tile(X[database], (size, 1)), rng=np.random.default_rng(database)).values
        assert values.dtype == np.float64
        seen = imaginary_parts(values, H)
        guessed = np.linalg.norm(seen - parts[1], axis=1) < np.linalg.norm(seen - parts[0], axis=1)
        right += int((guessed == database).sum())
    assert 0.49 < right / (2 * size) <= 0.5 + cloak.noise.delta(0.0) / 2 + 0.01


def test_a_claim_that_is_missed_by_far_is_refused() -> None:
    with pytest.raises(CalibrationError, match="Fourier"):
        SeriesCloak(RunningSum(), 5, epsilon=700.0, delta=0.999999999, mechanism=PaperLaplace())
