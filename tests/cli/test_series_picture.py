"""Names in the picture of a series: shown as they are."""

import html
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.cli.conftest import Run
from tests.cli.series_kit import HOUR, PERIOD, iso, write


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
    assert f">{source}, in bins of 1h (UTC)<" in page
