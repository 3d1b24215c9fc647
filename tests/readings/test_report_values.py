"""Lines of text as reports: what is taken for what, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.errors import InputError
from cloakwork.readings import ReportForm, ReportReader, printable


def test_special_values_are_numbers() -> None:
    found = ReportReader().read(["1.5", "nan", "inf", "-inf", "-0.0"])
    assert math.isnan(found[1])
    assert found[2:].tolist() == [math.inf, -math.inf, -0.0]
    assert np.signbit(found[4])


def test_numbers_stay_exact_beside_a_word_unless_floats_are_asked_for() -> None:
    large = 2**63 + 1
    assert ReportReader().read([str(large), "ERR"]).tolist() == [large, "ERR"]
    asked = ReportReader(ReportForm.NUMBERS)
    assert asked.read([str(large), "ERR"]).tolist() == [float(large), "ERR"]
    assert asked.read(["9" * 400, "-" + "9" * 400, "low"]).tolist() == [math.inf, -math.inf, "low"]
    assert asked.words == ["ERR", "low"]


def test_a_word_may_stand_for_a_whole_row() -> None:
    found = ReportReader().read(["1.5 2.5", "OFFLINE", "3 4", "OK 5"])
    assert found.tolist() == [[1.5, 2.5], ["OFFLINE", "OFFLINE"], [3.0, 4.0], ["OK", 5.0]]


@pytest.mark.parametrize(
    ("later", "kept", "form"),
    [
        ("2.5", 2.5, ReportForm.NUMBERS),
        ("-inf", -math.inf, ReportForm.NUMBERS),
        ("ERR", "ERR", ReportForm.WHOLE),
        ("", "", ReportForm.WHOLE),
    ],
)
def test_whole_numbers_that_nobody_asked_for_do_not_stop_at_something_else(
    later: str, kept: object, form: ReportForm
) -> None:
    reader = ReportReader()
    assert reader.read(["1", "2"]).dtype == np.int64
    assert reader.read(["3", later, "4"]).tolist() == [3, kept, 4]
    assert reader.form is form


def test_rows_of_whole_numbers_become_rows_of_numbers() -> None:
    reader = ReportReader()
    reader.read(["1 2"])
    assert reader.read(["3 4", "OFFLINE", "5 6.5"]).tolist() == [[3.0, 4.0], ["OFFLINE", "OFFLINE"], [5.0, 6.5]]


@pytest.mark.parametrize(
    ("form", "first", "later", "said"),
    [
        (ReportForm.WHOLE, "1", "2.5", "whole numbers"),
        (ReportForm.WHOLE, "1", "ERR", "whole numbers"),
        (ReportForm.WHOLE, "1", "", "whole numbers"),
        (ReportForm.WHOLE, "1", "1_000", "whole numbers"),
        (None, "1 2", "3", "1 entries"),
        (None, "1.5", "2.5 3.5", "2 entries"),
    ],
)
def test_a_line_that_does_not_fit_is_named(form: ReportForm | None, first: str, later: str, said: str) -> None:
    reader = ReportReader(form)
    reader.read([first])
    with pytest.raises(InputError, match=said) as caught:
        reader.read([first, later], where=lambda index: f"line {index + 1}")
    assert "line 2" in str(caught.value)


def test_words_are_shown_safely_and_stay_apart() -> None:
    assert ReportReader(ReportForm.WORDS).read(["ok", "ok ", " ok\r\n"]).tolist() == ["ok", "ok ", " ok"]
    assert printable("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    assert printable("\\x1b") != printable("\x1b")
    long = ["x" * 5000 + end for end in "ab"]
    assert len({printable(text) for text in long}) == 2
    assert all(len(printable(text)) < 100 for text in long)
    assert ReportReader(ReportForm.WORDS).read(["1", "on"]).tolist() == ["1", "on"]


@given(
    st.lists(st.text(max_size=40), min_size=1, max_size=20),
    st.sampled_from([None, ReportForm.NUMBERS, ReportForm.WORDS]),
)
def test_any_text_is_read_or_refused_with_a_sentence(lines: list[str], form: ReportForm | None) -> None:
    reader = ReportReader(form)
    refused = ""
    try:
        assert len(reader.read(lines)) == len(lines)
    except InputError as problem:
        refused = str(problem)
    assert not refused or "entries" in refused or "whole numbers" in refused
