"""Files of readings: streamed, and forgiving row by row."""

import json
import os
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError, ReadingError
from cloakwork.readings import FORMS, READING_COLUMNS, Frame, MergedFrames, ReadingScale, ReadingsFile, table_writer
from tests.tables import LIBRARIES

IDS = ("a", "b", "c")
HEADER = "time,sensor,seq,steps\n"


def read(path: Path, content: str | bytes, ids: tuple[str, ...] = IDS) -> tuple[ReadingsFile, list[Frame]]:
    path = path / "readings.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    file = ReadingsFile(path, ids)
    return file, list(file)


SCALE = ReadingScale("0123456789ab", "°C", {"a": 0.25, "b": 0.5, "c": 1.0}, {"a": 1.5, "b": 2.0})
FRAMES = [(1_800_000_000_000 + 1000 * k, k, [k, -k, k % 2]) for k in range(200)]


def write(path: Path) -> None:
    with path.open("w", newline="") as file, table_writer(file, path.suffix, READING_COLUMNS, {"site": "x"}) as put:
        for time, seq, steps in FRAMES:
            put([SCALE.row(time, sensor, seq, value) for sensor, value in zip(IDS, steps, strict=True)])


def is_what_was_written(file: ReadingsFile) -> None:
    found = list(file)
    assert [(frame.time, frame.steps.tolist()) for frame in found] == [(time, steps) for time, _, steps in FRAMES]
    assert all(frame.present.all() for frame in found)
    assert (file.rows, file.problems.total, file.bytes_read) == (600, 0, file.size)


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_in_any_form_is_read_back(form: str, tmp_path: Path) -> None:
    write(tmp_path / f"r{form}")
    is_what_was_written(ReadingsFile(tmp_path / f"r{form}", IDS, plan=SCALE.plan))
    with pytest.raises(ReadingError, match=r"row [12]: .*'0123456789ab'"):
        list(ReadingsFile(tmp_path / f"r{form}", IDS, plan="another"))


def test_every_form_holds_the_same_table(tmp_path: Path) -> None:
    for form in FORMS:
        write(tmp_path / f"r{form}")
    tables = [
        pyarrow.csv.read_csv(tmp_path / "r.csv"),
        pyarrow.json.read_json(tmp_path / "r.jsonl"),
        pq.read_table(tmp_path / "r.parquet"),
    ]
    kinds = {"time": pa.timestamp("ms", "UTC"), "steps": pa.int64(), "seq": pa.int64(), "value": pa.float64()}
    schema = tables[2].schema
    assert {name: schema.field(name).type for name in kinds} == kinds
    assert json.loads(schema.metadata[b"cloakwork"]) == {"site": "x"}
    first, *others = (table.cast(schema).to_pylist() for table in tables)
    assert all(other == first for other in others)
    time = datetime(2027, 1, 15, 8, 0, 3, tzinfo=UTC)
    assert first[9] == {
        "time": time,
        "sensor": "a",
        "value": 0.75,
        "steps": 3,
        "sigma": 1.5,
        "seq": 3,
        "plan": SCALE.plan,
        "unit": "°C",
    }


