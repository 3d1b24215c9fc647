"""Moments as people write them."""

import pytest

from cloakwork.cli.time_arguments import parse_moment, parse_span
from cloakwork.errors import InputError
from cloakwork.series import span_text


@pytest.mark.parametrize("text", ["1900-01-01", "1969-12-31T23:59:59.999", "1970-01-01T00:00+01:00", "0001-01-01"])
def test_times_before_1970_are_refused_as_such(text: str) -> None:
    with pytest.raises(InputError, match=r"--from .*1970"):
        parse_moment("--from", text)


@pytest.mark.parametrize("text", ["then", "-5", "", "253402300800000", "10000-01-01"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="2026-11-15"):
        parse_moment("--from", text)


@pytest.mark.parametrize(("text", "found"), [("1970-01-01", 0), ("0", 0), ("253402300799999", 253_402_300_799_999)])
def test_the_first_and_the_last_moment_are_read(text: str, found: int) -> None:
    assert parse_moment("--from", text) == found


def test_spans_are_read_as_people_write_them() -> None:
    for text in ("1s", "15m", "1h", "36h", "1d", "2w"):
        assert span_text(parse_span("--every", text)) == text
    for text in ("", "h", "1.5h", "-1h", "1 h", "1000000h"):
        with pytest.raises(InputError) as problem:
            parse_span("--every", text)
        assert problem.value.values["option"] == "--every"
