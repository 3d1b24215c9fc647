"""The rows of a file that `series` reads: each by itself, whatever the others are."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.cli.series_given import SeriesOptions
from cloakwork.cli.series_input import from_file
from cloakwork.readings import TableFile, column_times
from tests.cli.conftest import Run
from tests.cli.series_kit import CLEAR, HOUR, PERIOD, START, close, iso, read


def test_rows_that_cannot_be_read_are_left_out_and_counted(succeed: Run, here: Path) -> None:
    text = f"time,who\n{iso(0)},a\nyesterday,a\n{iso(10)},\n{iso(20)},b,c\n{iso(30)},b\n"
    (here / "a.csv").write_text(text)
    told = succeed(
        "series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1", "--person", "who", "--most-per-person", 1
    )
    assert "2 of 4 rows left out, because they cannot be read (the first is line 3)" in told.err
    assert "1 line left out: too few or too many cells, a quotation mark that is not closed" in told.err
    assert "yesterday" not in told.said
    assert close(read(Path("published.csv")), "window-1", np.r_[2, np.zeros(47)])


def test_semicolons_blanks_and_a_byte_order_mark_are_understood(succeed: Run, here: Path) -> None:
    (here / "a.csv").write_text(f"\ufeffdoor;time\n a ;{iso(0)}\na;{iso(1)}\n", encoding="utf-8")
    succeed("series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1", "--series-by", "door", "--names", "a")
    assert close(read(Path("published.csv")), "a.window-1", np.r_[2, np.zeros(47)])


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
    assert int(START.timestamp() * 1000) in seen
    assert len(seen) > 20


ODD = [
    b'2026-10-05T10:00:00,x,"oops',
    b'2026-10-05T10:00:00,"x,ok',
    b'"2026-10-05T10:00:00,x,ok',
    b'2026-10-05T10:00:00,x,"oo"ps',
    b"2026-10-05T10:00:00,x\xe9,ok",
    b"2026-10-05T10:00:00,x,ok,more",
    b'"',
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("cell", [b"ok", b'"o, ""k"""', b"o\xc3\xa9"])
def test_an_odd_line_is_left_out_and_changes_no_other_line_wherever_it_stands(
    here: Path, odd: bytes, cell: bytes
) -> None:
    rows = [b"2026-10-05T%02d:00:00,p%d,%s" % (hour, hour, cell) for hour in range(12)]
    for place in range(13):
        (here / "a.csv").write_bytes(b"\n".join([b"time,who,note", *rows[:place], odd, b"", *rows[place:], b""]))
        file = TableFile(here / "a.csv")
        cells = file.read(["time", "who", "note"])
        assert cells["who"].to_pylist() == [f"p{hour}" for hour in range(12)]
        assert column_times(cells["time"], "time").tolist() == [
            1000 * (int(START.timestamp()) + HOUR * h) for h in range(12)
        ]
        assert set(cells["note"].to_pylist()) == {'o, "k"' if cell.startswith(b'"') else cell.decode()}
        assert file.left_out == 1


LINES = st.lists(
    st.lists(
        st.sampled_from(
            [b'"', b'""', b",", b";", b"a", b"b c", b"\xff", b"\xc3\xa9", b"\x1f", b"\0", b"\xef\xbb\xbf", b"'"]
        ),
        max_size=7,
    ).map(b"".join),
    max_size=8,
)


@settings(deadline=None, derandomize=True, max_examples=200)
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


@settings(deadline=None, derandomize=True, max_examples=200)
@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(1, 3), st.integers(1, 20))
def test_each_row_is_in_the_line_that_it_is_said_to_be_in(
    lines: list[bytes], end: bytes, width: int, block: int
) -> None:
    head = b",".join(b"c%d" % column for column in range(width))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr("cloakwork.readings.table_file._BLOCK", block)
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


def test_the_line_of_a_bad_row_counts_the_header_empty_lines_and_lines_left_out(
    succeed: Run, run: Run, here: Path
) -> None:
    (here / "a.csv").write_text(f'time,n\n\n{iso(0)},"1\n{iso(0)},1\nsecret,1\n')
    told = succeed("series", "a.csv", *PERIOD, "--filter", "window:1")
    assert "1 of 2 rows left out, because they cannot be read (line 5)" in told.err
    for cells, why in (("secret", "is not a whole number"), ("1", "an earlier row has the same time")):
        (here / "a.csv").write_text(f"time,n\n\n{iso(0)},1\n\n\n{iso(0)},{cells}\n")
        refused = run("series", "a.csv", *PERIOD, "--every", "1h", "--counts", "n", "--filter", "window:1")
        assert refused.code == 2
        assert "a.csv, line 6: " in refused.err
        assert why in refused.err
        assert "secret" not in refused.said


def test_rows_of_a_parquet_file_are_counted_from_one(run: Run, here: Path) -> None:
    pq.write_table(pa.table({"n": [1.0, 2.0, 2.5]}), here / "a.parquet")
    refused = run("series", "a.parquet", "--counts", "n", "--filter", "window:1")
    assert (refused.code, "a.parquet, row 3: n is not a whole number" in refused.err) == (2, True)


def test_blanks_around_names_of_columns_do_not_matter(succeed: Run, here: Path) -> None:
    (here / "a.csv").write_text(f" Time , card ,n\n{iso(0)},a,1\n{iso(1)},a,2\n")
    words = ("series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1")
    for time in ((), ("--time", "Time")):
        succeed(*words, *time, "--person", "card", "--most-per-person", 1)
        assert close(read(Path("published.csv")), "window-1", np.r_[1, np.zeros(47)])
    succeed(*words, "--value", " n ", "--most-per-event", 5)
    assert close(read(Path("published.csv")), "window-1", np.r_[3, np.zeros(47)])


def test_rows_of_a_large_file_are_all_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloakwork.readings.table_file._BLOCK", 100)
    lines = [b'%d,"x"' % number if number % 3 else b'%d,"x' % number for number in range(300)]
    (here / "a.csv").write_bytes(b"\n".join([b"n,who", *lines]))
    file = TableFile(here / "a.csv")
    assert file.read(["n"])["n"].to_pylist() == [str(number) for number in range(300) if number % 3]
    assert file.left_out == 100


def test_one_more_line_changes_what_is_counted_by_one_person_at_the_most(succeed: Run, here: Path) -> None:
    rows = [f"{iso(600 * k)},p{k % 40},ok" for k in range(200)]
    words = ("series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1", "--person", "who", "--most-per-person", 2)
    truth = None
    for more in ([], ['2026-10-05T10:00:00,x,"oops'], ["n/a,x,ok"]):
        (here / "a.csv").write_text("\n".join(["time,who,note", *rows[:50], *more, *rows[50:]]) + "\n")
        options = SeriesOptions(
            here / "a.csv", ["window:1"], start="2026-10-05", end="2026-10-07", person="who", most_per_person=2
        )
        found = from_file(options).series.values
        truth = found if truth is None else truth
        assert (found == truth).all()
        told = succeed(*words)
    assert "1 of 201 rows left out, because they cannot be read (line 52)" in told.err


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
