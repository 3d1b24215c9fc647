"""`series` refuses what it cannot publish, and nothing is lost; what people write is read."""

from pathlib import Path

import pytest

from cloakwork.cli.series_filters import parse_filters, parse_span, shown_span
from cloakwork.errors import InputError
from tests.cli.conftest import Run
from tests.cli.series_kit import HOUR, PERIOD, iso, write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,paid\n10/05/2026 08:31,1\n10/06/2026 09:32,1\n", ()),
        ("time,paid\n2026-10-05,secret\n2026-10-06,words\n", ("--value", "paid", "--most-per-event", 5)),
        ("time,paid\n2026-10-05,secret,1\n", ()),
    ],
)
def test_a_file_of_which_no_row_can_be_read_is_refused_and_no_cell_of_it_shown(
    run: Run, here: Path, text: str, words: tuple[object, ...]
) -> None:
    (here / "a.csv").write_text(text)
    for when in (PERIOD, ()):
        done = run("series", "a.csv", *when, *words, "--filter", "window:1")
        assert (done.code, done.out) == (2, "")
        assert "no row of a.csv can be read, and nothing is published" in done.err
        assert "ISO 8601, such as 2026-10-05T08:30:00Z" in done.err
        assert not any(cell in done.err for cell in ("10/05", "08:31", "secret", "words"))
    assert [path.name for path in here.iterdir()] == ["a.csv"]


BAD_INPUTS: list[tuple[tuple[object, ...], str]] = [
    (("none.csv",), "none.csv: there is no such file"),
    (("site.toml",), "site.toml is a site file: give --from-store"),
    (("a.xlsx",), "give a file that ends in .csv or .parquet"),
    (("empty.csv",), "empty.csv is empty"),
    (("latin.csv", "--time", "t"), "not a text in UTF-8"),
    (("unclosed.csv", "--time", "t"), "its first line has a quotation mark that is not closed"),
    (("odd.csv", "--counts", "n"), "1 line of odd.csv cannot be read: too few or too many cells"),
    (("broken.parquet",), "broken.parquet is not a Parquet file"),
    (("visits.csv", "--time", "when"), "--time when is no column of the file. It has: time, card, door, paid"),
    (("untimed.csv",), "--time: say which column has the times"),
    (("visits.csv", "--time", "card"), "no row of visits.csv can be read"),
    (("twice.csv", "--series-by", "n"), "--series-by n is in the file more than once"),
    (("visits.csv", "--every", "1x"), "--every 1x: give a whole number with m, h, d or w"),
    (("visits.csv", "--every", "0h"), "--every 0h"),
    (("visits.csv", "--from", "then"), "--from then: give a date"),
    (("visits.csv", "--from", "2026-10-05", "--to", "2026-10-04"), "give --from before --to"),
    (("visits.csv", *PERIOD, "--every", "7h"), "give --to 2026-10-06T18:00:00Z or 2026-10-07T01:00:00Z"),
    (("visits.csv", "--from", "1971-01-01", "--every", "1m"), "are more than 16,777,216 values"),
    (("nothing.csv",), "nothing to take the period from: give --from and --to"),
    (("visits.csv", "--value", "paid"), "--value without --most-per-event"),
    (("visits.csv", "--value", "paid", "--most-per-event", "0"), "--most-per-event 0: give a number above 0"),
    (("visits.csv", "--value", "paid", "--most-per-event", 5, "--step", 9), "--step 9 is more than --most-per-event 5"),
    (("visits.csv", "--most-per-event", "3"), "--most-per-event: this goes with --value"),
    (("visits.csv", "--person", "card"), "--person without --most-per-person: say how many events"),
    (
        ("visits.csv", "--person", "card", "--most-per-person", "2.5"),
        "--most-per-person 2.5: give a whole number of ev",
    ),
    (("visits.csv", "--most-per-person", "3"), "--most-per-person: this goes with --person"),
    (("visits.csv", "--contribution", "3"), "--contribution: this goes with --counts"),
    (("visits.csv", "--names", "a"), "--names without --series-by"),
    (("visits.csv", "--series-by", "door", "--names", "a,a"), "--names: give each name once"),
    (("visits.csv", "--zone", "all"), "--zone: this goes with --from-store"),
    (("visits.csv", "--visit", "1h"), "--visit: this goes with --from-store"),
    (("visits.csv", "--epsilon", "-1"), "epsilon=-1.0"),
    (("visits.csv", "--delta", "0"), "delta=0: Gaussian noise never"),
    (("visits.csv", "--out", "a.xlsx"), "--out a.xlsx: the name says the form"),
    (("visits.csv", "--out", "visits.csv"), "visits.csv is an input"),
    (("visits.csv", "--plot", "a.doc"), "--plot a.doc: a picture is"),
    (("visits.csv", "--compare"), "--compare without --plot"),
    (("visits.csv", "--out", "no/a.csv"), "--out no/a.csv: there is no folder no"),
    (("visits.csv", "--plot", "no/a.png"), "--plot no/a.png: there is no folder no"),
    (("visits.csv", "--from", "1900-01-01"), "--from 1900-01-01: times before 1970 cannot be used"),
    (("blanks.csv", "--person", "card", "--most-per-person", 1), "--person card is in the file more than once"),
    (("counts.csv", "--counts", "m"), "--counts m is no column"),
    (("counts.csv", "--counts", "n", "--person", "a"), "--person: this goes with events"),
    (("counts.csv", "--counts", "n"), "counts.csv, line 4: its time is not a whole number of 1h after"),
    (("twice.csv", "--counts", "m", "--every", "1h"), "twice.csv, line 3: an earlier row has the same time"),
    (("counts.csv", "--counts", "part"), "counts.csv, line 2: part is not a whole number"),
    (("untimed.csv", "--counts", "n", "--every", "1h"), "--every: rows have no time"),
    (("untimed.csv", "--counts", "n", "--contribution", "1.5"), "--contribution 1.5: give a whole number"),
    (("onetime.csv", "--counts", "n"), "all rows have the same time: give --every"),
    (("nothing.csv", "--counts", "n"), "nothing.csv has no rows"),
    (("untimed.csv", "--counts", "n", "--filter", "running-sum"), "--filter: running-sum is there twice"),
    (("untimed.csv", "--counts", "n", "--filter", "sum"), "--filter sum: there is no such filter. Give running-sum"),
    (("untimed.csv", "--counts", "n", "--filter", "window:x"), "--filter window:x: give a whole number, such as w"),
    (("untimed.csv", "--counts", "n", "--filter", "seasonal:24x"), "--filter seasonal:24x: give whole numbers, such"),
    (("untimed.csv", "--counts", "n", "--filter", "average:1.5"), "--filter average:1.5: give a whole number"),
    (("untimed.csv", "--counts", "n", "--filter", "trend"), "--filter trend: trend needs a width, such as trend:24"),
    (("untimed.csv", "--counts", "n", "--filter", "decay:"), "decay needs a rate, such as decay:0.9"),
    (("untimed.csv", "--counts", "n", "--filter", "decay:1"), "--filter decay:1: rate=1.0: give a number between"),
    (("untimed.csv", "--counts", "n", "--filter", "none.csv"), "none.csv: there is no such file"),
    (("untimed.csv", "--counts", "n", "--filter", "latin.csv"), "latin.csv is not a CSV file of numbers"),
    (("untimed.csv", "--counts", "n", "--filter", "visits.csv"), "visits.csv, line 1: it has 4 cells: give one coef"),
    (("untimed.csv", "--counts", "n", "--filter", "lags.csv"), "lags.csv, line 3: lags are whole numbers, each once"),
]


