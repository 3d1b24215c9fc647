"""The watch over reports: dependence on earlier ones and noise used twice are seen, independence is not mistaken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from benchmarks.mechanisms import boundary_cases, gaussian_sigma, on_grid
from cloakwork.auditing import Verdict, audit
from cloakwork.auditing.independence import IndependenceCheck
from cloakwork.auditing.reports import Reader

Rng = np.random.Generator


def sticky(database: int, size: int, rng: Rng) -> np.ndarray:
    fresh = rng.random(size) < 0.7
    fresh[0] = True
    return on_grid(database + 2 * rng.laplace(size=size))[np.maximum.accumulate(np.where(fresh, np.arange(size), 0))]


def one_noise_a_call(database: int, size: int, rng: Rng) -> np.ndarray:
    return on_grid(database + 2 * rng.laplace() + 0.3 * rng.normal(size=size))


def same_seed(database: int, size: int, rng: Rng) -> np.ndarray:
    return on_grid(database + 2 * np.random.default_rng(5 + database).laplace(size=size))


def in_a_circle(database: int, size: int, rng: Rng) -> np.ndarray:
    return on_grid(database + 2 * np.tile(rng.laplace(size=50), size // 50 + 1)[:size])


def calm_and_storm(database: int, size: int, rng: Rng) -> np.ndarray:
    scale = np.repeat(np.where(rng.random(size // 10 + 1) < 0.5, 0.5, 2.0), 10)[:size]
    return on_grid(database + 2 * scale * rng.laplace(size=size))


def filtered(database: int, size: int, rng: Rng) -> np.ndarray:
    noise = rng.normal(size=size + 1)
    return on_grid(database + 2 * (noise[1:] + 0.5 * noise[:-1]))


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (sticky, "are equal"),
        (one_noise_a_call, "changes slowly"),
        (same_seed, "repeat those from 1 on"),
        (in_a_circle, "follows that of 50 reports before"),
        (calm_and_storm, "the size of the output"),
        (filtered, "the output follows that of the report before"),
    ],
)
def test_reports_that_depend_on_each_other_withhold_the_verdict(mechanism: Any, words: str) -> None:
    result = audit(mechanism, epsilon=1.0, reports=50_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.WITHHELD
    assert result.dependence
    assert words in result.dependence
    assert result.witness is None
    assert (result.epsilon_lower, result.delta_lower) == (0.0, 0.0)
    assert "nothing is concluded" in str(result)


class Tape:
    """Noise that both inputs take from one tape, the second `behind` reports behind the first."""

    def __init__(self, behind: int, apply: Callable[[np.ndarray, int], np.ndarray]) -> None:
        self._noise = np.random.default_rng(9).random(60_000)
        self._places = [behind, 0]
        self._apply = apply

    def __call__(self, database: int, size: int, _: Rng) -> np.ndarray:
        first = self._places[database]
        self._places[database] += size
        return self._apply(self._noise[first : first + size], database)


def quantile(noise: np.ndarray) -> np.ndarray:
    """Laplace noise from uniform noise."""
    return np.asarray(np.sign(noise - 0.5) * -np.log(1 - np.abs(2 * noise - 1)))


def one_seed(database: int, size: int, rng: Rng) -> np.ndarray:
    return on_grid(database + np.random.default_rng(0).laplace(size=size))


def shifted(noise: np.ndarray, database: int) -> np.ndarray:
    return on_grid(database + 2 * quantile(noise))


def flipped(noise: np.ndarray, database: int) -> np.ndarray:
    return on_grid(database + 2 * (1 - 2 * database) * quantile(noise))


def round_the_clock(noise: np.ndarray, database: int) -> np.ndarray:
    """Ranks at this shift are not correlated at all."""
    return on_grid(np.mod(noise + 0.2113 * database, 1.0))


def coin(noise: np.ndarray, database: int) -> np.ndarray:
    return np.where((noise < 0.7) == bool(database), "warm", "cold")


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (one_seed, "follows that of the report that came with it on input 0"),
        (Tape(3, shifted), "on input 1, the output follows that of 3 reports before on input 0"),
        (Tape(1_500, shifted), "follows that of 1500 reports before on input 0"),
        (Tape(1, flipped), "the output mirrors that of the report before on input 0"),
        (Tape(0, round_the_clock), "the last digit of the output follows that of the report that came with it"),
        (Tape(0, coin), "the output mirrors that of the report that came with it on input 0"),
    ],
)
def test_noise_that_both_inputs_share_withholds_the_verdict(mechanism: Any, words: str) -> None:
    result = audit(mechanism, epsilon=3.0, reports=50_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.WITHHELD
    assert words in result.dependence
    assert "noise seems to have been used for both" in str(result)


def autoregressive(rho: float, sigma: float) -> Callable[[int, int, Rng], np.ndarray]:
    """Gaussian noise of which each report keeps a part of the last."""

    def mechanism(database: int, size: int, rng: Rng) -> np.ndarray:
        fresh = np.sqrt(1 - rho**2) * rng.normal(size=size)
        fresh[0] = rng.normal()
        return on_grid(database + sigma * lfilter([1.0], [1.0, -rho], fresh))

    return mechanism


def test_a_violation_is_not_announced_of_reports_that_depend_on_each_other() -> None:
    mechanism = autoregressive(0.25, 0.5 * gaussian_sigma(1.0, 1e-2))
    for seed in range(2):
        result = audit(mechanism, epsilon=1.0, delta=1e-2, rng=np.random.default_rng(seed))
        assert result.verdict is Verdict.WITHHELD
        assert "the output" in result.dependence


def test_independent_reports_pass_both_looks() -> None:
    for seed in range(2):
        for case in boundary_cases():
            watch, rng = IndependenceCheck(), np.random.default_rng(seed)
            reader = Reader(lambda database, size, case=case, rng=rng: case.mechanism(database, size, rng))  # type: ignore[misc]
            for size in (200, 100, 125, 700, 3_000):
                watch.add(reader.pair(size))
                assert not watch.found(digits=False)
                assert not watch.found(digits=True)
            assert not watch.found(digits=False, again=True)


class Restarting:
    """Noise that comes again after `period` reports, on each input its own."""

    def __init__(self, period: int, draw: Callable[[Rng, int], np.ndarray]) -> None:
        self._noise = [draw(np.random.default_rng(seed), period) for seed in (3, 4)]
        self._next = [0, 0]

    def __call__(self, database: int, size: int, _: Rng) -> np.ndarray:
        places = self._next[database] + np.arange(size)
        self._next[database] += size
        return self._noise[database][places % len(self._noise[database])]


@pytest.mark.parametrize(
    ("period", "draw"),
    [(2_500, lambda r, n: on_grid(r.laplace(size=n))), (7_001, lambda r, n: r.random(n) < 0.5)],
)
def test_noise_that_comes_again_is_seen_however_much_later(period: int, draw: Any) -> None:
    result = audit(Restarting(period, draw), epsilon=1.0, reports=20_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.WITHHELD
    assert f"the reports from {period + 1:,} on repeat those from 1 on" in result.dependence


@pytest.mark.parametrize("chance", [0.0, 0.03, 0.3])
def test_reports_of_few_values_are_not_taken_for_noise_that_comes_again(chance: float) -> None:
    def coin(_database: int, size: int, rng: Rng) -> np.ndarray:
        return rng.random(size) < chance

    result = audit(coin, epsilon=1.0, reports=20_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.NONE_FOUND, result.dependence
