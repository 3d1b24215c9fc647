"""Filters as people write them, and files of coefficients: read as meant, or refused by line."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError
from cloakwork.series import describe_coefficients, parse_filters
from cloakwork.series.filter_texts import read_coefficients

GOOD = [
    ("0.5\n0.25\n0.25\n", "3 coefficients from lag 0: 0.5, 0.25, 0.25"),
    ("\ufeffweight\n1\n-2\n\n \n,\n", "2 coefficients from lag 0: 1, -2"),
    ("0.5\r\n0.25\r\n", "2 coefficients from lag 0: 0.5, 0.25"),
    ("0;0.5\n1;0.25\n", "2 coefficients from lag 0: 0.5, 0.25"),
    ("-1\t0.5\n1\t0.25\n", "3 coefficients from lag -1: 0.5, 0, 0.25"),
    ("0,0.5\n1,1\n", "2 coefficients from lag 0: 0.5, 1"),
    ("0, 5\n1, 25\n", "2 coefficients from lag 0: 5, 25"),
    ('"lag","weight (h)"\n0,5\n', "1 coefficient from lag 0: 5"),
    ("1\n2\n3\n4\n5\n6\n", "6 coefficients from lag 0: 1, 2, 3, 4, 5, ..."),
]
BAD = [  # a file, and the line at fault
    *((f"{cell}\n0.25\n0.25\n", 1) for cell in ("0.5x", "1/2", "o.5", "nan")),
    ("0.5 0.25 0.25\n", 1),
    ("0.5\n0.25\nweight\n", 3),
    ("weight\n0.5\n1e999\n", 3),
    ("lag,5\n0,0.5\n", 1),
    ("0;0,5\n1;0,25\n", 1),
    ("0.5;0.5\n", 1),
    ("0,0.5\n0,0.25\n", 2),
    ("0,5\n", None),
    ("1,5\n0,25\n", None),
    ("0.5\n\n0.25\n", 2),
    ("0,0.5\n,\n1,0.25\n", 2),
    ("\n0.5\n", 1),
    ("0.5\n0,0.25\n", 2),
    ("0,1,0.5\n", 1),
    ('0.5\n"0.25\n', 2),
    ("weight\n", None),
    ("\n\n", None),
]
LINES = [
    "0.5",
    "1",
    "-2",
    "1/2",
    "0.5x",
    "0,5",
    "0,0.5",
    "1;1",
    "2\t1",
    "",
    " ",
    "a",
    "lag,w",
    "nan",
    "1 2",
    '"3"',
    '"',
]


@pytest.mark.parametrize(("text", "summary"), GOOD)
def test_files_of_coefficients_have_one_column_or_lags(tmp_path: Path, text: str, summary: str) -> None:
    (tmp_path / "k.csv").write_text(text, encoding="utf-8", newline="")
    assert describe_coefficients(read_coefficients(tmp_path / "k.csv")) == summary


@pytest.mark.parametrize(("text", "line"), BAD)
def test_a_bad_file_of_coefficients_is_refused_by_its_line(tmp_path: Path, text: str, line: int | None) -> None:
    (tmp_path / "k.csv").write_text(text)
    with pytest.raises(InputError) as problem:
        read_coefficients(tmp_path / "k.csv")
    assert problem.value.values.get("line") == line


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.sampled_from(LINES), max_size=4))
def test_each_line_but_a_line_of_names_gives_a_coefficient_or_the_file_is_refused(lines: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.csv"
        path.write_text("\n".join(lines))
        try:
            coefficients = read_coefficients(path)
        except InputError:
            return
    while not lines[-1].strip(" \t,;"):
        del lines[-1]
    named = lines[0].strip(' "')[:1].isalpha()
    values = coefficients.values
    assert sum(value != 0 for value in values) <= len(lines) - named <= len(values)


def test_filters_are_read_as_people_write_them() -> None:
    texts = ["running-sum", "window:24", "average:3", "decay:0.9", "power:1", "trend:24", "seasonal:24x4", "seasonal:7"]
    assert [made.name for made in parse_filters(texts)] == [
        *("running-sum", "window-24", "average-3", "decay-0.9", "power-1", "trend-24", "seasonal-24x4", "seasonal-7x4")
    ]


@pytest.mark.parametrize(
    "text", ["sum", "window:x", "seasonal:24x", "average:1.5", "trend", "decay:", "decay:1", "window:0", "none.csv"]
)
def test_a_text_that_is_not_a_filter_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(InputError) as problem:
        parse_filters(["running-sum", text])
    assert problem.value.values["parameter"] == "filters"
    assert text in str(problem.value)


def test_no_filter_is_refused() -> None:
    with pytest.raises(InputError) as problem:
        parse_filters([])
    assert problem.value.values["parameter"] == "filters"
