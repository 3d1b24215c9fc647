"""Trials on the line: truths, noise, methods and distances."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.accuracy import emd, l1, l2
from cloakwork.physics import Space
from cloakwork.privacy import sensitivity
from cloakwork.recovery import BasisPursuit, PointSources, Recovery, recover
from papers import trials
from papers.calibration import Calibration
from papers.experiment import stream
from papers.statistics import Mean
from papers.trials import Band, Distances, Method, Place, Score, Setting, scaled, try_method, try_with


def test_distances_are_those_of_the_measures() -> None:
    rng = np.random.default_rng(1)
    truth, maps = rng.random((20, 13)), rng.random((20, 13)) * (rng.random((20, 13)) < 0.4)
    maps[:, 3] += 0.1
    found = Distances.between(truth, maps)
    for number, (a, b) in enumerate(zip(truth, maps, strict=True)):
        assert found.emd[number] == pytest.approx(emd(b, a, Space.line(13)), rel=1e-12)
        assert found.l1[number] == pytest.approx(l1(b / b.sum(), a / a.sum()), rel=1e-12)
        assert found.l2[number] == pytest.approx(l2(b / b.sum(), a / a.sum()), rel=1e-12)


def test_an_empty_map_counts_as_the_uniform_one() -> None:
    n = 10
    found = Distances.between(np.eye(n), np.zeros((n, n)))
    places = np.arange(n)
    expected = [np.abs(places - place).sum() / n**2 for place in places]
    assert found.emd == pytest.approx(expected)
    assert found.l1 == pytest.approx(np.full(n, 2 * (1 - 1 / n)))


def test_maps_are_scaled_to_a_total_of_one() -> None:
    assert scaled(np.random.default_rng(1).random((5, 7))).sum(axis=1) == pytest.approx(np.ones(5))


def test_given_sources_are_where_they_are_said_to_be() -> None:
    truth = Setting(n=20, at=(0.25, 0.5)).truth(3, np.random.default_rng(1))
    assert truth.shape == (3, 20)
    assert [np.flatnonzero(row).tolist() for row in truth] == [[4, 9]] * 3


@pytest.mark.parametrize("count", [1, 2, 7])
def test_random_sources_are_distinct_and_everywhere(count: int) -> None:
    truth = Setting(n=10, count=count).truth(4000, np.random.default_rng(1))
    assert (truth.sum(axis=1) == count).all()
    assert set(np.unique(truth)) == {0.0, 1.0}
    share = count / 10
    spread = math.sqrt(share * (1 - share) / 4000)
    assert np.abs(truth.mean(axis=0) - share).max() < 5 * spread


def test_fewer_sources_are_among_more() -> None:
    few, many = (Setting(count=k).truth(50, np.random.default_rng(1)) for k in (3, 8))
    assert (many >= few).all()


def test_a_lone_source_is_at_the_same_position_whatever_the_grid() -> None:
    coarse, fine = (Setting(n=n).truth(50, np.random.default_rng(1)).argmax(axis=1) for n in (10, 400))
    assert (fine // 40 == coarse).all()


def test_private_noise_follows_the_formula_of_the_papers_or_the_exact_one() -> None:
    setting = Setting(epsilon=1.0, delta=0.1)
    delta = sensitivity(setting.line, alpha=0.01)
    paper, exact = (setting.noise(one) for one in (Calibration.PAPER, Calibration.EXACT))
    # rounding to steps costs up to a hundredth
    assert 2 * math.log(12.5) * delta <= paper <= 1.011 * 2 * math.log(12.5) * delta
    assert 1.085878 * delta <= exact <= 1.011 * 1.085879 * delta


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """The noisy readings that are recovered."""
    readings: list[FloatArray] = []

    def spy(noisy: FloatArray, *args: Any, **options: Any) -> Recovery:
        readings.append(noisy)
        return recover(noisy, *args, **options)

    monkeypatch.setattr(trials, "recover", spy)
    return readings


@pytest.mark.parametrize(("factor", "passes"), [(0.8, False), (1.0, True), (1.2, False)])
def test_plain_noise_has_the_size_that_is_asked_for(seen: list[FloatArray], factor: float, passes: bool) -> None:
    try_with(Setting(sigma=0.3 * factor), Calibration.EXACT, BasisPursuit(), np.zeros((200, 100)), (1,))
    close = abs(float(seen[0].std()) / 0.3 - 1) < 5 / math.sqrt(2 * seen[0].size)
    assert close is passes


def test_calibrations_differ_in_the_scale_of_the_noise_only(seen: list[FloatArray]) -> None:
    setting = Setting()
    truth = setting.truth(4, stream(1, 0))
    for calibration in (Calibration.EXACT, Calibration.EXACT, Calibration.PAPER):
        try_with(setting, calibration, BasisPursuit(), truth, (1,))
    ours, again, papers = (noisy - setting.line.apply(truth) for noisy in seen)
    assert (ours == again).all()
    assert np.corrcoef(papers.ravel(), ours.ravel())[0, 1] > 0.999
    assert papers.std() / ours.std() == pytest.approx(2 * math.log(12.5) / 1.085878, rel=0.02)


def scored(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> Score:
    return Score.of(method, try_method(setting, method, truth, key))


def test_a_score_tells_of_frames_that_nothing_fits_and_of_empty_maps() -> None:
    setting = Setting(sigma=0.1, at=(0.5,))
    truth = setting.truth(200, stream(1, 0))
    papers = scored(setting, Method.PAPERS, truth, (1,))
    assert 0.2 < papers.unfitted < 0.55
    assert scored(setting, Method.PURSUIT, truth, (1,)).unfitted < 0.15
    assert papers.empty == 0
    assert scored(Setting(sigma=20.0, at=(0.5,)), Method.PURSUIT, truth, (1,)).empty > 0.5


def test_the_same_key_gives_the_same_score() -> None:
    setting = Setting(m=10, sigma=0.2)
    truth = setting.truth(6, stream(3, 0))
    first, again, other = (scored(setting, Method.POSTERIOR, truth, key) for key in ((3,), (3,), (4,)))
    assert first == again
    assert first != other


def test_the_band_holds_95_of_100_means_of_ten() -> None:
    values = np.random.default_rng(1).exponential(size=200_000)
    band = Band.of(values)
    assert band is not None
    # the sum of ten has a gamma distribution
    assert [10 * band.low, 10 * band.high] == pytest.approx(stats.gamma(10).ppf([0.025, 0.975]).tolist(), rel=0.02)


@pytest.mark.parametrize(("frames", "there"), [(399, False), (400, True)])
def test_there_is_no_band_of_too_few_batches(frames: int, there: bool) -> None:
    assert (Band.of(np.ones(frames)) is not None) is there


@pytest.mark.parametrize(("over", "under"), [(300, 300), (600, 200), (200, 600)])
def test_the_error_of_a_ratio_is_that_of_many_runs(over: int, under: int) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(600):
        shared = rng.exponential(size=max(over, under))
        found.append(Mean.ratio((shared + rng.exponential(size=len(shared)))[:over], shared[:under]))
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(2.0, abs=0.02)
    assert np.mean([one.error for one in found]) == pytest.approx(values.std(), rel=0.12)


def test_settings_say_what_they_are() -> None:
    assert Setting(n=20, sigma=0.5).describe("T") == "n = 20, m = 50, sigma = 0.5"
    assert Setting(epsilon=10.0, delta=0.01).describe("m") == "n = 100, T = 0.05, epsilon = 10, delta = 0.01"


def test_the_posterior_allows_for_as_many_sources_as_the_setting_says() -> None:
    estimator = Method.POSTERIOR.estimator(7)
    assert isinstance(estimator, PointSources)
    assert (estimator.max_sources, estimator.strength) == (7, 1.0)


def test_the_middle_is_one_place_and_anywhere_is_none() -> None:
    assert Place.MIDDLE.at == (0.5,)
    assert Place.ANYWHERE.at == ()
