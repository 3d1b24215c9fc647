"""Errors of a model are noticed, and do little harm."""

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine
from cloakwork.privacy import Assumptions, Cloak
from cloakwork.recovery import PointSources, recover
from cloakwork.recovery.goodness_of_fit import Misfit, draw_checked

LINE = HeatLine(n=100, m=50, T=0.05)
CLOAK = Cloak(LINE, epsilon=1.0, delta=0.1, alpha=0.01)
RNG_SEED = 5


def placed(number: int) -> list[FloatArray]:
    rng = np.random.default_rng(RNG_SEED)
    return [rng.uniform(0.1, 0.9, (rng.integers(1, 4), 1)) for _ in range(number)]


def readings(physics: HeatLine, number: int, strength: float = 1.0) -> FloatArray:
    return np.stack([strength * physics.columns_at(x).sum(axis=1) for x in placed(number)])


@pytest.mark.parametrize("strength", [1.0, (0.0, 1.0), None], ids=["known", "free", "common"])
def test_a_right_model_is_rarely_doubted(strength: float | tuple[float, float] | None) -> None:
    noisy = CLOAK.simulate(readings(LINE, 50), rng=np.random.default_rng(1))
    found = recover(noisy, CLOAK, estimator=PointSources(strength))
    assert sum(fit.doubtful for fit in found.fit) <= 2
    assert np.mean([fit.p_value < 0.05 for fit in found.fit]) < 0.12
    assert found.fit_together > 0.01


def test_readings_that_stray_from_the_map_as_far_as_stated_are_rarely_doubted() -> None:
    errors = np.resize([0.0, 0.5, 1.0], 50)
    knowing = Cloak(LINE, epsilon=1.0, delta=0.1, alpha=0.01, assumptions=Assumptions(map_error=errors))
    strayed = readings(LINE, 50) + errors * np.random.default_rng(6).standard_normal((50, 50))
    noisy = CLOAK.simulate(strayed, rng=np.random.default_rng(1))
    doubted = [
        sum(fit.doubtful for fit in recover(noisy, cloak, estimator=PointSources(1.0)).fit)
        for cloak in (CLOAK, knowing)
    ]
    assert doubted[0] > 25
    assert doubted[1] <= 2


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_diffusion_off_by_thirty_percent_shows_in_all_frames_together(factor: float) -> None:
    other = HeatLine(n=100, m=50, T=0.05 * factor)
    noisy = CLOAK.simulate(readings(other, 40), rng=np.random.default_rng(2))
    found = recover(noisy, CLOAK, estimator=PointSources(1.0))
    assert found.fit_together < 1e-6
    assert "do not fit the model" in str(found)


def test_sources_stronger_than_stated_are_reported_and_vicinities_widened() -> None:
    noisy = CLOAK.simulate(readings(LINE, 40, 1.5), rng=np.random.default_rng(3))
    found = recover(noisy, CLOAK, estimator=PointSources(1.0, max_sources=3))
    doubted = [k for k, fit in enumerate(found.fit) if fit.doubtful]
    assert len(doubted) > 20
    assert any(found.fit[k].inflation > 1 for k in doubted)
    widened = next(k for k in doubted if found.fit[k].inflation > 1)
    assert "widened" in str(found.fit[widened])


@pytest.mark.parametrize("wrong", ["outlier", "dead"])
def test_a_sensor_that_nothing_explains_is_set_aside_and_named(wrong: str) -> None:
    truth = np.array([[0.41], [0.6]])
    clean = LINE.columns_at(truth).sum(axis=1)
    noisy = CLOAK.simulate(np.tile(clean, (20, 1)), rng=np.random.default_rng(4))
    noisy[:, 20] = noisy[:, 20] + 15 * CLOAK.sigma if wrong == "outlier" else noisy[:, 20] - clean[20]
    found = recover(noisy, CLOAK, estimator=PointSources(1.0))
    assert np.mean([fit.set_aside == (20,) for fit in found.fit]) > 0.9
    assert "sensor 20" in str(found.fit[0])
    errors = [abs(sorted(s.at for s in listed) - truth[:, 0]).mean() for listed in found.sources]
    assert np.mean(errors) < 0.04


def test_an_outlier_shows_in_the_smallest_total_too() -> None:
    noisy = CLOAK.simulate(readings(LINE, 20), rng=np.random.default_rng(4))
    assert not any(fit.doubtful for fit in recover(noisy, CLOAK).fit)
    noisy[:, 7] += 15 * CLOAK.sigma
    assert all(fit.doubtful for fit in recover(noisy, CLOAK).fit)


def test_p_values_are_uniform_for_noise() -> None:
    rng = np.random.default_rng(0)
    rests = rng.standard_normal((2000, 40))
    values = np.array([Misfit(rest, rest, 40, rng.chisquare(10), 10).p_value for rest in rests])
    for level in (0.01, 0.1):
        assert (values < level).mean() <= 1.1 * level + 0.005


def test_a_missing_sensor_is_not_one_that_is_set_aside() -> None:
    calls: list[tuple[frozenset[int], float]] = []

    def draw(excluded: frozenset[int], inflation: float) -> tuple[int, Misfit]:
        calls.append((excluded, inflation))
        rest = np.full(20, 0.5)
        rest[7] = 0.0 if 7 in excluded else 9.0
        return len(calls), Misfit(rest, rest, 20, 1.0, 5)

    first, used, fit = draw_checked(draw, frozenset({3}), frozenset({4}), remedies=1)
    assert (first, used) == (1, 2)
    assert calls == [(frozenset({3, 4}), 1.0), (frozenset({3, 4, 7}), 1.0)]
    assert fit.set_aside == (4, 7)
    assert fit.p_value > 0.1
