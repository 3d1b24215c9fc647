"""Whether a key is right: never called wrong when it is right, whatever the readings do."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cloakwork._checks import IntArray
from cloakwork.keys.evidence import KeyCheck, KeyVerdict, evidence

READINGS: dict[str, Callable[[int, np.random.Generator], IntArray]] = {
    "still": lambda n, _: np.full(n, 80_000),
    "a day": lambda n, _: np.rint(30_000 * np.sin(np.arange(n) / 200)).astype(np.int64),
    "restless": lambda n, rng: rng.integers(-5_000, 5_000, n),
    "steps": lambda n, rng: 200_000 * rng.integers(0, 2, n),
    "one peak": lambda n, _: 10**12 * (np.arange(n) == n // 2).astype(np.int64),
}


def drawn(n: int, rng: np.random.Generator, ratio: float = 1000.0) -> IntArray:
    return np.rint(rng.normal(0, ratio, n)).astype(np.int64)


def judged(sent: IntArray, noise: IntArray, ratio: float = 1000.0) -> KeyVerdict:
    check = KeyCheck()
    check.add("s07", sent, noise, ratio)
    return check.verdict()


@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize("n", [1, 4, 10, 100, 1000])
def test_a_right_key_is_never_called_wrong(kind: str, n: int, rng: np.random.Generator) -> None:
    for _ in range(40):
        noise = drawn(n, rng)
        verdict = judged(READINGS[kind](n, rng) + noise, noise)
        assert not verdict.wrong
        assert not verdict.some_wrong


@pytest.mark.parametrize("kind", ["still", "a day", "one peak"])
def test_a_wrong_key_is_called_wrong(kind: str, rng: np.random.Generator) -> None:
    for _ in range(20):
        assert judged(READINGS[kind](300, rng) + drawn(300, rng), drawn(300, rng)).wrong == ("s07",)


@pytest.mark.parametrize("n", [1, 3, 4, 10, 20])
def test_a_wrong_key_with_few_readings_is_not_taken_for_right(n: int, rng: np.random.Generator) -> None:
    """One wrong key in a thousand may pass."""
    verdicts = [judged(drawn(n, rng) + 80_000, drawn(n, rng)) for _ in range(200)]
    assert sum(verdict == KeyVerdict((), (), ()) for verdict in verdicts) <= 3


def test_one_wrong_key_among_many_is_named(rng: np.random.Generator) -> None:
    check = KeyCheck()
    for k in range(10):
        noise = drawn(300, rng)
        check.add(f"s{k}", noise + 7, drawn(300, rng) if k == 4 else noise, 1000.0)
    assert check.verdict() == KeyVerdict(("s4",), (), ())


@pytest.mark.parametrize("ratio", [1.0, 1000.0])
@pytest.mark.parametrize("kind", READINGS)
def test_the_evidence_against_a_right_key_has_the_stated_law(kind: str, ratio: float, rng: np.random.Generator) -> None:
    """Its p-value is below p no more often than p, up to what 600 draws can tell; noise of few steps too."""
    ps = []
    for _ in range(600):
        noise = drawn(24, rng, ratio)
        sums = evidence((READINGS[kind](24, rng) + noise).reshape(3, 8), noise.reshape(3, 8))
        ps.append(sums.p_right)
    for p in (0.001, 0.01, 0.1):
        assert np.mean(np.array(ps) < p) <= stats.binom.ppf(1 - 1e-6, 600, p) / 600
