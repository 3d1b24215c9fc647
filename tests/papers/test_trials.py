"""Trials on the line: truths, noise, methods and distances."""

import math

import numpy as np
import pytest
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.accuracy import emd, l1, l2
from cloakwork.physics import Space
from cloakwork.privacy import sensitivity
from papers.calibration import Calibration
from papers.experiment import stream
from papers.statistics import Mean
from papers.trials import Band, Distances, Method, Score, Setting, try_method


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


@pytest.mark.parametrize("count", [1, 2, 7])
def test_random_sources_are_distinct_and_everywhere(count: int) -> None:
    truth = Setting(n=10, count=count).truth(4000, np.random.default_rng(1))
    assert (truth.sum(axis=1) == count).all()
    assert set(np.unique(truth)) == {0.0, 1.0}
    share = count / 10
    spread = math.sqrt(share * (1 - share) / 4000)
    assert np.abs(truth.mean(axis=0) - share).max() < 5 * spread


def test_private_noise_follows_the_formula_of_the_papers_or_the_exact_one() -> None:
    setting = Setting(epsilon=1.0, delta=0.1)
    delta = sensitivity(setting.line, alpha=0.01)
    paper, exact = (setting.noise(one) for one in (Calibration.PAPER, Calibration.EXACT))
    # rounding to steps costs up to a hundredth
    assert 2 * math.log(12.5) * delta <= paper <= 1.011 * 2 * math.log(12.5) * delta
    assert 1.085878 * delta <= exact <= 1.011 * 1.085879 * delta


def scored(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> Score:
    return Score.of(method, try_method(setting, method, truth, key))


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
