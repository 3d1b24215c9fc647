"""Counting the rows of a file: which rows count, in which bins, and how much one person can change."""

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError
from cloakwork.series import HOUR, CountedSeries, FileRequest, count_file

START = 1_791_158_400_000  # 2026-10-05, midnight, a Monday
DAY = 24 * HOUR
PERIOD: dict[str, Any] = {"start": START, "end": START + 2 * DAY}


def iso(hours: float) -> str:
    return datetime.fromtimestamp((START + hours * HOUR) / 1000, UTC).isoformat()


def write(path: Path, *rows: Sequence[object]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def count_rows(folder: Path, rows: Sequence[Sequence[object]], **request: Any) -> CountedSeries:
    return count_file(write(folder / "a.csv", *rows), FileRequest(**request))


def by_hour(*hours: int) -> list[float]:
    return np.bincount(hours, minlength=48).astype(float).tolist() if hours else [0.0] * 48


@pytest.mark.parametrize("form", ["texts", "timestamps", "seconds", "milliseconds", "naive", "csv", "csv seconds"])
def test_times_may_have_many_forms(tmp_path: Path, form: str) -> None:
    unix = START // 1000 + 3600 * np.array([0, 0, 1, 47])
    texts = [iso(hour) for hour in (0, 0, 1, 47)]
    tables = {
        "texts": pa.array(texts),
        "timestamps": pa.array(unix * 1_000_000, pa.timestamp("us", "Europe/Berlin")),
        "seconds": pa.array(unix),
        "milliseconds": pa.array(unix * 1000.0),
        "naive": pa.array(unix, pa.timestamp("s")),
    }
    if form in tables:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"when": tables[form]}), path)
    else:
        cells = [text[:19].replace("T", " ") for text in texts] if form == "csv" else unix.tolist()
        path = write(tmp_path / "a.csv", ("when",), *([cell] for cell in cells))
    counted = count_file(path, FileRequest(time="when", **PERIOD))
    assert counted.series.values.tolist() == [by_hour(0, 0, 1, 47)]


def test_rows_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"time,who\n{iso(0)},a\nyesterday,a\n{iso(0)},\n{iso(0)},b,c\n{iso(0)},b\n")
    counted = count_file(path, FileRequest(person="who", most_per_person=1, **PERIOD))
    assert counted.series.values.tolist() == [by_hour(0, 0)]
    remarks = "\n".join(counted.remarks)
    assert "2 of 4 rows" in remarks
    assert "line 3" in remarks
    assert "1 line left out" in remarks
    assert "yesterday" not in remarks


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("time,paid\n10/05/2026 08:31,1\n10/06/2026 09:32,1\n", {}),
        ("time,paid\n2026-10-05,secret\n2026-10-06,words\n", {"value": "paid", "most_per_event": 5}),
        ("time,paid\n2026-10-05,secret,1\n", {}),
    ],
)
def test_a_file_without_a_readable_row_is_refused_and_no_cell_is_shown(
    tmp_path: Path, text: str, request_: dict[str, Any]
) -> None:
    (tmp_path / "a.csv").write_text(text)
    for period in (PERIOD, {}):
        with pytest.raises(InputError) as problem:
            count_file(tmp_path / "a.csv", FileRequest(**request_, **period))
        assert "no row" in str(problem.value)
        assert not any(cell in str(problem.value) for cell in ("10/05", "08:31", "secret", "words"))


def test_semicolons_blanks_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"\ufeffdoor; Time \n a ;{iso(0)}\na;{iso(0.1)}\n", encoding="utf-8")
    counted = count_file(path, FileRequest(series_by=" door", names=["a"], **PERIOD))
    assert counted.series.values.tolist() == [by_hour(0, 0)]
    assert (counted.time_column, counted.names) == ("Time", ("a",))


