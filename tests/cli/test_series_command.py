"""`series`: a private series from a file, published with one command."""

from collections import Counter
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.cli.conftest import Run
from tests.cli.series_files import CLEAR, HOUR, PERIOD, Z95, close, floats, iso, read, values_in, write


def test_events_are_counted_filtered_and_published(succeed: Run, visits: Path, seconds: NDArray[np.int64]) -> None:
    filters = ("--filter", "running-sum", "--filter", "window:1", "--filter", "trend:3")
    done = succeed("series", visits, *PERIOD, *CLEAR, *filters)
    published = read(Path("published.csv"))
    assert list(published) == [
        "time",
        *(name + end for name in ("running-sum", "window-1", "trend-3") for end in ("", ".within")),
    ]
    assert published["time"][:2] == ["2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z"]
    counts = np.bincount(seconds // HOUR, minlength=48)
    assert close(published, "window-1", counts)
    assert close(published, "running-sum", counts.cumsum())
    middle = {name: cells[1:-1] for name, cells in published.items()}
    assert close(middle, "trend-3", np.convolve(counts, np.ones(3) / 3, "valid"))
    assert float(max(published["window-1.within"])) < 1.5
    assert "epsilon 40, delta 0.001" in done.out
    assert "--person" in done.err
    assert "warning" not in done.err
    assert "published.csv" in done.err


def test_the_noise_has_the_stated_size_and_the_summary_its_share(succeed: Run, here: Path) -> None:
    rows = write(here / "zeros.csv", ("time", "n"), (iso(0), 0))
    period = ("--every", "1m", "--from", "2026-10-05", "--to", iso(8192 * 60))
    done = succeed("series", rows, "--counts", "n", *period, "--filter", "window:1", "--json")
    published = read(Path("published.csv"))
    assert published["time"][1:3] == ["2026-10-05T00:01:00Z", "2026-10-05T00:02:00Z"]
    values, error = floats(published["window-1"]), float(published["window-1.within"][0]) / Z95
    assert error == pytest.approx(4.2247, rel=2e-3)  # of the exact Gaussian mechanism at (1, 1e-6), sensitivity 1
    assert values.std() == pytest.approx(error, rel=0.05)
    [cost] = done.values["filters"]
    level = np.abs(values).mean()
    assert cost["typical_level"] == pytest.approx(level, rel=1e-3)
    assert cost["root_mean_square_error"] == pytest.approx(4.2247, rel=2e-3)
    assert cost["share"] == pytest.approx(4.2247 / level, rel=5e-3)


def test_limits_of_persons_are_reported_at_the_terminal_only(succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "window:1", "--person", "card", "--most-per-person", 4)
    with mpl.rc_context({"svg.fonttype": "none"}):
        done = succeed(*words, "--json", "--plot", "a.svg")
    events = Counter(read(visits)["card"]).values()
    over = sum(max(number - 4, 0) for number in events)
    assert f"{over:,} events above the limit of their person" in done.err
    assert (done.values["level"], done.values["contribution"]) == ("user", 4)
    assert over > 1000
    page = Path("a.svg").read_text()
    assert f"{over:,}" not in done.out + page + Path("published.csv").read_text()
    assert over not in values_in(done.values)


def test_several_series_are_published_together(succeed: Run, visits: Path, seconds: NDArray[np.int64]) -> None:
    done = succeed(
        *("series", visits, *PERIOD, *CLEAR, "--filter", "window:1", "--filter", "running-sum"),
        *("--series-by", "door", "--names", "south,west"),
    )
    published = read(Path("published.csv"))
    south = np.array(read(visits)["door"]) == "south"
    assert close(published, "south.window-1", np.bincount(seconds[south] // HOUR, minlength=48))
    assert close(published, "west.running-sum", np.zeros(48))
    assert len(published) == 1 + 2 * 2 * 2
    assert "west" in done.err
    assert "west" not in done.out


def test_counts_come_from_a_file_and_taps_from_the_command(succeed: Run, here: Path) -> None:
    counts = np.arange(48) % 7
    write(here / "counts.csv", ("Date", "n"), *((iso(HOUR * k), n) for k, n in enumerate(counts)))
    filters = ("--filter", "taps:1,-2,0.5", "--filter", "taps:1,0,0.25@-1")
    words = ("--counts", "n", "--every", "1h", "--most-per-person", 3, *filters)
    succeed("series", "counts.csv", *PERIOD, *words, *CLEAR)
    published = read(Path("published.csv"))
    assert close(published, "taps:1,-2,0.5", np.convolve(counts, [1, -2, 0.5])[:48])
    assert close(published, "taps:1,0,0.25@-1", np.r_[counts[1:], 0] + 0.25 * np.r_[0, counts[:-1]])


@pytest.mark.parametrize("out", ["shared.csv", "shared.parquet"])
def test_no_true_value_is_in_any_file_or_summary(succeed: Run, here: Path, out: str) -> None:
    write(here / "counts.csv", ("time", "n"), *((iso(HOUR * k), 7_654_321 + 1000 * k) for k in range(40)))
    words = ("series", "counts.csv", "--counts", "n", "--every", "1h", *PERIOD, "--filter", "window:1", "--out", out)
    noise = ("--filter", "running-sum", "--epsilon", 1e-6)  # that no digit survives
    shown = {str(7_654_321 + 1000 * k) for k in range(40)}
    for _ in range(2):  # noise hits one of them by chance once in some hundred runs, but not the same one again
        with mpl.rc_context({"svg.fonttype": "none"}):
            said = succeed(*words, *noise, "--plot", "a.svg", "--json").said
        shared = said + Path("a.svg").read_text()
        shared += str(pq.read_table(out).to_pydict()) if out.endswith(".parquet") else Path(out).read_text()
        shown = {value for value in shown if value in shared}
        assert "NOT PRIVATE" not in shared
        if not shown:
            break
    assert shown == set()


def test_a_person_may_count_once_within_a_time_for_less_noise(run: Run, succeed: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "running-sum", "--person", "card", "--most-per-person", 4, "--json")
    anywhere, apart = (succeed(*words, *more).values for more in ((), ("--separation", "12h")))
    assert apart["expected_mse"] < 0.6 * anywhere["expected_mse"]
    assert "once in any 12 bins" in apart["hides"]
    assert "--separation: give a whole number" in run(*words, "--separation", "90m").err
