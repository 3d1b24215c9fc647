"""Two recordings as CSV files: which reports they hold, in which order, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from cloakwork.auditing import Recordings, read_recordings
from cloakwork.errors import InputError, ReadingError
from tests.tables import LIBRARIES

RNG = np.random.default_rng(1)


def files(folder: Path, first: str, second: str) -> tuple[Path, Path]:
    paths = folder / "a.csv", folder / "b.csv"
    for path, text in zip(paths, (first, second), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def both(found: Recordings) -> list[list[object]]:
    return [found(database, found.ceiling, RNG).tolist() for database in (0, 1)]


def test_columns_are_chosen_by_name_in_the_order_given(tmp_path: Path) -> None:
    text = 'time,"x, left",y\n1,0.5,7\n2,1.5,8\n'
    found = read_recordings(files(tmp_path, text, text), columns=["y", "x, left"])
    assert both(found) == [[[7.0, 0.5], [8.0, 1.5]]] * 2


def test_readings_of_one_sensor_are_taken_once_each_and_in_order(tmp_path: Path) -> None:
    first = "time,sensor,seq,steps\n10,s1,4,30\n10,s2,0,99\n20,s1,5,20\n10,s1,4,30\n30,s1,6,10\n"
    second = "\ufefftime,sensor,seq,steps\r\n10,s1,1,7\r\n20,s1,2,8\r\n"
    found = read_recordings(files(tmp_path, first, second), sensor="s1")
    assert found.lengths == (3, 2)
    assert both(found) == [[30, 20], [7, 8]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_in_memory_are_read_as_files_are(tmp_path: Path, library: str) -> None:
    texts = [f"time,sensor,seq,steps\n10,s1,{k},7\n20,s1,{k + 1},8\n" for k in (1, 3)]
    first, second = (LIBRARIES[library](pyarrow.csv.read_csv(path)) for path in files(tmp_path, *texts))
    assert both(read_recordings((first, second))) == [[7, 8]] * 2
    assert both(read_recordings((first, tmp_path / "b.csv"))) == [[7, 8]] * 2
    with pytest.raises(ReadingError, match="twice"):
        read_recordings((first, first))
    with pytest.raises(InputError) as refused:
        read_recordings((first, [7, 8]))
    assert refused.value.values == {"type": "list"}


def test_readings_made_under_two_plans_are_refused(tmp_path: Path) -> None:
    rows = {plan: f"time,sensor,seq,steps,plan\n10,s1,{number},7,{plan}\n" for number, plan in enumerate("ab", 1)}
    assert both(read_recordings(files(tmp_path, rows["a"], rows["a"].replace(",1,7", ",3,8")))) == [[7], [8]]
    for pair in ((rows["a"], rows["b"]), (rows["a"] + "20,s1,3,8,b\n", rows["a"])):
        with pytest.raises(ReadingError, match=r"'b'.*'a'"):
            read_recordings(files(tmp_path, *pair))


def test_one_recording_is_not_taken_for_two(tmp_path: Path) -> None:
    first, second = files(tmp_path, "v\n1\n2\n", "v\n1\n2\n")
    assert read_recordings((first, second)).ceiling == 2
    second.unlink()
    second.symlink_to(first)
    for again in (first, second, tmp_path / "." / "a.csv"):
        with pytest.raises(InputError, match="twice"):
            read_recordings((first, again))


def test_blank_lines_that_end_a_file_are_none(tmp_path: Path) -> None:
    found = read_recordings(files(tmp_path, 'v\n""\n1\n2\n', "v\r\n1\r\n2\r\n\r\n\r\n"))
    assert [part.tolist() for part in found.reports] == [["", 1, 2], [1, 2]]
    one = "t,v\n1,\n2,5\n\n\n"
    assert read_recordings(files(tmp_path, one, one), columns=["v"]).reports[0].tolist() == ["", 5]


@pytest.mark.parametrize("between", [";", "\t"])
def test_the_header_says_what_parts_the_columns(tmp_path: Path, between: str) -> None:
    text = '"x, left, low";y\n0.5;7\n1.5;8\n'.replace(";", between)
    assert both(read_recordings(files(tmp_path, text, text), columns=["y"])) == [[7, 8]] * 2
    rows = f"{READINGS}10,s1,{{}},5\n".replace(",", between)
    assert both(read_recordings(files(tmp_path, rows.format(1), rows.format(2)))) == [[5], [5]]


READINGS = "time,sensor,seq,steps\n"


@pytest.mark.parametrize(
    ("second", "row", "reason"),
    [
        ("30,s1,3,7\n40,s1,2,7\n", 3, "Noise was used twice"),
        ("30,s1,3,7\n20,s1,2,6\n", 3, "overlap"),
        ("30,s2,3,7\n", None, "one sensor"),
    ],
)
def test_a_number_that_is_in_both_recordings_is_refused(
    tmp_path: Path, second: str, row: int | None, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as problem:
        read_recordings(files(tmp_path, f"{READINGS}10,s1,1,5\n20,s1,2,6\n", READINGS + second))
    assert problem.value.values.get("row") == row


@pytest.mark.parametrize(
    ("text", "options", "values"),
    [
        ("", {}, {}),
        ("v\n", {}, {}),
        ("a,b\n1,2\n", {}, {"parameter": "columns"}),
        ("a,b\n1,2\n", {"columns": ["c"]}, {"column": "c"}),
        ("a,a\n1,2\n", {"columns": ["a"]}, {"column": "a"}),
        ("a,b\n1,2\n3\n", {"columns": ["a"]}, {"row": 3}),
        ("a,b\n1,2\n\n3,4\n", {"columns": ["a"]}, {"row": 3}),
        ("v\n1\n\n2\n", {}, {"row": 3}),
        ("3\n1\n2\n", {}, {"parameter": "columns"}),
        ("3;4\n1;2\n", {}, {"parameter": "columns"}),
        ("a,b\n1,2\n", {"columns": ["a"], "sensor": "s1"}, {"parameter": "sensor"}),
        (READINGS + "1,s1,1,5\n1,s2,1,6\n", {}, {"row": 3, "parameter": "sensor"}),
        (READINGS + "1,s1,1,5\n", {"sensor": "s9"}, {}),
        (READINGS + "1,s1,1,5\n2,s1,1,6\n", {}, {"row": 3}),
        (READINGS + "1,s1,1\n", {}, {"row": 2}),
        ("v\n" + "9" * 2_000_000 + "\n", {}, {"row": 2}),
    ],
)
def test_a_file_that_is_no_recording_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], values: dict[str, object]
) -> None:
    with pytest.raises(ReadingError) as problem:
        read_recordings(files(tmp_path, text, text + " "), **options)
    assert values.items() <= problem.value.values.items()


def test_missing_files_and_one_file_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="No such file"):
        read_recordings((tmp_path / "a.csv", tmp_path / "b.csv"))
    with pytest.raises(ReadingError, match="give two"):
        read_recordings((tmp_path / "a.csv",))
    with pytest.raises(InputError, match="most"):
        read_recordings(files(tmp_path, "v\n1\n", "v\n1\n"), most=0)