@pytest.mark.parametrize("cell", ["n/a,x,ok", f'{iso(10)},x,"oops'])
def test_one_more_bad_line_changes_no_count(tmp_path: Path, cell: str) -> None:
    rows = [f"{iso(k / 6)},p{k % 40},ok" for k in range(200)]
    request = FileRequest(person="who", most_per_person=2, **PERIOD)
    values = []
    for more in ([], [cell]):
        (tmp_path / "a.csv").write_text("\n".join(["time,who,note", *rows[:50], *more, *rows[50:]]) + "\n")
        values.append(count_file(tmp_path / "a.csv", request).series.values)
    assert (values[0] == values[1]).all()


CELLS = st.sampled_from(
    [
        *(iso(0), iso(1.4), iso(25)[:19], "1791158400", "1791158400500", "1791158400.5"),
        *("nan", "1e400", "", "soon", "1_0"),
    ]
)
ROWS = st.lists(
    st.tuples(
        CELLS,
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["n", "s", "w"]),
        st.sampled_from(["1", "9.5", "x", "-3", "inf"]),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ROWS, ROWS, st.randoms(use_true_random=False), st.booleans(), st.integers(1, 4))
def test_files_that_differ_in_one_person_give_series_that_differ_by_at_most_the_contribution(
    others: list[tuple[str, ...]], own: list[tuple[str, ...]], lot: Any, by_value: bool, most: int
) -> None:
    mixed = [*others, *((time, "me", door, paid) for time, _, door, paid in own)]
    lot.shuffle(mixed)
    fixed = (iso(0), "b", "n", "1")  # a file without any readable row is refused
    request: dict[str, Any] = {"person": "who", "most_per_person": most, "series_by": "door", "names": ["n", "s"]}
    with TemporaryDirectory() as folder:
        first, second = (
            count_rows(
                Path(folder),
                [("time", "who", "door", "paid"), fixed, *rows],
                value="paid" if by_value else None,
                **request,
                **PERIOD,
            ).series
            for rows in (mixed, [row for row in mixed if row[1] != "me"])
        )
    assert first.contribution == second.contribution == pytest.approx(most)
    assert np.abs(first.values - second.values).sum() <= most + 1e-9


def test_values_are_clipped_and_summed_and_the_loss_is_remarked(tmp_path: Path) -> None:
    rows = [(iso(0), 10), (iso(0), 50), (iso(3), 5), (iso(99), 5)]
    counted = count_rows(tmp_path, [("time", "paid"), *rows], value="paid", most_per_event=30, **PERIOD)
    assert counted.series.values[0, [0, 3]].tolist() == [40.0, 5.0]
    assert (counted.level, counted.bound, counted.unit, counted.limited) == ("event", "most_per_event", "paid", True)
    remarks = "\n".join(counted.remarks)
    assert "1 of 4 rows clipped" in remarks
    assert "outside" in remarks
    assert "30.8 % lower" in remarks  # 45 of 65


def test_names_default_to_those_in_the_data_and_missing_ones_are_remarked(tmp_path: Path) -> None:
    rows = [("time", "door"), (iso(0), "south"), (iso(1), "north"), (iso(1), "")]
    counted = count_rows(tmp_path, rows, series_by="door")
    assert counted.names == ("north", "south")
    assert counted.inferred == ("start", "end", "names")
    counted = count_rows(tmp_path, rows, series_by="door", names=["south", "west"], **PERIOD)
    assert counted.series.values[:, :2].tolist() == [[1, 0], [0, 0]]
    assert counted.inferred == ()
    assert any(remark.startswith("west had no events") for remark in counted.remarks)
    assert counted.series.losses.other_names == 2


