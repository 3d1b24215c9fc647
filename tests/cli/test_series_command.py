"""`series`: a private series from a file, published with one command."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cloakwork.cli.series_given import SeriesOptions
from cloakwork.cli.series_input import from_file
from cloakwork.cli.series_output import Cost
from cloakwork.cli.series_picture import NOT_PRIVATE
from tests.cli.conftest import Run
from tests.cli.series_kit import CLEAR, HOUR, PERIOD, START, Z95, close, floats, iso, read, values_in, write


def test_events_are_counted_filtered_and_published(succeed: Run, visits: Path, seconds: NDArray[np.int64]) -> None:
    succeed("series", visits, *PERIOD, *CLEAR, "--filter", "running-sum", "--filter", "window:1", "--filter", "trend:3")
    found = read(Path("published.csv"))
    assert list(found) == [
        "time",
        *(name + end for name in ("running-sum", "window-1", "trend-3") for end in ("", ".within")),
    ]
    assert found["time"][:2] == ["2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z"]
    counts = np.bincount(seconds // HOUR, minlength=48)
    assert close(found, "window-1", counts)
    assert close(found, "running-sum", counts.cumsum())
    middle = {name: cells[1:-1] for name, cells in found.items()}
    assert close(middle, "trend-3", np.convolve(counts, np.ones(3) / 3, "valid"))
    assert float(max(found["window-1.within"])) < 1.5


def test_the_noise_is_as_large_as_it_says(succeed: Run, here: Path) -> None:
    rows = write(here / "zeros.csv", ("n",), *([0] for _ in range(8192)))
    succeed("series", rows, "--counts", "n", "--filter", "window:1", "--epsilon", 1, "--delta", 1e-6)
    found = read(Path("published.csv"))
    assert found["row"][:2] == ["1", "2"]
    spread, said = floats(found["window-1"]).std(), float(found["window-1.within"][0]) / Z95
    assert said == pytest.approx(4.2247, rel=2e-3)  # of the exact Gaussian mechanism at (1, 1e-6), sensitivity 1
    assert spread == pytest.approx(said, rel=0.05)


@pytest.mark.parametrize("form", ["texts", "timestamps", "seconds", "milliseconds", "naive"])
def test_parquet_goes_in_and_out_whatever_form_its_times_have(
    succeed: Run, here: Path, seconds: NDArray[np.int64], form: str
) -> None:
    unix = seconds + int(START.timestamp())
    times = {
        "texts": pa.array([iso(t) for t in seconds]),
        "timestamps": pa.array(unix * 1_000_000, pa.timestamp("us", "Europe/Berlin")),
        "seconds": pa.array(unix),
        "milliseconds": pa.array(unix * 1000.0),
        "naive": pa.array(unix, pa.timestamp("s")),
    }[form]
    pq.write_table(pa.table({"when": times}), here / "events.parquet")
    succeed(
        "series", "events.parquet", "--time", "when", *PERIOD, *CLEAR, "--filter", "window:1", "--out", "out.parquet"
    )
    table = pq.read_table("out.parquet")
    assert table.schema.equals(
        pa.schema([("time", pa.timestamp("ms", "UTC")), ("window-1", pa.float64()), ("window-1.within", pa.float64())])
    )
    assert table.column("time")[1].as_py() == datetime(2026, 10, 5, 1, tzinfo=UTC)
    off = table.column("window-1").to_numpy() - np.bincount(seconds // HOUR, minlength=48)
    assert (np.abs(off) <= 6 / Z95 * table.column("window-1.within").to_numpy()).all()


@pytest.mark.parametrize(
    "form", [iso, lambda t: iso(t)[:19], lambda t: iso(t)[:19].replace("T", " "), lambda t: START.timestamp() + t]
)
def test_times_in_a_csv_file_may_have_many_forms(succeed: Run, here: Path, form: Any) -> None:
    write(here / "a.csv", ("Timestamp",), *([form(t)] for t in (0, 10, HOUR, 47 * HOUR)))
    succeed("series", "a.csv", *PERIOD, *CLEAR, "--filter", "window:1")
    assert close(read(Path("published.csv")), "window-1", np.bincount([0, 0, 1, 47]))


def test_values_are_clipped_and_added_up(succeed: Run, visits: Path, seconds: NDArray[np.int64]) -> None:
    told = succeed(
        "series", visits, *PERIOD, *CLEAR, "--filter", "running-sum", "--value", "paid", "--most-per-event", 30
    )
    paid = np.minimum(floats(read(visits)["paid"]), 30)
    assert close(read(Path("published.csv")), "running-sum", np.bincount(seconds // HOUR, paid, 48).cumsum())
    clipped = sum(float(cell) > 30 for cell in read(visits)["paid"])
    assert f"{clipped} of 3,000 rows clipped, because their value is not within 0 to 30" in told.err
    lower = 100 * (1 - paid.sum() / floats(read(visits)["paid"]).sum())
    assert f"what is published is {lower:.3g} % lower than what came" in told.err
    assert "hides each event, up to a value of 30" in told.out


def test_the_user_level_is_said_and_limits_are_reported_at_the_terminal_only(succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "window:1", "--person", "card", "--most-per-person", 4)
    told = succeed(*words, "--json", "--plot", "a.png")
    over = sum(max(number - 4, 0) for number in Counter(read(visits)["card"]).values())
    assert f"{over:,} of 3,000 rows not counted" in told.err
    assert "not covered by the claim, and not to be published" in told.err
    assert (told.values["level"], told.values["contribution"]) == ("user", 4)
    assert "This hides all that one person did: at most 4 events of each person count" in told.values["hides"]
    assert over > 1000
    assert f"{over:,}" not in told.out + Path("published.csv").read_text()
    assert over not in values_in(told.values)


def test_the_event_level_is_said_and_what_was_spent(succeed: Run, visits: Path) -> None:
    told = succeed("series", visits, *PERIOD, "--filter", "average:6", "--epsilon", 0.5)
    assert "This hides each event: whether it happened or not." in told.out
    assert "spent: epsilon 0.5, delta 1e-06" in told.out
    assert "warning" not in told.err


def test_what_is_taken_from_the_data_is_warned_of(succeed: Run, visits: Path) -> None:
    told = succeed("series", visits, "--filter", "average:6", "--series-by", "door")
    assert "taken from the data, which reveals it: --from (the first time), --to (the last time), --names" in told.err
    values = succeed("series", visits, "--filter", "average:6", "--to", "2026-10-08", "--json").values
    assert values["taken_from_data"] == ["--from (the first time)"]
    assert (values["from"], values["to"], values["bins"]) == ("2026-10-05T00:00:00Z", "2026-10-08T00:00:00Z", 72)


def test_weeks_begin_on_mondays_where_nothing_else_is_said(succeed: Run, here: Path) -> None:
    write(here / "a.csv", ("time",), ["2026-10-08"], ["2026-10-12"])
    values = succeed("series", "a.csv", "--filter", "window:1", "--every", "1w", "--json").values
    assert (values["from"], values["to"], values["bins"]) == ("2026-10-05T00:00:00Z", "2026-10-19T00:00:00Z", 2)


def test_several_series_are_published_together(succeed: Run, visits: Path, seconds: NDArray[np.int64]) -> None:
    told = succeed(
        *("series", visits, *PERIOD, *CLEAR, "--filter", "window:1", "--filter", "running-sum"),
        *("--series-by", "door", "--names", "south,west"),
    )
    found = read(Path("published.csv"))
    south = np.array(read(visits)["door"]) == "south"
    assert close(found, "south.window-1", np.bincount(seconds[south] // HOUR, minlength=48))
    assert close(found, "west.running-sum", np.zeros(48))
    assert "west had no events in this period" in told.err
    assert "west had" not in told.out
    assert f"{int((~south).sum()):,} of 3,000 rows left out, because their name is not among --names" in told.err
    assert len(found) == 1 + 2 * 2 * 2


def test_counts_of_rows_are_published_and_gaps_are_zeros(succeed: Run, here: Path) -> None:
    rows = [(iso(900 * k), k % 7 - 2) for k in range(60) if k not in (5, 6)]
    write(here / "counts.csv", ("time", "n"), *reversed(rows))
    told = succeed("series", "counts.csv", "--counts", "n", "--contribution", 3, *CLEAR, "--filter", "window:2")
    found = read(Path("published.csv"))
    truth = np.array([0 if k in (5, 6) else k % 7 - 2 for k in range(60)])
    assert close(found, "window-2", truth + np.r_[0, truth[:-1]])
    assert found["time"][1] == "2026-10-05T00:15:00Z"
    assert "2 bins without a row, counted as 0" in told.err
    assert "hides each event that adds at most 3 to the counts" in told.out


def test_coefficients_come_from_a_file(succeed: Run, here: Path, visits: Path, seconds: NDArray[np.int64]) -> None:
    write(here / "back.csv", *([value] for value in (1, -2, 0.5)))
    write(here / "ahead.csv", ("lag", "weight"), (1, 0.25), (-1, 1))
    succeed("series", visits, *PERIOD, *CLEAR, "--filter", "back.csv", "--filter", "ahead.csv")
    found, counts = read(Path("published.csv")), np.bincount(seconds // HOUR, minlength=48)
    assert close(found, "back", np.convolve(counts, [1, -2, 0.5])[:48])
    assert close(found, "ahead", np.r_[counts[1:], 0] + 0.25 * np.r_[0, counts[:-1]])


@pytest.mark.parametrize("out", ["shared.csv", "shared.parquet"])
def test_no_true_value_is_in_any_file_or_summary(succeed: Run, here: Path, out: str) -> None:
    write(here / "counts.csv", ("time", "n"), *((iso(HOUR * k), 7_654_321 + 1000 * k) for k in range(40)))
    words = ("series", "counts.csv", "--counts", "n", "--filter", "window:1", "--filter", "running-sum", "--out", out)
    words += ("--epsilon", 1e-6)  # type: ignore[assignment]  # noise that no digit survives
    shown = {str(7_654_321 + 1000 * k) for k in range(40)}
    for _ in range(2):  # by chance noise hits upon one of them in a run of some hundred, but not upon the same again
        with mpl.rc_context({"svg.fonttype": "none"}):
            told = succeed(*words, "--plot", "a.svg", "--json").said
        shared = told + Path("a.svg").read_text()
        shared += str(pq.read_table(out).to_pydict()) if out.endswith(".parquet") else Path(out).read_text()
        shown = {value for value in shown if value in shared}
        assert "NOT PRIVATE" not in shared
    assert shown == set()


def test_a_picture_says_what_privacy_cost_and_a_comparison_that_it_is_not_private(succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "window:1", "--filter", "trend:24", "--plot", "a.svg")
    pages = []
    for more in ((), ("--compare",)):
        with mpl.rc_context({"svg.fonttype": "none"}):
            succeed(*words, *more)
        pages.append(Path("a.svg").read_text())
    assert all("mean of 24 x 1h, centred: off by " in page and "% of the typical level" in page for page in pages)
    assert all("events per 1h" in page and "5 Oct" in page and "6 Oct 2026" in page for page in pages)
    assert all("epsilon 1, delta 1e-06" in page for page in pages)
    assert [NOT_PRIVATE.format("") in page for page in pages] == [False, True]
    assert not any("after limits" in page for page in pages)
    assert Path("a.svg").stat().st_mode & 0o077 == 0


def test_the_cost_is_a_share_of_what_was_published(succeed: Run, visits: Path) -> None:
    values = succeed("series", visits, *PERIOD, "--filter", "window:1", "--json").values
    [cost] = values["filters"]
    level = np.abs(floats(read(Path("published.csv"))["window-1"])).mean()
    assert cost["typical_level"] == pytest.approx(level, rel=1e-3)
    assert cost["root_mean_square_error"] == pytest.approx(4.2247, rel=2e-3)
    assert cost["share"] == pytest.approx(4.2247 / level, rel=5e-3)


def test_nothing_but_noise_is_said_to_be_that(succeed: Run, here: Path) -> None:
    write(here / "none.csv", ("time",))
    told = succeed("series", "none.csv", *PERIOD, "--filter", "window:1")
    assert "about as much as there is: take a longer --every" in told.out
    assert len(read(Path("published.csv"))["time"]) == 48


def test_the_length_of_a_bin_is_told_of_where_it_is_taken_from_the_rows(succeed: Run, here: Path) -> None:
    write(here / "counts.csv", ("time", "n"), *((iso(2 * HOUR * k), 1) for k in range(5)))
    words = ("series", "counts.csv", "--counts", "n", *PERIOD, "--filter", "window:1", "--json")
    told = succeed(*words)
    assert told.values["taken_from_data"] == ["--every (the shortest step)"]
    assert "taken from the data, which reveals it: --every (the shortest step)" in told.err
    given = succeed(*words, "--every", "1h")
    assert (given.values["taken_from_data"], given.values["bins"]) == ([], 48)
    assert "taken from the data" not in given.err
    write(here / "untimed.csv", ("n",), (1,), (2,))
    told = succeed("series", "untimed.csv", "--counts", "n", "--filter", "window:1", "--json")
    assert told.values["taken_from_data"] == ["the number of rows"]
    assert "taken from the data, which reveals it: the number of rows" in told.err


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("time,n\n2026-11-05,1\n", (), "no row lies in this period: what is published is noise"),
        ("time,n\n2026-11-05,1\n", ("--counts", "n", "--every", "1h"), "no row lies in this period: what is publ"),
        ("time,n\n", (), "there are no rows"),
        ("time,n\n", ("--counts", "n", "--every", "1h"), "there are no rows"),
    ],
)
def test_a_period_without_any_row_is_published_as_zeros(
    succeed: Run, here: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    """Whether it can be published would depend on the last event that is there."""
    (here / "a.csv").write_text(text)
    told = succeed("series", "a.csv", *PERIOD, *CLEAR, *words, "--filter", "window:1")
    assert said in told.err
    assert said not in told.out
    assert close(read(Path("published.csv")), "window-1", np.zeros(48))


def test_a_comparison_says_after_which_limits_the_truth_is(succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "running-sum", "--person", "card", "--most-per-person", 4)
    with mpl.rc_context({"svg.fonttype": "none"}):
        told = succeed(*words, "--plot", "a.svg", "--compare")
    page = Path("a.svg").read_text()
    assert "true after limits: not private" in page
    assert NOT_PRIVATE.format(" after limits") in page
    kept = sum(min(number, 4) for number in Counter(read(visits)["card"]).values())
    assert f"what is published is {100 * (1 - kept / 3000):.3g} % lower than what came" in told.err
    assert "lower than what came" not in told.out + page


def test_the_axis_names_what_is_added_up_and_each_kind_of_filter_has_a_title(succeed: Run, here: Path) -> None:
    write(here / "a.csv", ("time", "in$ and $out"), *((iso(HOUR * k), 9) for k in range(30)))
    filters = [
        *("running-sum", "window:1", "window:5", "average:5", "decay:0.9", "power:1", "trend:5"),
        "seasonal:12x2",
    ]
    words = [word for one in filters for word in ("--filter", one)]
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", "a.csv", *PERIOD, "--counts", "in$ and $out", "--every", "1h", *words, "--plot", "a.svg")
    page = Path("a.svg").read_text()
    assert page.count("in$ and $out per 1h<") == 4
    assert page.count("in$ and $out<") == 4
    titles = ("sum of all so far", "each 1h", "sum of the last 5 x 1h", "mean of the last 5 x 1h", "fading sum, 0.9")
    more = ("slowly fading sum, power 1", "mean of 5 x 1h, centred", "mean of the same 1h in 2 cycles of 12 x 1h")
    assert not [title for title in titles + more if f">{title}" not in page]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.035, "3.5 % of the typical level"),
        (0.59, "59 % of the typical level"),
        (0.79, "79 % of"),
        (0.8, "about as much as"),
    ],
)
def test_an_error_is_as_much_as_there_is_only_where_it_nearly_is(share: float, said: str) -> None:
    assert said in str(Cost("window-1", 10 * share, 10.0))


def test_a_column_of_dates_gives_counts_their_times_unless_told_otherwise(succeed: Run, here: Path) -> None:
    write(here / "days.csv", ("Date", "visitors"), *((f"2026-10-{day:02d}", 5) for day in (5, 6, 8)))
    words = ("series", "days.csv", "--counts", "visitors", "--filter", "window:1", "--json")
    told = succeed(*words)
    assert (told.values["bins"], told.values["every_seconds"]) == (4, 86_400)
    assert "times are taken from column Date: give --time for another column, or --time none" in told.err
    told = succeed(*words, "--time", "none")
    assert (told.values["bins"], told.values["from"]) == (3, None)
    assert "times are taken" not in told.err


def test_a_file_that_was_there_is_said_to_be_written_over(succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "window:1")
    assert "wrote published.csv\n" in succeed(*words).err
    assert "wrote over published.csv and a.png\n" in succeed(*words, "--plot", "a.png").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Bands hold the true value in 95 % of cases"),
        (("--person", "card", "--most-per-person", 1000), "Bands hold the true value of the series after limits"),
        (("--value", "paid", "--most-per-event", 1e6), "Bands hold the true value of the series after limits"),
    ],
)
def test_a_picture_says_what_its_bands_hold_whether_or_not_a_limit_cut_anything(
    succeed: Run, visits: Path, words: tuple[object, ...], said: str
) -> None:
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", visits, *PERIOD, *words, "--filter", "window:1", "--plot", "a.svg")
    page = " ".join(re.sub("<[^>]*>", " ", Path("a.svg").read_text()).split())
    assert said in page


CELLS = st.sampled_from(
    [
        iso(0),
        iso(5000),
        iso(90_000)[:19],
        "1791158400",
        "1791158400500",
        "1791158400.5",
        "nan",
        "1e400",
        "",
        "soon",
        "1_0",
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
def test_files_that_differ_in_one_person_give_series_that_differ_by_no_more_than_the_contribution(
    others: list[tuple[str, ...]], own: list[tuple[str, ...]], lot: Any, by_value: bool, most: int
) -> None:
    mixed = [*others, *((time, "me", door, paid) for time, _, door, paid in own)]
    lot.shuffle(mixed)
    fixed = (iso(0), "b", "n", "1")  # a file without any row that can be read is refused
    with TemporaryDirectory() as folder:
        found = []
        for rows in (mixed, [row for row in mixed if row[1] != "me"]):
            path = write(Path(folder) / "a.csv", ("time", "who", "door", "paid"), fixed, *rows)
            options = SeriesOptions(
                path,
                ["window:1"],
                start="2026-10-05",
                end="2026-10-07",
                person="who",
                most_per_person=most,
                value="paid" if by_value else None,
                series_by="door",
                names="n,s",
            )
            found.append(from_file(options).series)
    change = found[0].values - found[1].values
    assert found[0].contribution == found[1].contribution == pytest.approx(most)
    assert np.abs(change).sum() <= most + 1e-9


def test_the_summary_is_one_object(succeed: Run, visits: Path) -> None:
    told = succeed("series", visits, *PERIOD, "--filter", "window:1", "--filter", "decay:0.5", "--json")
    values = json.loads(told.out)
    assert {"source", "from", "to", "every_seconds", "bins", "series", "taken_from_data", "level", "hides"} <= set(
        values
    )
    assert [one["name"] for one in values["filters"]] == ["window-1", "decay-0.5"]
    assert values["explanation"]["hidden"][0] == values["hides"]
    assert values["expected_mse"] < values["papers_mse"]
