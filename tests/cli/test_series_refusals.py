"""`series` refuses what it cannot publish in terms of its options, and leaves all files alone."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.series_files import CLEAR, HOUR, PERIOD, floats, iso, read, write

VALUE = ("--value", "paid", "--most-per-event")
PERSON = ("--person", "card", "--most-per-person")
HOURS = ("--every", "1h", *PERIOD)
COUNTS = ("hours.csv", "--counts", "n", *HOURS)

BAD_INPUTS: list[tuple[tuple[object, ...], str]] = [  # a command, and the option or file that its refusal names
    (("none.csv",), "none.csv"),
    (("a.xlsx",), ".parquet"),
    (("empty.csv",), "empty.csv"),
    (("latin.csv", "--time", "t"), "UTF-8"),
    (("unclosed.csv", "--time", "t"), "quotation mark"),
    (("odd.csv", "--counts", "n", "--time", "m", *HOURS), "1 lines of odd.csv"),
    (("broken.parquet",), "broken.parquet"),
    (("visits.csv", "--time", "when"), "--time when"),
    (("untimed.csv",), "--time"),
    (("visits.csv", "--every", "1x"), "'--every': 1x"),
    (("visits.csv", "--from", "then", "--to", "2026-10-07"), "'--from': then"),
    (("visits.csv", "--from", "1900-01-01", "--to", "2026-10-07"), "'--from': 1900-01-01"),
    (("visits.csv", "--from", "2026-10-05", "--to", "2026-10-04"), "--from, --to"),
    (("visits.csv", *PERIOD, "--every", "7h"), "2026-10-06T18:00:00Z or 2026-10-07T01:00:00Z"),
    (("visits.csv", "--from", "1971-01-01", "--to", "2026-10-07", "--every", "1m"), "16,777,216"),
    (("visits.csv", "--to", "2026-10-07"), "--from, --to"),
    (("visits.csv", "--from", "2026-10-07"), "--from, --to"),
    (("visits.csv", "--series-by", "door", *PERIOD), "--names"),
    (("counts.csv", "--counts", "n", *PERIOD), "--every"),
    (("visits.csv", "--value", "paid"), "--most-per-event"),
    (("visits.csv", *VALUE, 0), "--most-per-event 0"),
    (("visits.csv", "--most-per-event", 3), "--most-per-event"),
    (("visits.csv", "--person", "card"), "--most-per-person"),
    (("visits.csv", *PERSON, 2.5), "--most-per-person 2.5"),
    (("visits.csv", "--most-per-person", 3), "--most-per-person"),
    (("visits.csv", "--names", "a"), "--names"),
    (("visits.csv", "--series-by", "door", "--names", "a,a"), "--names"),
    (("visits.csv", "--epsilon", -1), "--epsilon -1"),
    (("visits.csv", "--delta", 0), "--delta 0"),
    (("visits.csv", "--out", "a.xlsx"), "--out a.xlsx"),
    (("visits.csv", "--out", "visits.csv"), "visits.csv"),
    (("visits.csv", "--plot", "a.doc"), "--plot a.doc"),
    (("visits.csv", "--out", "no/a.csv"), "--out no/a.csv"),
    (("visits.csv", "--plot", "no/a.png"), "--plot no/a.png"),
    (("counts.csv", "--counts", "m", *HOURS), "--counts m"),
    (("counts.csv", "--counts", "n", "--person", "a"), "--person"),
    (("counts.csv", "--counts", "n", *HOURS), "not the start of a bin"),
    (("twice.csv", "--counts", "n", *HOURS), "--series-by"),
    (("untimed.csv", "--counts", "n", *HOURS), "--time"),
    ((*COUNTS, "--most-per-person", 1.5), "--most-per-person"),
    ((*COUNTS, "--filter", "running-sum"), "--filter, --names: two columns would be called running-sum"),
    ((*COUNTS, "--filter", "sum"), "--filter sum"),
    ((*COUNTS, "--filter", "decay:1"), "--filter decay:1"),
    ((*COUNTS, "--filter", "visits.csv"), "--filter visits.csv"),
    (("visits.csv", "--separation", "12h"), "--separation"),
    (("visits.csv", *PERSON, "1e30"), "--most-per-person 1e+30"),
    (("visits.csv", *VALUE, "1e300"), "--most-per-event 1e+300"),
    (("visits.csv", *VALUE, 50, *PERSON, "1e20"), "--most-per-person 1e+20"),
    (("visits.csv", *VALUE, 50, *PERSON, "0.001"), "--most-per-person 0.001"),
    (("visits.csv", "--epsilon", 1e-12, "--delta", 1e-18), "--epsilon 1e-12 and --delta 1e-18"),
    (("visits.csv", "--epsilon", 1, "--delta", 1e-31), "--delta 1e-31"),
]


def test_bad_input_is_refused_by_option_and_nothing_is_lost(run: Run, here: Path, visits: Path) -> None:
    write(here / "untimed.csv", ("hour", "n"), (0, 3), (1, 4))
    write(here / "hours.csv", ("time", "n"), (iso(0), 3), (iso(HOUR), 4))
    write(here / "counts.csv", ("time", "n"), (iso(0), 1), (iso(HOUR), 2), (iso(2.5 * HOUR), 3))
    write(here / "twice.csv", ("time", "n"), (iso(0), 1), (iso(0), 2))
    (here / "empty.csv").touch()
    (here / "latin.csv").write_bytes(b"t\xe9t,n\n1,2\n")
    (here / "unclosed.csv").write_text('t,"n\n1,2\n')
    (here / "odd.csv").write_text('n,m\n1,"2\n')
    (here / "broken.parquet").write_bytes(b"PAR1 and no more")
    (here / "a.xlsx").write_bytes(b"PK\3\4\x14\0\6\0\b\0")
    for name in ("site.toml", "published.csv"):
        (here / name).write_text("precious")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for words, named in BAD_INPUTS:
        stated = ("--from" in words) or ("--to" in words)
        done = run("series", *words, *(() if stated else PERIOD), "--filter", "running-sum")
        assert (done.code, done.out) == (2, ""), words
        assert named in done.err, words
        assert not re.search("[a-z]_[a-z]", done.err), words  # options, not parameters
        assert {path.name: path.read_bytes() for path in here.iterdir()} == before, words


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_smallest_and_the_largest_values_are_published(succeed: Run, here: Path, size: float) -> None:
    write(here / "a.csv", ("time", "n"), *((iso(HOUR * k), size) for k in range(48)))
    succeed("series", "a.csv", *PERIOD, *CLEAR, "--value", "n", "--most-per-event", size, "--filter", "running-sum")
    published = read(Path("published.csv"))
    within = floats(published["running-sum.within"])
    off = np.abs(floats(published["running-sum"]) - size * np.arange(1, 49))
    assert (within > 0.1 * size).all()
    assert (off <= 4 * within).all()