@pytest.mark.parametrize(
    ("hours", "request_", "expected"),
    [
        ((3 * 24, 7 * 24), {"every": 7 * DAY}, (START, 2)),  # weeks begin on Mondays
        ((3.5, 5), {}, (START + 3 * HOUR, 3)),
        ((3.5, 5), {"end": START + DAY}, (START + 3 * HOUR, 21)),
        ((3.5, 5), {"start": START + 90 * 60_000}, (START + 90 * 60_000, 4)),
    ],
)
def test_a_missing_end_of_the_period_is_taken_from_the_data(
    tmp_path: Path, hours: tuple[float, ...], request_: dict[str, int], expected: tuple[int, int]
) -> None:
    counted = count_rows(tmp_path, [("time",), *([iso(hour)] for hour in hours)], **request_)
    assert counted.bins is not None
    assert (counted.bins.start, counted.bins.n) == expected
    assert counted.inferred == tuple(name for name in ("start", "end") if name not in request_)


def test_counts_are_placed_at_their_times_and_gaps_are_zeros(tmp_path: Path) -> None:
    rows = [(iso(k / 4), k % 7 - 2) for k in range(60) if k not in (5, 6)]
    counted = count_rows(tmp_path, [("time", "n"), *reversed(rows)], counts="n", contribution=3)
    assert counted.series.values.tolist() == [[0 if k in (5, 6) else k % 7 - 2 for k in range(60)]]
    assert (counted.series.contribution, counted.series.losses.empty_bins) == (3, 2)
    assert counted.inferred == ("start", "end", "every")
    assert (counted.bound, counted.unit) == ("contribution", "n")


def test_counts_without_times_keep_their_order(tmp_path: Path) -> None:
    counted = count_rows(tmp_path, [("hour", "n"), (0, 3), (1, 4)], counts="n")
    assert (counted.series.values.tolist(), counted.bins, counted.inferred) == ([[3, 4]], None, ("rows",))
    dated = [("Date", "n"), ("2026-10-05", 3), ("2026-10-06", 2), ("2026-10-08", 4)]
    assert count_rows(tmp_path, dated, counts="n").series.values.tolist() == [[3, 2, 0, 4]]
    assert count_rows(tmp_path, dated, counts="n", time="none").series.values.tolist() == [[3, 2, 4]]


@pytest.mark.parametrize("request_", [{}, {"counts": "n", "every": HOUR}])
@pytest.mark.parametrize("row", [[], [("2026-11-05", 1)]])
def test_a_period_without_any_row_is_counted_as_zeros(
    tmp_path: Path, row: list[tuple[object, ...]], request_: dict[str, Any]
) -> None:
    """Whether it can be published would otherwise depend on the last event in it."""
    counted = count_rows(tmp_path, [("time", "n"), *row], **request_, **PERIOD)
    assert counted.series.values.tolist() == [by_hour()]
    assert any("noise" in remark for remark in counted.remarks)


@pytest.mark.parametrize("name", ["count", "Count", " counts ", "visits", "number", "n", "visit_count"])
def test_a_column_that_looks_like_counts_is_reported(tmp_path: Path, name: str) -> None:
    rows = [("time", name), (iso(0), 5), (iso(1), 0), (iso(2), 7)]
    assert count_rows(tmp_path, rows, **PERIOD).unused_counts == name.strip()
    assert count_rows(tmp_path, rows, counts=name, every=HOUR, **PERIOD).unused_counts is None


@pytest.mark.parametrize(
    ("name", "cells", "request_"),
    [
        ("count", ("many", "few", "none"), {}),
        ("count", (1.5, 2.5, 3), {}),
        ("count", (-5, -3, 2), {}),
        ("count", (1, 1, 1), {}),
        ("card_number", (5, 0, 7), {}),
        ("discount", (5, 0, 7), {}),
        ("count", (5, 0, 7), {"value": "count", "most_per_event": 9}),
        ("count", (5, 0, 7), {"person": "count", "most_per_person": 2}),
        ("count", (5, 0, 7), {"series_by": "count", "names": ["0", "5"]}),
    ],
)
def test_a_column_that_is_used_or_holds_no_counts_is_not_reported(
    tmp_path: Path, name: str, cells: tuple[object, ...], request_: dict[str, Any]
) -> None:
    rows = [("time", name), *((iso(hour), cell) for hour, cell in enumerate(cells))]
    assert count_rows(tmp_path, rows, **request_, **PERIOD).unused_counts is None


