"""Counting the rows of a file: which rows count, in which bins, and how much one person can change."""

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError
from cloakwork.series import HOUR, Bins, Counts, count_events, read_counts
from tests.tables import LIBRARIES

START = 1_791_158_400_000  # 2026-10-05, midnight, a Monday
BINS = Bins(START, HOUR, 48)


def iso(hours: float) -> str:
    return datetime.fromtimestamp((START + hours * HOUR) / 1000, UTC).isoformat()


def write(path: Path, *rows: Sequence[object]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def count_rows(folder: Path, rows: Sequence[Sequence[object]], bins: Bins = BINS, **request: Any) -> Counts:
    return count_events(write(folder / "a.csv", *rows), bins, **request)


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_in_memory_are_counted_as_files_are(tmp_path: Path, library: str) -> None:
    rows = [(iso(hour), who, who, 1) for hour, who in ((0, "a"), (0, "b"), (1, "a"), (47, "b"))]
    path = write(tmp_path / "a.csv", ("time", "sensor", "who", "n"), *rows)
    for table in (LIBRARIES[library](pyarrow.csv.read_csv(path)), path, str(path)):
        counted = count_events(table, BINS, person="who", most_per_person=5, series_by="sensor", names=["b", "a"])
        assert counted.values.tolist() == [by_hour(0, 47), by_hour(0, 1)]
    table = LIBRARIES[library](pyarrow.csv.read_csv(path))
    with pytest.raises(InputError) as refused:
        count_events({"time": [1]}, BINS)
    assert refused.value.values == {"type": "dict"}


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
    counted = count_events(path, BINS, time="when")
    assert counted.values.tolist() == [by_hour(0, 0, 1, 47)]


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("time,paid\n10/05/2026 08:31,1\n10/06/2026 09:32,1\n", {}),
        ("time,paid\n2026-10-05,secret\n2026-10-06,words\n", {"value": "paid", "most_per_event": 5}),
        ("time,paid\n2026-10-05,secret,1\n", {}),
    ],
)
def test_a_file_without_a_readable_row_is_counted_as_zeros_and_no_cell_is_shown(
    tmp_path: Path, text: str, request_: dict[str, Any]
) -> None:
    """Whether it can be published would otherwise depend on the only readable event."""
    (tmp_path / "a.csv").write_text(text)
    counted = count_events(tmp_path / "a.csv", BINS, **request_)
    assert counted.values.tolist() == [by_hour()]
    remarks = "\n".join(counted.remarks)
    assert "left out" in remarks
    assert "noise" in remarks
    assert not any(cell in remarks for cell in ("10/05", "08:31", "secret", "words"))


@pytest.mark.parametrize("cell", ["n/a,x,ok", f'{iso(10)},x,"oops'])
def test_one_more_bad_line_changes_no_count(tmp_path: Path, cell: str) -> None:
    rows = [f"{iso(k / 6)},p{k % 40},ok" for k in range(200)]
    values = []
    for more in ([], [cell]):
        (tmp_path / "a.csv").write_text("\n".join(["time,who,note", *rows[:50], *more, *rows[50:]]) + "\n")
        values.append(count_events(tmp_path / "a.csv", BINS, person="who", most_per_person=2).values)
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
    request: dict[str, Any] = {"person": "who", "most_per_person": most, "series_by": "door", "names": ["n", "s"]}
    with TemporaryDirectory() as folder:
        first, second = (
            count_rows(
                Path(folder),
                [("time", "who", "door", "paid"), *rows],
                value="paid" if by_value else None,
                **request,
            )
            for rows in (mixed, [row for row in mixed if row[1] != "me"])
        )
    assert first.contribution.total * first.step == pytest.approx(most)
    assert np.abs(first.values - second.values).sum() <= most + 1e-9


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
        read_counts(tmp_path / "a.csv", "n", BINS)
    assert problem.value.values["place"] == place
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize(
    ("header", "request_", "parameter"),
    [
        ("time,card", {"time": "when"}, "time"),
        ("hour,n", {}, "time"),
        ("time,n,n", {"series_by": "n", "names": ["a"]}, "series_by"),
        ("time,card, card ", {"person": "card", "most_per_person": 1}, "person"),
        ("time,n", {"series_by": "n"}, "names"),
        ("time,n", {"names": ["a"]}, "names"),
        ("time,n", {"series_by": "n", "names": ["a", "a"]}, "names"),
        ("time,n", {"value": "n", "most_per_event": 5, "step": 9}, "most_per_event"),
        ("time,n", {"value": "n", "most_per_event": 1e300}, "most_per_event"),
    ],
)
def test_a_refusal_names_the_parameter_to_change(
    tmp_path: Path, header: str, request_: dict[str, Any], parameter: object
) -> None:
    columns = header.count(",")
    (tmp_path / "a.csv").write_text(f"{header}\n{iso(0)}{',1' * columns}\n")
    with pytest.raises(InputError) as problem:
        count_events(tmp_path / "a.csv", BINS, **request_)
    assert problem.value.values["parameter"] == parameter
