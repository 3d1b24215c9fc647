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
