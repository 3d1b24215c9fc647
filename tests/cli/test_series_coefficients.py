"""Files of coefficients: read as they were meant, or refused by line."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.cli.series_coefficients import described, read_coefficients
from cloakwork.errors import InputError
from tests.cli.conftest import Run
from tests.cli.series_kit import PERIOD

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


@pytest.mark.parametrize(("text", "said"), GOOD)
def test_what_was_read_is_said(here: Path, text: str, said: str) -> None:
    (here / "k.csv").write_text(text, encoding="utf-8", newline="")
    assert described(read_coefficients(here / "k.csv")) == said


BAD = [
    *((f"{cell}\n0.25\n0.25\n", "line 1: it must have finite numbers only") for cell in ("0.5x", "1/2", "o.5", "nan")),
    ("0.5 0.25 0.25\n", "line 1: it must have finite numbers only"),
    ("0.5\n0.25\nweight\n", "line 3: it must have finite numbers only"),
    ("weight\n0.5\n1e999\n", "line 3: it must have finite numbers only"),
    ("lag,5\n0,0.5\n", "line 1: it must have finite numbers only"),
    ("0;0,5\n1;0,25\n", "line 1: it must have finite numbers only"),
    ("0.5;0.5\n", "line 1: lags are whole numbers"),
    ("0,0.5\n0,0.25\n", "line 2: lags are whole numbers, each once"),
    ("0,5\n", "a number with a decimal comma"),
    ("1,5\n0,25\n", "a number with a decimal comma"),
    ("0.5\n\n0.25\n", "line 2: it is empty"),
    ("0,0.5\n,\n1,0.25\n", "line 2: it is empty"),
    ("\n0.5\n", "line 1: it is empty"),
    ("0.5\n0,0.25\n", "line 2: it has 2 cells, and line 1 has 1"),
    ("0,1,0.5\n", "line 1: it has 3 cells"),
    ('0.5\n"0.25\n', "line 2: it has a quotation mark"),
    ("weight\n", "a line of names and no coefficients"),
    ("\n\n", "k.csv is empty"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_what_cannot_be_read_is_refused_by_its_line_and_nothing_is_published(
    run: Run, visits: Path, text: str, said: str
) -> None:
    Path("k.csv").write_text(text)
    done = run("series", visits, *PERIOD, "--filter", "k.csv")
    assert (done.code, done.out, Path("published.csv").exists()) == (2, "", False)
    assert said in done.err


def test_the_command_says_what_it_read(succeed: Run, visits: Path) -> None:
    Path("k.csv").write_text("0.5\n0.25\n0.25\n")
    told = succeed("series", visits, *PERIOD, "--filter", "window:1", "--filter", "k.csv")
    assert "k.csv: 3 coefficients from lag 0: 0.5, 0.25, 0.25\n" in told.err


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


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.lists(st.sampled_from(LINES), max_size=4))
def test_each_line_but_a_line_of_names_gives_a_coefficient_or_the_file_is_refused(lines: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.csv"
        path.write_text("\n".join(lines))
        try:
            found = read_coefficients(path)
        except InputError:
            return
    while not lines[-1].strip(" \t,;"):
        del lines[-1]
    named = lines[0].strip(' "')[:1].isalpha()
    assert sum(value != 0 for value in found.values) <= len(lines) - named <= len(found.values)
