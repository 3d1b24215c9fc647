"""The auditor takes whatever a mechanism may give, words among numbers too, and refuses what it cannot use."""

import re
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from benchmarks.mechanisms import on_grid
from cloakwork.auditing import Verdict, audit
from cloakwork.errors import InputError

Rng = np.random.Generator


def run(mechanism: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "reports": 3_000, "rng": np.random.default_rng(1)}
    return audit(mechanism, **(given | options))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _d, n, _r: np.zeros(n - 1), r"shape \(199,\) for 200 reports on input 0"),
        (lambda _d, _n, _r: None, r"shape \(\)"),
        (lambda _d, n, _r: np.zeros((n, 2, 2)), r"shape \(200, 2, 2\)"),
        (lambda _d, n, _r: [[1], [1, 2]] * (n // 2), "return numbers, bools or words of shape"),
        (lambda _d, n, _r: np.zeros(n) * 1j, "complex128"),
        (lambda d, n, _r: np.zeros((n, 2 + d)), "with 2 and with 3 entries"),
        (lambda _d, n, _r: np.zeros((n, 2 if n == 200 else 3)), "with 2 and with 3 entries"),
        (lambda _d, _n, _r: 1 / 0, "failed when asked for 200 reports on input 0: ZeroDivisionError"),
    ],
)
def test_answers_that_are_not_reports_are_refused(answer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(answer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 701.0}, "at most 700"),
        ({"epsilon": np.nan}, "epsilon=nan"),
        ({"delta": 1.0}, "below 1"),
        ({"reports": 299}, "reports=299"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"rng": 7}, "default_rng"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(lambda _d, n, _r: np.zeros(n), **options)
    with pytest.raises(InputError, match="function of"):
        run(3)


ALIKE: list[Any] = [
    lambda _d, n, _r: np.zeros(n),
    lambda _d, n, _r: np.full(n, np.nan),
    lambda _d, n, r: np.where(r.random(n) < 0.3, np.inf, -np.inf),
    lambda _d, n, r: np.round(r.normal(size=n), 2) * 1e306,
    lambda _d, n, r: r.normal(size=n) * 5e-320,
    lambda _d, n, r: np.uint64(2**63 + 1000) + r.integers(0, 50, size=n).astype(np.uint64),
    lambda _d, n, r: [2**70 + int(v) for v in r.integers(0, 50, size=n)],
    lambda _d, n, r: r.random(n) < 0.5,
    lambda _d, n, r: np.array(["a", "b", "c"])[r.integers(0, 3, size=n)],
    lambda d, n, r: r.integers(0, 3, size=n) if d else r.integers(0, 3, size=n).astype(float),
    lambda _d, n, r: np.round(r.normal(size=(n, 300)), 2),
]


@pytest.mark.parametrize(("mechanism", "epsilon"), list(zip(ALIKE, cycle((0.0, 700.0)))))
def test_inputs_that_are_not_told_apart_raise_no_alarm(mechanism: Any, epsilon: float) -> None:
    result = run(mechanism, epsilon=epsilon, reports=1_000)
    assert result.verdict is Verdict.NONE_FOUND, str(result)
    assert result.delta_lower == 0.0


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda d, n, _r: np.zeros(n) + d, "the output is"),
        (lambda d, n, r: 2**60 + d + 2 * r.integers(-50, 50, size=n), "lowest bit of the output"),
        (lambda d, n, r: [2**70 + 2 * int(v) + d for v in r.integers(0, 50, size=n)], "lowest bit of the output"),
        (lambda d, n, _r: np.full(n, -0.0 if d else 0.0), r"0\.0"),
        (lambda d, n, r: np.where(r.random(n) < 0.05 * d, np.nan, r.integers(9, size=n)), "not a number"),
        (
            lambda d, n, r: np.array([1.5 if u < 0.5 else ("E1" if u < 0.7 + 0.25 * d else None) for u in r.random(n)]),
            '"None"|"E1"',
        ),
    ],
)
def test_inputs_that_are_told_apart_are_found_and_described(mechanism: Any, words: str) -> None:
    result = run(mechanism)
    assert result.verdict is Verdict.VIOLATION
    assert re.search(words, result.witness.event), result.witness.event


def number(database: int, size: int, rng: Rng) -> np.ndarray:
    return on_grid(database + rng.laplace(size=size))


def whole(database: int, size: int, rng: Rng) -> np.ndarray:
    return np.round(5 * (database + rng.laplace(size=size))).astype(int)


def with_words(values: np.ndarray, places: Any, word: Any = "ERR") -> np.ndarray:
    """Objects where there is a word, numbers where there is none: as a parser of lines would give them."""
    found = values.astype(object)
    found[places] = word
    return found if np.any(places) else values


@pytest.mark.parametrize("plain", [number, whole], ids=["floats", "whole"])
@pytest.mark.parametrize(("late", "database"), [(0, 0), (600, 1)])
def test_a_word_that_one_input_has_is_found_and_named(plain: Any, late: int, database: int) -> None:
    seen = [0, 0]

    def mechanism(at: int, size: int, rng: Rng) -> np.ndarray:
        seen[at] += size
        failed = (rng.random(size) < 0.05) & (at == database) & (seen[at] > late)
        return with_words(plain(at, size, rng), failed)

    result = run(mechanism, reports=30_000)
    assert result.verdict is Verdict.VIOLATION
    assert '"ERR"' in result.witness.event
    assert result.witness.counts[1 - database] == 0


@pytest.mark.parametrize(
    ("plain", "word"), [(number, "ERR"), (whole, "ERR"), (number, None), (whole, "1_000"), (number, ""), (whole, 2.5)]
)
def test_words_that_both_inputs_have_raise_no_alarm(plain: Any, word: Any) -> None:
    result = run(lambda d, n, r: with_words(plain(d, n, r), r.random(n) < 0.002, word), reports=5_000)
    assert result.verdict is Verdict.NONE_FOUND, str(result)