@pytest.mark.parametrize(("words", "said"), BAD_INPUTS)
def test_bad_input_is_refused_and_nothing_is_lost(
    run: Run, here: Path, visits: Path, words: tuple[object, ...], said: str
) -> None:
    write(here / "untimed.csv", ("hour", "n"), (0, 3), (1, 4))
    write(here / "counts.csv", ("time", "n", "part"), (iso(0), 1, 0.5), (iso(HOUR), 2, 1), (iso(2.5 * HOUR), 3, 1))
    write(here / "twice.csv", ("time", "n", "n", "m"), (iso(0), 1, 1, 1), (iso(0), 2, 1, 1))
    write(here / "onetime.csv", ("time", "n"), (iso(0), 1))
    write(here / "nothing.csv", ("time", "n"))
    write(here / "blanks.csv", ("time", "card", " card "), (iso(0), 1, 1))
    write(here / "lags.csv", ("lag", "weight"), (0, 1), (0, 2))
    (here / "empty.csv").touch()
    (here / "latin.csv").write_bytes(b"t\xe9t,n\n1,2\n")
    (here / "unclosed.csv").write_text('t,"n\n1,2\n')
    (here / "odd.csv").write_text('n,m\n1,"2\n')
    (here / "broken.parquet").write_bytes(b"PAR1 and no more")
    for name in ("site.toml", "a.xlsx", "published.csv"):
        (here / name).write_text("precious")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    done = run("series", *words, "--filter", "running-sum")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_picture_that_fails_leaves_the_old_files_alone(
    run: Run, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", breaks)
    Path("published.csv").write_text("precious")
    done = run("series", visits, *PERIOD, "--filter", "window:1", "--plot", "a.png")
    assert (done.code, Path("published.csv").read_text()) == (1, "precious")
    assert sorted(path.name for path in Path().iterdir()) == ["published.csv", "visits.csv"]


def test_filters_and_spans_are_read_as_people_write_them() -> None:
    texts = ["running-sum", "window:24", "average:3", "decay:0.9", "power:1", "trend:24", "seasonal:24x4", "seasonal:7"]
    names = [one.name for one in parse_filters(texts)]
    assert names == [
        *("running-sum", "window-24", "average-3", "decay-0.9", "power-1", "trend-24", "seasonal-24x4", "seasonal-7x4")
    ]
    for text in ("1s", "15m", "1h", "36h", "1d", "2w"):
        assert shown_span(parse_span("--every", text)) == text
    for text in ("", "h", "1.5h", "-1h", "1 h", "1000000h"):
        with pytest.raises(InputError, match="--every"):
            parse_span("--every", text)
