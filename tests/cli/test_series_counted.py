"""`series` says so where it counts rows although a column looks like counts."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run
from tests.cli.series_kit import CLEAR, HOUR, PERIOD, iso, write

SAYS = "each row counts as one event, and column"
CELLS = (5, 0, 7)


def rows(path: Path, name: str, cells: tuple[object, ...] = CELLS) -> Path:
    return write(path, ("time", name), *((iso(HOUR * k), cell) for k, cell in enumerate(cells)))


@pytest.mark.parametrize("name", ["count", "Count", " counts ", "visits", "number", "n", "visit_count"])
def test_a_column_that_looks_like_counts_is_told_of_with_the_option_that_takes_it(
    succeed: Run, here: Path, name: str
) -> None:
    told = succeed("series", rows(here / "a.csv", name), *PERIOD, *CLEAR, "--filter", "window:1")
    assert f"{SAYS} {name.strip()} is not used" in told.err
    assert f"give --counts {name.strip()}; to add up what is in it, give --value {name.strip()}" in told.err
    assert SAYS not in told.out
    taken = succeed("series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1", "--counts", name.strip())
    assert SAYS not in taken.err


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("count", ("many", "few", "none")),
        ("count", (1.5, 2.5, 3)),
        ("count", (-5, -3, 2)),
        ("count", (1, 1, 1)),
        ("card_number", CELLS),
        ("door", CELLS),
        ("discount", CELLS),
    ],
)
def test_what_does_not_look_like_counts_is_not_told_of(
    succeed: Run, here: Path, name: str, cells: tuple[object, ...]
) -> None:
    told = succeed("series", rows(here / "a.csv", name, cells), *PERIOD, *CLEAR, "--filter", "window:1")
    assert SAYS not in told.err


@pytest.mark.parametrize(
    "options",
    [
        ("--value", "count", "--most-per-event", 9),
        ("--person", "count", "--most-per-person", 2),
        ("--series-by", "count", "--names", "0,5,7"),
    ],
)
def test_a_column_that_is_used_is_not_told_of(succeed: Run, here: Path, options: tuple[object, ...]) -> None:
    told = succeed("series", rows(here / "a.csv", "count"), *PERIOD, *CLEAR, "--filter", "window:1", *options)
    assert SAYS not in told.err


def test_with_persons_only_adding_up_is_offered(succeed: Run, here: Path) -> None:
    write(here / "a.csv", ("time", "card", "count"), (iso(0), "a", 3), (iso(9), "b", 4))
    told = succeed(
        "series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1", "--person", "card", "--most-per-person", 1
    )
    assert f"{SAYS} count is not used" in told.err
    assert "--counts" not in told.err


def test_a_column_of_a_parquet_file_is_told_of_unless_it_holds_something_else(succeed: Run, here: Path) -> None:
    times = pa.array([iso(0), iso(HOUR)])
    for column, seen in ((pa.array([3, 4]), True), (pa.array([[3], [4]]), False), (pa.array([True, False]), False)):
        pq.write_table(pa.table({"time": times, "count": column}), here / "a.parquet")
        told = succeed("series", "a.parquet", *PERIOD, *CLEAR, "--filter", "window:1")
        assert (SAYS in told.err) is seen


def test_the_cost_of_rounding_is_never_below_0_in_json(succeed: Run, here: Path) -> None:
    write(here / "zeros.csv", ("n",), *([0] for _ in range(64)))
    done = succeed("series", "zeros.csv", "--counts", "n", "--filter", "average:24", "--json")
    found = json.loads(done.out)
    assert 0 <= found["rounding_cost"] < 1e-5
    assert any("whole numbers cost less than 0.001 %" in line for line in found["explanation"]["cost"])
