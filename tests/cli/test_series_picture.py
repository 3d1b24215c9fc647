"""The picture of a series: names as they are, the filters, and what privacy cost."""

import html
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.cli.conftest import Run
from tests.cli.series_files import HOUR, PERIOD, iso, write


def test_names_that_look_like_formulas_or_begin_with_an_underscore_are_shown(succeed: Run, here: Path) -> None:
    names = [r"$\frac$", "till $5 to $10", "_staff", "plain"]
    source = "a $_$ b.csv"
    write(here / source, ("time", "door"), *((iso(HOUR * k), names[k % 4]) for k in range(40)))
    words = ("series", source, *PERIOD, "--filter", "window:1", "--series-by", "door", "--names", ",".join(names))
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed(*words, "--plot", "a.svg")
    page = html.unescape(Path("a.svg").read_text())
    assert [name for name in names if page.count(f">{name}<") != 1] == []
    assert f">{source}, in bins of 1h (UTC)<" in page
    assert "epsilon 1, delta 1e-06" in " ".join(re.sub("<[^>]*>", " ", page).split())


def test_axes_name_the_unit_each_filter_is_named_and_series_beyond_five_are_counted(succeed: Run, here: Path) -> None:
    doors = [f"d{k}" for k in range(7)]
    write(here / "a.csv", ("time", "in$ and $out", "door"), *((iso(HOUR * k), 9, doors[k % 7]) for k in range(30)))
    filters = ("running-sum", "window:5", "trend:5")
    words = [word for text in filters for word in ("--filter", text)]
    value = ("--value", "in$ and $out", "--most-per-event", 9, "--series-by", "door", "--names", ",".join(doors))
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", "a.csv", *PERIOD, *value, *words, "--plot", "a.svg")
    page = Path("a.svg").read_text()
    assert page.count(">in$ and $out<") == len(filters)
    assert page.count("d4 (and 2 more, not drawn)") == len(filters)
    assert all(f">{name}: off by" in page for name in ("running-sum", "window-5", "trend-5"))


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