class OfAnotherLibrary:
    """A table as Polars and pandas hand it over: by the Arrow stream protocol, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_tables_in_memory_are_read_as_files_are(tmp_path: Path) -> None:
    write(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    naive = table.set_column(0, "time", table["time"].cast(pa.timestamp("ns")))
    coded = table.set_column(1, "sensor", table["sensor"].dictionary_encode())
    views = coded["sensor"].combine_chunks()  # as categories of Polars
    views = pa.DictionaryArray.from_arrays(views.indices.cast(pa.uint32()), views.dictionary.cast(pa.string_view()))
    viewed = table.set_column(1, "sensor", views)
    steps = table.schema.get_field_index("steps")
    floats = table.set_column(steps, "steps", table["steps"].cast(pa.float64()))  # as pandas, where one is missing
    for each in (table, naive, coded, viewed, floats, OfAnotherLibrary(table)):
        is_what_was_written(ReadingsFile(each, IDS))
    for convert in LIBRARIES.values():
        is_what_was_written(ReadingsFile(convert(table), IDS))
    with pytest.raises(InputError) as problem:
        ReadingsFile({"time": [1]}, IDS)
    assert problem.value.values == {"type": "dict"}


def test_a_broken_line_of_json_costs_its_row_only(tmp_path: Path) -> None:
    rows = ['{"time": 0, "sensor": "a", "seq": 0, "steps": 1}', "{", '{"sensor": "b", "time": [0]}', "7"]
    (tmp_path / "r.jsonl").write_text("\n".join([*rows, rows[0].replace('"a"', '"c"')]))
    file = ReadingsFile(tmp_path / "r.jsonl", IDS)
    (frame,) = file
    assert frame.present.tolist() == [True, False, True]
    assert [text[:5] for text in file.problems.shown] == ["row 2", "row 3", "row 4"]


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "r.parquet")
    content = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ReadingError, match="Parquet"):
        list(ReadingsFile(tmp_path / "r.parquet", IDS))


def test_missing_sensors_are_marked(tmp_path: Path) -> None:
    file, (frame,) = read(tmp_path, HEADER + "5,c,0,-3\n5,a,0,4\n")
    assert frame.present.tolist() == [True, False, True]
    assert frame.steps.tolist() == [4, 0, -3]
    assert file.problems.total == 0


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0,z,0,1", "row 3: unknown sensor 'z'"),
        ("0,b,0", "row 3: 3 columns instead of 4"),
        ("0,b,0,1,9", "row 3: 5 columns instead of 4"),
        ("0,b,0,1.5", "row 3: steps is not a whole number in range"),
        ("0,b,0,nan", "row 3: steps is not a whole number in range"),
        ("0,b,0,", "row 3: steps is not a whole number in range"),
        ("0,b,0,1_000", "row 3: steps is not a whole number in range"),
        ("0,b,0,\u0663", "row 3: steps is not a whole number in range"),
        ("0,b,0,0x10", "row 3: steps is not a whole number in range"),
        ("0,b,0,+-5", "row 3: steps is not a whole number in range"),
        (f"0,b,0,{2**62}", "row 3: steps is not a whole number in range"),
        (f"0,b,0,{10**400}", "row 3: steps is not a whole number in range"),
        ("now,b,0,1", "row 3: time is neither ISO 8601 nor Unix milliseconds"),
        ("0,b,x,1", "row 3: seq is not a whole number in range"),
        ("-1,b,0,1", "row 3: time is neither"),
        ("0,b,-1,1", "row 3: seq is negative"),
        ("0,a,1,2", "row 3: a second reading of one sensor at one time; the first is kept"),
        ("5,a,0,2", "row 3: alarm: one seq with two values"),
        ("0,b,0,1\0", "row 3: steps is not a whole number in range"),
        ("0,b\0,0,1", "row 3: unknown sensor"),
    ],
)
def test_a_bad_row_is_left_out_and_named(row: str, reason: str, tmp_path: Path) -> None:
    file, (frame,) = read(tmp_path, f"{HEADER}0,a,0,1\n{row}\n0,c,0,3\n")
    assert frame.present.tolist() == [True, False, True]
    assert frame.steps.tolist() == [1, 0, 3]
    assert file.problems.total == 1
    assert file.problems.shown[0].startswith(reason)
    assert file.rows == 3


def test_a_value_that_cannot_be_used_is_never_repeated(tmp_path: Path) -> None:
    file, _ = read(tmp_path, HEADER + "0,a,0,1\n0,b,0,123456.789\n")
    assert "123456" not in " ".join(file.problems.shown)


@pytest.mark.parametrize(
    "content", [HEADER.replace("\n", "\r\n") + "0,a,0,1\r\n1,b,1,2\r\n", HEADER + "\n0,a,0,1\n\n\n1,b,1,2"]
)
def test_line_endings_and_blank_lines_do_not_matter(content: str, tmp_path: Path) -> None:
    file, frames = read(tmp_path, content)
    assert [frame.time for frame in frames] == [0, 1]
    assert (file.rows, file.problems.total) == (2, 0)


def test_rows_of_frames_under_way_may_come_in_any_order(tmp_path: Path) -> None:
    rows = [f"{time},{name},{time},{10 * time + k}" for time in range(20) for k, name in enumerate(IDS)]
    np.random.default_rng(1).shuffle(rows)
    _, frames = read(tmp_path, HEADER + "\n".join(rows) + "\n")
    assert [frame.time for frame in frames] == list(range(20))
    assert [frame.steps.tolist() for frame in frames] == [[10 * t, 10 * t + 1, 10 * t + 2] for t in range(20)]


def test_a_row_for_a_finished_frame_comes_too_late(tmp_path: Path) -> None:
    rows = "".join(f"{time},a,{time},1\n" for time in range(200))
    file, frames = read(tmp_path, HEADER + rows + "0,b,0,1\n199,b,9,5\n")
    assert [frame.time for frame in frames] == list(range(200))
    assert not frames[0].present[1]
    assert frames[199].present.tolist() == [True, True, False]
    assert file.problems.total == 1
    assert file.problems.shown[0].startswith("row 202: too late")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("0,a,0,1\n", "time,sensor,seq,steps"),
        ("sensor,time,seq,value\n", "steps is not among"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "the first line is not UTF-8 text"),
        (HEADER, "no usable reading in 0 rows"),
        (HEADER + "0,z,0,1\n0,y,0,1\n", "no usable reading in 2 rows; row 2: unknown sensor 'z'"),
    ],
)
def test_a_file_without_readings_is_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=message):
        read(tmp_path, content)


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="No such file or directory"):
        list(ReadingsFile(tmp_path / "none.csv", IDS))
    with pytest.raises(ReadingError, match="a folder"):
        list(ReadingsFile(tmp_path, IDS))


def test_only_the_first_problems_are_kept_but_all_are_counted(tmp_path: Path) -> None:
    file, _ = read(tmp_path, HEADER + "0,a,0,1\n" + "0,z,0,1\n" * 500)
    assert file.problems.counts["unknown sensor"] == file.problems.total == 500
    assert len(file.problems.shown) == 20


def test_the_file_is_not_held_in_memory(tmp_path: Path) -> None:
    read(tmp_path, HEADER + "0,a,0,1\n")  # what is loaded once is not of the file
    with (tmp_path / "big.csv").open("w") as out:
        out.write(HEADER)
        out.writelines(f"{k},{name},{k},{k % 1000}\n" for k in range(100_000) for name in IDS)
    file = ReadingsFile(tmp_path / "big.csv", IDS)
    assert file.size > 5_000_000
    tracemalloc.start()
    try:
        frames = sum(1 for _ in file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert frames == 100_000
    assert file.bytes_read == file.size
    assert peak < 3_000_000


def all_rows(file: ReadingsFile) -> list[tuple[int, ...]]:
    return [row for rows in file.readings() for row in zip(*(column.tolist() for column in rows), strict=True)]


def test_rows_come_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{HEADER}9,b,7,-3\n\n 2 , a,+5, {2**61}\n0,z,0,0\n2,a,5,+4")
    rows = ReadingsFile(path, IDS)
    assert all_rows(rows) == [(2, 9, 1, 7, -3), (4, 2, 0, 5, 2**61), (6, 2, 0, 5, 4)]
    assert (rows.rows, rows.bytes_read, rows.problems.shown) == (4, rows.size, ["row 5: unknown sensor 'z'"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_no_bytes_at_all_break_the_reader(tmp_path: Path, junk: bytes) -> None:
    file, frames = read(tmp_path, HEADER.encode() + b"0,a,0,1\n" + junk)
    assert frames[0].steps[0] == 1
    assert file.rows >= 1


def test_a_pipe_among_several_sources_is_refused_before_it_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it would wait for a writer
    with pytest.raises(ReadingError) as refused:
        list(MergedFrames([ReadingsFile(pipe, ("a",)), ReadingsFile(pipe, ("a",))]))
    assert refused.value.values["path"] == str(pipe)
