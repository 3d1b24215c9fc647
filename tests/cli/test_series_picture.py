"""The picture of a series: names as they are, what the filters do, what privacy cost, and a warning with the truth."""

import html
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from cloakwork.series.picture import NOT_PRIVATE
from tests.cli.conftest import Run
from tests.cli.series_files import HOUR, PERIOD, iso, write


@pytest.mark.parametrize("compare", [(), ("--compare",)])
def test_names_that_look_like_formulas_or_begin_with_an_underscore_are_shown(
    succeed: Run, here: Path, compare: tuple[str, ...]
) -> None:
    names = [r"$\frac$", "till $5 to $10", "_staff", "plain"]
    source = "a $_$ b.csv"
    write(here / source, ("time", "door"), *((iso(HOUR * k), names[k % 4]) for k in range(40)))
    words = ("series", source, *PERIOD, "--filter", "window:1", "--series-by", "door", "--names", ",".join(names))
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed(*words, "--plot", "a.svg", *compare)
    page = html.unescape(Path("a.svg").read_text())
    assert [name for name in names if page.count(f">{name}<") != 1] == []
    assert (NOT_PRIVATE in page) == bool(compare)
    assert f">{source}, in bins of 1h (UTC)<" in page
    assert "epsilon 1, delta 1e-06" in " ".join(re.sub("<[^>]*>", " ", page).split())


def test_axes_name_the_unit_each_filter_has_a_title_and_series_beyond_five_are_counted(
    succeed: Run, here: Path
) -> None:
    doors = [f"d{k}" for k in range(7)]
    write(here / "a.csv", ("time", "in$ and $out", "door"), *((iso(HOUR * k), 9, doors[k % 7]) for k in range(30)))
    titles = {
        "running-sum": "sum of all bins so far",
        "window:1": "each bin",
        "window:5": "sum of the last 5 bins",
        "average:5": "mean of the last 5 bins",
        "decay:0.9": "fading sum, 0.9",
        "power:1": "slowly fading sum, power 1",
        "trend:5": "mean of 5 bins, centred",
        "seasonal:12x2": "mean of the same bin in 2 cycles of 12 bins",
    }
    words = [word for text in titles for word in ("--filter", text)]
    value = ("--value", "in$ and $out", "--most-per-event", 9, "--series-by", "door", "--names", ",".join(doors))
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", "a.csv", *PERIOD, *value, *words, "--plot", "a.svg")
    page = Path("a.svg").read_text()
    assert page.count(">in$ and $out<") == len(titles)
    assert page.count("d4 (and 2 more, not drawn)") == len(titles)
    assert [title for title in titles.values() if f">{title}" not in page] == []


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
