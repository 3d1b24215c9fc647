"""Words among numbers: outcomes of their own, wherever and whenever they come."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.mechanisms import on_grid
from cloakwork.auditing import Audit, Verdict, audit
from cloakwork.auditing.report_samples import ReportKind, ask, kind_of, read

Rng = np.random.Generator


def run(mechanism: Callable[[int, int, Rng], Any], **options: Any) -> Audit:
    given: dict[str, Any] = {"epsilon": 1.0, "reports": 30_000, "rng": np.random.default_rng(1)}
    return audit(mechanism, **(given | options))


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
@pytest.mark.parametrize("late", [0, 600])
@pytest.mark.parametrize("database", [0, 1])
def test_a_word_that_one_input_has_is_found_and_named(plain: Any, late: int, database: int) -> None:
    seen = [0, 0]

    def mechanism(at: int, size: int, rng: Rng) -> np.ndarray:
        seen[at] += size
        failed = (rng.random(size) < 0.05) & (at == database) & (seen[at] > late)
        return with_words(plain(at, size, rng), failed)

    result = run(mechanism)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert '"ERR"' in result.witness.event
    assert result.witness.counts[1 - database] == 0


@pytest.mark.parametrize("plain", [number, whole], ids=["floats", "whole"])
@pytest.mark.parametrize("word", ["ERR", None, "1_000", "", 2.5], ids=str)
def test_words_that_both_inputs_have_raise_no_alarm(plain: Any, word: Any) -> None:
    result = run(lambda d, n, r: with_words(plain(d, n, r), r.random(n) < 0.002, word), reports=5_000)
    assert result.verdict is Verdict.NONE_FOUND, str(result)


def test_two_words_are_told_apart() -> None:
    def mechanism(database: int, size: int, rng: Rng) -> np.ndarray:
        return with_words(number(0, size, rng), rng.random(size) < 0.1, f"E{database}")

    result = run(mechanism)
    assert result.witness is not None
    assert result.witness.event in {'the output is "E0"', 'the output is "E1"'}


def test_a_word_in_a_row_is_named_with_its_row() -> None:
    def mechanism(database: int, size: int, rng: Rng) -> np.ndarray:
        rows = rng.integers(0, 2, size=(size, 2)).astype(object)
        rows[rng.random(size) < 0.2 * database, 1] = "ERR"
        return rows

    result = run(mechanism)
    assert result.witness is not None
    assert '"ERR"' in result.witness.event


@pytest.mark.parametrize("late", [0, 600])
def test_numbers_that_numpy_made_words_are_numbers_again(late: int) -> None:
    seen = [0, 0]

    def mechanism(database: int, size: int, rng: Rng) -> Any:
        seen[database] += size
        values = number(database, size, rng)
        return np.array([*values.tolist()[1:], "ERR"]) if database and seen[1] > late else values

    assert run(mechanism, reports=3_000).verdict is Verdict.NONE_FOUND


def test_a_list_of_numbers_and_words_is_read_as_it_stands() -> None:
    answers = ask(lambda _d, _n, _r: [1.5, "ERR", 2, None], 4, np.random.default_rng(0))
    assert kind_of(answers) is ReportKind.FLOAT
    found = read(answers[0], ReportKind.FLOAT)
    assert found.words is not None
    assert found.words[:, 0].tolist() == [None, "ERR", None, "None"]
    assert found.values[[0, 2], 0].tolist() == [1.5, 2.0]
    assert len(np.unique(found.codes)) == 4


def test_a_mechanism_of_words_stays_one() -> None:
    texts = np.array(["1.0", "1", "on"])
    answers = ask(lambda _d, n, r: texts[r.integers(0, 3, size=n)], 50, np.random.default_rng(0))
    assert kind_of(answers) is ReportKind.TEXT
    assert kind_of(ask(lambda _d, n, _r: np.zeros(n), 5, np.random.default_rng(0)), ReportKind.TEXT) is ReportKind.TEXT
    assert len(np.unique(read(answers[0], ReportKind.TEXT).codes)) == 3


def test_numbers_among_words_are_words_that_have_a_size() -> None:
    def mechanism(database: int, size: int, rng: Rng) -> np.ndarray:
        found = np.array(["on", "off"], dtype=object)[rng.integers(0, 2, size=size)]
        found[rng.random(size) < 0.1 * database * (size != 200)] = 7.5
        return found

    result = run(mechanism)
    assert result.witness is not None
    assert result.witness.event in {'the output is "7.5"', "the output is above 7.5", "the output is 7.5"}


def test_a_whole_number_means_the_same_before_and_after_the_first_float() -> None:
    big = 2**60 + 1
    forms: list[Any] = [np.array([big, -3]), np.array([big, -3], dtype=object), [big, "-3"]]
    for form in forms:
        answers = ask(lambda _d, _n, _r: form, 2, np.random.default_rng(0))  # noqa: B023 - called at once
        assert read(answers[0], ReportKind.WHOLE).codes[:, 0].tolist() == [big, (1 << 64) - 3]
    floats = ask(lambda _d, _n, _r: [-3.0, 2.5], 2, np.random.default_rng(0))
    assert kind_of(floats, ReportKind.WHOLE) is ReportKind.FLOAT
    assert read(floats[0], ReportKind.WHOLE).codes[0, 0] == (1 << 64) - 3


def test_a_float_that_comes_late_is_found_and_what_came_before_still_counts() -> None:
    def mechanism(database: int, size: int, rng: Rng) -> np.ndarray:
        values = whole(0, size, rng)
        return values + 0.5 * (rng.random(size) < 0.1) if database and size > 200 else values

    result = run(mechanism)
    assert result.verdict is Verdict.VIOLATION
    assert "zeros at the end of the mantissa" in result.events
    assert run(lambda _d, n, r: whole(0, n, r).astype(float if n > 200 else int)).verdict is Verdict.NONE_FOUND


def test_zeros_on_one_input_and_words_on_the_other_are_told_apart() -> None:
    result = run(lambda d, n, _r: np.array(["a"] * n) if d else np.zeros(n))
    assert result.verdict is Verdict.VIOLATION