def test_parquet_columns_of_other_types_are_not_taken_for_counts(tmp_path: Path) -> None:
    times = pa.array([iso(0), iso(1)])
    for column, name in ((pa.array([3, 4]), "count"), (pa.array([[3], [4]]), None), (pa.array([True, False]), None)):
        pq.write_table(pa.table({"time": times, "count": column}), tmp_path / "a.parquet")
        assert count_file(tmp_path / "a.parquet", FileRequest(**PERIOD)).unused_counts == name


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ("time,n\n\n{0},1\n\n\n{0},secret\n", "line 6"),
        ("time,n\n\n{0},1\n\n\n{0},1\n", "line 6"),
        ("time,n\n{0},1\n{1},1\n{2},1\n", "line 4"),
    ],
)
def test_a_bad_row_of_counts_is_refused_by_its_line(tmp_path: Path, rows: str, place: str) -> None:
    (tmp_path / "a.csv").write_text(rows.format(iso(0), iso(1), iso(2.5)))
    with pytest.raises(InputError) as problem:
        count_file(tmp_path / "a.csv", FileRequest(counts="n", every=HOUR, **PERIOD))
    assert problem.value.values["place"] == place
    assert "secret" not in str(problem.value)


def test_rows_of_a_parquet_file_are_numbered_from_1(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1.0, 2.0, 2.5]}), tmp_path / "a.parquet")
    with pytest.raises(InputError) as problem:
        count_file(tmp_path / "a.parquet", FileRequest(counts="n"))
    assert problem.value.values["place"] == "row 3"


@pytest.mark.parametrize(
    ("header", "request_", "parameter"),
    [
        ("time,card", {"time": "when"}, "time"),
        ("hour,n", {}, "time"),
        ("time,n,n", {"series_by": "n"}, "series_by"),
        ("time,card, card ", {"person": "card", "most_per_person": 1}, "person"),
        ("time,n", {"counts": "m"}, "counts"),
        ("hour,n", {"counts": "n", "every": HOUR}, ("every",)),
        ("time,n", {"start": START, "end": START - 1}, ("start", "end")),
        ("time,n", {"counts": "n"}, "every"),
        ("time,n", {"start": START, "end": START + 2 * DAY, "every": 7 * HOUR}, ("end", "every")),
        ("time,n", {"start": 0, "every": 60_000}, ("start", "end", "every")),
        ("time,n", {"series_by": "n", "names": ["a", "a"]}, "names"),
        ("time,n", {"value": "n", "most_per_event": 5, "step": 9}, "most_per_event"),
        ("time,n", {"value": "n", "most_per_event": 1e300}, "most_per_event"),
        ("time,n", {"person": "n", "most_per_person": 2.5}, "most_per_person"),
        ("time,n", {"person": "n", "most_per_person": 1e10}, "most_per_person"),
        ("time,n", {"counts": "n", "contribution": 1e30, "every": HOUR}, "contribution"),
    ],
)
def test_a_refusal_names_the_parameter_to_change(
    tmp_path: Path, header: str, request_: dict[str, Any], parameter: object
) -> None:
    columns = header.count(",")
    (tmp_path / "a.csv").write_text(f"{header}\n{iso(0)}{',1' * columns}\n")
    with pytest.raises(InputError) as problem:
        count_file(tmp_path / "a.csv", FileRequest(**request_))
    assert problem.value.values["parameter"] == parameter


def test_a_file_without_rows_gives_no_period(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,n\n")
    with pytest.raises(InputError) as problem:
        count_file(tmp_path / "a.csv", FileRequest())
    assert problem.value.values["parameter"] == ("start", "end")
    with pytest.raises(InputError):
        count_file(tmp_path / "a.csv", FileRequest(counts="n"))
