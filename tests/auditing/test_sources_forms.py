"""Lines of text as reports: what is taken for what, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.auditing.sources import Form, Reader
from cloakwork.auditing.sources.forms import word_of
from cloakwork.errors import InputError


def codes(reader: Reader, lines: list[str]) -> list[int]:
    found: list[int] = reader.read(lines).view(np.uint64).tolist()
    return found


def test_whole_numbers_stay_exact_however_large() -> None:
    reader = Reader()
    assert reader.read(["1", "-7", " 3 "]).tolist() == [1, -7, 3]
    assert reader.form is Form.WHOLE
    assert reader.read([str(2**70 + 1), "5"]).tolist() == [2**70 + 1, 5]


def test_numbers_words_and_rows_are_told_apart_by_the_first_lines() -> None:
    decided = {}
    for lines in (("1", "2.5"), ("1", "ERR"), ("on", "off"), ("1 2", "3,4"), ("0.5; 1", "2 3")):
        reader = Reader()
        reader.decide(lines)
        decided[lines] = (reader.form, reader.width)
    assert list(decided.values()) == [
        (Form.NUMBERS, 1),
        (Form.NUMBERS, 1),
        (Form.WORDS, 1),
        (Form.WHOLE, 2),
        (Form.NUMBERS, 2),
    ]


def test_special_values_are_numbers() -> None:
    found = Reader().read(["1.5", "nan", "inf", "-inf", "-0.0"])
    assert math.isnan(found[1])
    assert found[2:].tolist() == [math.inf, -math.inf, -0.0]
    assert np.signbit(found[4])


def test_words_among_numbers_are_outcomes_that_do_not_stop_the_numbers() -> None:
    values = Reader().read(["fault", "2.5", "", "sensor fault 7"])
    assert np.isnan(values).tolist() == [True, False, True, True]
    assert values[1] == 2.5
    assert len(set(values[[0, 2, 3]].view(np.uint64).tolist())) == 3


def test_words_of_several_kinds_have_several_codes() -> None:
    reader = Reader(Form.NUMBERS)
    one, two, again, real = codes(reader, ["low", "high", "low", "nan"])
    assert one == again
    assert len({one, two, real}) == 3
    assert reader.words == ["low", "high"]
    assert reader.explain("the output is exactly nan") == 'the output is a word such as "low", "high"'
    assert Reader().explain("the output is exactly nan") == "the output is exactly nan"


def test_one_word_is_named_in_the_event() -> None:
    reader = Reader(Form.NUMBERS)
    reader.read(["ERR7", "1.0"])
    assert reader.explain("the output is exactly nan") == 'the output is "ERR7"'


def test_a_word_may_stand_for_a_whole_row() -> None:
    reader = Reader()
    found = reader.read(["1.5 2.5", "OFFLINE", "3 4", "OK 5"])
    assert found.shape == (4, 2)
    assert np.isnan(found[1]).all()
    assert (np.isnan(found[3, 0]), found[3, 1]) == (True, 5.0)


def test_a_word_beside_each_number_does_not_hide_the_numbers() -> None:
    assert Reader().read(["OK 1.5", "OK 2.5"])[:, 1].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        ("1", "2.5", "--as numbers"),
        ("1", "ERR", "--as numbers"),
        ("1", "", "--as numbers"),
        ("1 2", "3", "has 1 entries, where the first had 2"),
        ("1.5", "2.5 3.5", "has 2 entries"),
    ],
)
def test_a_line_that_does_not_fit_is_named(first: str, later: str, said: str) -> None:
    reader = Reader()
    reader.read([first])
    with pytest.raises(InputError, match=said) as caught:
        reader.read([first, later], lambda index: f"line {index + 1}")
    assert "line 2" in str(caught.value)


def test_words_are_shown_safely_and_stay_apart() -> None:
    assert word_of("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    long = ["x" * 5000 + end for end in "ab"]
    assert len({word_of(text) for text in long}) == 2
    assert all(len(word_of(text)) < 100 for text in long)
    assert Reader(Form.WORDS).read(["1", "on"]).tolist() == ["1", "on"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=20), st.sampled_from([None, Form.NUMBERS, Form.WORDS]))
def test_any_text_is_read_or_refused_with_a_sentence(lines: list[str], form: Form | None) -> None:
    reader = Reader(form)
    refused = ""
    try:
        assert len(reader.read(lines)) == len(lines)
    except InputError as problem:
        refused = str(problem)
    assert not refused or "entries" in refused or "--as numbers" in refused
