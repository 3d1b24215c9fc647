"""Rows of CSV and Parquet files: each is read independently of the others."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.readings import TableFile, column_times

START = 1_791_158_400  # 2026-10-05, midnight


def test_a_time_is_read_alike_whatever_stands_in_the_other_rows() -> None:
    """Else one person's row could move the events of others."""
    clocks = ["", "T00", "T10:00", " 10:00", "T10:00:00", "T24:00", "T23:59:60", "T10:00:00.5", "T10:00:00.123456789"]
    zones = ["", "Z", "z", "+02", "+0200", "+02:00", "-11:30", "+24:00"]
    dates = ["2026-10-05", "2026-02-30", "0001-01-01", "1969-12-31", "9999-12-31", " 2026-10-05"]
    seen = set()
    for cell in (date + clock + zone for date in dates for clock in clocks for zone in zones):
        alone = column_times(pa.chunked_array([[cell]]), "time")[0]
        assert alone == column_times(pa.chunked_array([[cell, "soon"]]), "time")[0], cell
        assert alone == column_times(pa.chunked_array([[cell, "17"]]), "time")[0], cell
        seen.add(int(alone))
    assert 1000 * START in seen
    assert len(seen) > 20


def test_bytes_that_are_not_utf8_become_escapes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"time,who\n1000,Ren\xe9\n2000,Ren\xc3\xa9\n")
    file = TableFile(tmp_path / "a.csv")
    assert (file.read(["who"])["who"].to_pylist(), file.left_out) == (["Ren\\xe9", "René"], 0)


LINES = st.lists(
    st.lists(
        st.sampled_from(
            [b'"', b'""', b",", b";", b"a", b"b c", b"\xff", b"\xc3\xa9", b"\x1f", b"\0", b"\xef\xbb\xbf", b"'"]
        ),
        max_size=7,
    ).map(b"".join),
    max_size=8,
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(1, 3))
def test_a_file_has_the_rows_that_its_lines_have_each_alone(lines: list[bytes], end: bytes, width: int) -> None:
    """And each line is a row, is left out, or is empty."""
    head = b",".join(b"c%d" % column for column in range(width))

    def rows(*some: bytes) -> tuple[list[tuple[str, ...]], int]:
        path.write_bytes(end.join([head, *some]))
        file = TableFile(path)
        cells = file.read(file.names)
        return list(zip(*(cells[name].to_pylist() for name in file.names), strict=True)), file.left_out

    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        together, left_out = rows(*lines)
        alone = [rows(line) for line in lines]
    assert together == [row for found, _ in alone for row in found]
    assert left_out == sum(odd for _, odd in alone)
    assert all(len(found) + odd == (line != b"") for line, (found, odd) in zip(lines, alone, strict=True))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(1, 3), st.integers(1, 20))
def test_each_row_is_in_the_line_that_it_is_said_to_be_in(
    lines: list[bytes], end: bytes, width: int, block: int
) -> None:
    head = b",".join(b"c%d" % column for column in range(width))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr("cloakwork.readings.row_batches._BLOCK", block)
        path = Path(folder) / "a.csv"
        path.write_bytes(end.join([head, *lines]))
        file = TableFile(path)
        said = [file.place(row) for row in range(len(file.read(file.names)["c0"]))]
        alone = []
        for number, line in enumerate(lines, 2):
            path.write_bytes(end.join([head, line]))
            one = TableFile(path)
            alone += [f"line {number}"] * len(one.read(one.names)["c0"])
    assert said == alone


def test_times_are_read_exactly_in_every_year_by_both_readers() -> None:
    """Floats of seconds are off by a millisecond in some: where a row makes the slow reader read, others would move."""
    rng = np.random.default_rng(5)
    binades = [np.unique(np.r_[2**k, 2 ** (k + 1) - 1, rng.integers(2**k, 2 ** (k + 1), 300)]) for k in range(48)]
    times = np.concatenate(binades)
    times = times[times < 253_402_300_800_000]
    texts = [str(np.datetime64(int(time), "ms")) for time in times]
    assert (column_times(pa.chunked_array([texts]), "time") == times).all()
    assert (column_times(pa.chunked_array([[*texts, "soon"]]), "time")[:-1] == times).all()
    assert column_times(pa.chunked_array([["1969-12-31T23:59:59.999", "soon"]]), "time").tolist() == [-1, -1]
