"""Limits and claims of `series` that are too large or too small: refused in the words of the command line."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.series_kit import CLEAR, HOUR, PERIOD, floats, iso, read, write

VALUE = ("--value", "paid", "--most-per-event")
PERSON = ("--person", "card", "--most-per-person")

TOO_FAR: list[tuple[tuple[object, ...], str]] = [
    *(((*PERSON, most), "give a whole number of events, from 1 to 1,000,000,000") for most in ("1e30", "1e19", "1e10")),
    ((*VALUE, "1e300"), "--most-per-event 1e+300: give a number above 0, between 1e-30 and 1e+30"),
    ((*VALUE, "1e-290"), "--most-per-event 1e-290: give a number above 0, between 1e-30 and 1e+30"),
    ((*VALUE, 50, "--step", "1e-300"), "--step 1e-300: give a number above 0, between 1e-30 and 1e+30"),
    ((*VALUE, 50, "--step", "1e-15"), "steps of 1e-15: give a --step of 5e-08 or more, or a smaller --most-per-event"),
    ((*VALUE, 50, *PERSON, "1e20"), "steps of 0.01: give a smaller --most-per-person"),
    ((*VALUE, 50, *PERSON, "0.001"), "--step 0.01 is more than --most-per-person 0.001: give a smaller step"),
    (
        (*VALUE, 50, "--step", "1e-7", "--epsilon", 0.1),
        "in steps of 1e-07. Give a smaller --most-per-event, a larger --s",
    ),
    (("--counts", "paid", "--contribution", "1e30"), "--contribution 1e+30: give a whole number"),
    (("--epsilon", 1e-12, "--delta", 1e-18), "--epsilon 1e-12 and --delta 1e-18 need more noise than can be drawn"),
    (("--epsilon", 1, "--delta", 1e-31), "Give a larger --delta"),
]


@pytest.mark.parametrize(("words", "said"), TOO_FAR)
def test_a_limit_or_a_claim_that_cannot_be_met_is_refused_with_what_can(
    run: Run, visits: Path, words: tuple[object, ...], said: str
) -> None:
    done = run("series", visits, *PERIOD, "--filter", "window:1", *words)
    assert (done.code, done.out, Path("published.csv").exists()) == (2, "", False)
    assert said in done.err
    assert not re.search("[a-z]_[a-z]|resolution", done.err)


def test_the_largest_limit_that_a_refusal_names_is_possible_and_a_little_more_is_not(run: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "running-sum", *PERSON)
    refused = run(*words, "1e9")
    most = int(
        re.findall(r"can be hidden at --epsilon 1 and --delta 1e-06 is ([0-9,]+)\.", refused.err)[0].replace(",", "")
    )
    assert run(*words, most).code == 0
    assert run(*words, int(1.001 * most)).code == 2


def test_the_largest_epsilon_that_a_refusal_names_is_possible_and_a_few_more_are_not(run: Run, visits: Path) -> None:
    words = ("series", visits, *PERIOD, "--filter", "window:1")
    refused = run(*words, "--epsilon", 80)
    assert refused.code == 2
    most = float(re.findall(r"Give --epsilon ([0-9.]+) or less", refused.err)[0])
    assert run(*words, "--epsilon", most).code == 0
    assert run(*words, "--epsilon", most + 3).code == 2


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_smallest_and_the_largest_values_are_published(succeed: Run, here: Path, size: float) -> None:
    write(here / "a.csv", ("time", "n"), *((iso(HOUR * k), size) for k in range(48)))
    succeed("series", "a.csv", *PERIOD, *CLEAR, "--value", "n", "--most-per-event", size, "--filter", "running-sum")
    found = read(Path("published.csv"))
    within = floats(found["running-sum.within"])
    off = np.abs(floats(found["running-sum"]) - size * np.arange(1, 49))
    assert (within > 0.1 * size).all()
    assert (off <= 4 * within).all()


def test_a_trend_may_be_wider_than_any_series(succeed: Run, visits: Path) -> None:
    succeed("series", visits, *PERIOD, "--filter", "trend:99999999999")
    assert len(read(Path("published.csv"))["trend-99999999999"]) == 48
