"""The picture of a series: names as they are, what the filters do, what privacy cost, and a warning with the truth."""

import html
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from cloakwork.series import FilterCost
from cloakwork.series.series_picture import NOT_PRIVATE
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
    assert page.count(">true: not private<") == len(compare)
    assert (NOT_PRIVATE.format("") in page) == bool(compare)
    assert f">{source}, in bins of 1h (UTC)<" in page
    assert "5 Oct" in page
    assert "epsilon 1, delta 1e-06" in " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "after limits" not in page


def test_axes_name_the_unit_and_each_kind_of_filter_has_a_title(succeed: Run, here: Path) -> None:
    write(here / "a.csv", ("time", "in$ and $out"), *((iso(HOUR * k), 9) for k in range(30)))
    titles = {
        "running-sum": "sum of all so far",
        "window:1": "each 1h",
        "window:5": "sum of the last 5 x 1h",
        "average:5": "mean of the last 5 x 1h",
        "decay:0.9": "fading sum, 0.9",
        "power:1": "slowly fading sum, power 1",
        "trend:5": "mean of 5 x 1h, centred",
        "seasonal:12x2": "mean of the same 1h in 2 cycles of 12 x 1h",
    }
    words = [word for text in titles for word in ("--filter", text)]
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", "a.csv", *PERIOD, "--counts", "in$ and $out", "--every", "1h", *words, "--plot", "a.svg")
    page = Path("a.svg").read_text()
    assert page.count("in$ and $out per 1h<") == 4
    assert page.count("in$ and $out<") == 4
    assert [title for title in titles.values() if f">{title}" not in page] == []


@pytest.mark.parametrize(("share", "text"), [(0.035, "3.5 %"), (0.59, "59 %"), (0.79, "79 %")])
def test_the_cost_is_a_share_of_the_typical_level(share: float, text: str) -> None:
    cost = FilterCost("window-1", 10 * share, 10.0)
    assert text in str(cost)
    assert not cost.mostly_noise
    assert FilterCost("window-1", 8.0, 10.0).mostly_noise
    assert FilterCost("window-1", 8.0, 0.0).mostly_noise


@pytest.mark.parametrize(
    "words", [("--person", "card", "--most-per-person", 1000), ("--value", "paid", "--most-per-event", 1e6)]
)
def test_bands_hold_the_value_after_limits_even_if_no_limit_cut_anything(
    succeed: Run, visits: Path, words: tuple[object, ...]
) -> None:
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("series", visits, *PERIOD, *words, "--filter", "window:1", "--plot", "a.svg")
    page = " ".join(re.sub("<[^>]*>", " ", Path("a.svg").read_text()).split())
    assert "after limits in 95 % of cases" in page


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
