"""Lines of text as reports: what is taken for what, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.auditing import ReportReader, printable
from cloakwork.errors import InputError


def test_special_values_are_numbers() -> None:
    found = ReportReader().read(["1.5", "nan", "inf", "-inf", "-0.0"])
    assert math.isnan(found[1])
    assert found[2:].tolist() == [math.inf, -math.inf, -0.0]
    assert np.signbit(found[4])


def test_whole_numbers_stay_exact_beside_a_word_unless_others_have_a_point() -> None:
    large = 2**63 + 1
    assert ReportReader().read([str(large), "ERR"]).tolist() == [large, "ERR"]
    reader = ReportReader()
    assert reader.read(["1.5", str(large), "ERR"]).tolist() == [1.5, float(large), "ERR"]
    assert reader.read(["9" * 400, "-" + "9" * 400, "low"]).tolist() == [math.inf, -math.inf, "low"]
    assert reader.words == ["ERR", "low"]


def test_a_word_may_stand_for_a_whole_row() -> None:
    found = ReportReader().read(["1.5 2.5", "OFFLINE", "3 4", "OK 5"])
    assert found.tolist() == [[1.5, 2.5], ["OFFLINE", "OFFLINE"], [3.0, 4.0], ["OK", 5.0]]


@pytest.mark.parametrize(
    ("later", "kept", "whole"),
    [("2.5", 2.5, False), ("-inf", -math.inf, False), ("ERR", "ERR", True), ("", "", True)],
)
def test_whole_numbers_do_not_stop_at_something_else(later: str, kept: object, whole: bool) -> None:
    reader = ReportReader()
    assert reader.read(["1", "2"]).dtype == np.int64
    assert reader.read(["3", later, "4"]).tolist() == [3, kept, 4]
    assert reader.whole is whole


def test_rows_of_whole_numbers_become_rows_of_numbers() -> None:
    reader = ReportReader()
    reader.read(["1 2"])
    assert reader.read(["3 4", "OFFLINE", "5 6.5"]).tolist() == [[3.0, 4.0], ["OFFLINE", "OFFLINE"], [5.0, 6.5]]


@pytest.mark.parametrize(("first", "later"), [("1 2", "3"), ("1.5", "2.5 3.5")])
def test_a_line_that_does_not_fit_is_named(first: str, later: str) -> None:
    reader = ReportReader()
    reader.read([first])
    with pytest.raises(InputError, match=r"line 2.* entries"):
        reader.read([first, later], where=lambda index: f"line {index + 1}")


def test_words_are_shown_safely_and_stay_apart() -> None:
    assert ReportReader().read(["ok", "ok ", " ok\r\n"]).tolist() == ["ok", "ok ", " ok"]
    assert printable("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    assert printable("\\x1b") != printable("\x1b")
    long = ["x" * 5000 + end for end in "ab"]
    assert len({printable(text) for text in long}) == 2
    assert all(len(printable(text)) < 100 for text in long)
    reader = ReportReader()
    assert [*reader.read(["off"]), *reader.read(["1", "on"])] == ["off", "1", "on"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=20))
def test_any_text_is_read_or_refused_with_a_sentence(lines: list[str]) -> None:
    refused = ""
    try:
        assert len(ReportReader().read(lines)) == len(lines)
    except InputError as problem:
        refused = str(problem)
    assert not refused or "entries" in refused
