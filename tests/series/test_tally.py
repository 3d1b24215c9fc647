"""From events to counts: what one event or person can change is bounded, exactly."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import CalibrationError, CloakworkError, InputError, ReadingError
from cloakwork.series import Bins, Contribution, Counts, WindowSum, tally

BINS = Bins(start=1000, every=10, n=7)
TIMES = st.integers(990, 1080)  # some are before the first bin and after the last
EVENTS = st.lists(
    st.tuples(TIMES, st.integers(0, 4), st.integers(-1, 2), st.floats(-3, 30, allow_nan=False)), max_size=30
)


def columns(events: list[tuple[int, int, int, float]]) -> dict[str, Any]:
    """The events as arrays: when, whose, in which series, of what value."""
    times, persons, series, values = zip(*events, strict=True) if events else ((), (), (), ())
    return {
        "times": np.array(times, dtype=np.int64),
        "persons": np.array(persons, dtype=np.int64),
        "series": np.array(series, dtype=np.int64),
        "values": np.array(values, dtype=np.float64),
    }


TWO = ("a", "b")


def in_steps(counts: Counts) -> Any:
    return np.rint(counts.values / counts.step).astype(np.int64)


def test_bins_hold_the_moments_from_their_start_until_before_their_end() -> None:
    assert BINS.places([999, 1000, 1009, 1010, 1069, 1070]).tolist() == [-1, 0, 0, 1, 6, -1]
    assert (BINS.end, BINS.times.tolist()) == (1070, [1000, 1010, 1020, 1030, 1040, 1050, 1060])
    assert Bins.between(1000, 1070, every=10) == BINS


@settings(deadline=None, derandomize=True, max_examples=40)
@given(EVENTS)
def test_counts_are_what_counting_one_by_one_gives(events: list[tuple[int, int, int, float]]) -> None:
    given = columns(events)
    found = tally(given["times"], BINS, series=given["series"], names=TWO)
    by_hand = Counter((s, (t - 1000) // 10) for t, _, s, _ in events if 1000 <= t < 1070 and 0 <= s < 2)
    assert found.values.tolist() == [[by_hand[s, b] for b in range(7)] for s in range(2)]
    assert found.losses["events outside the period"] == sum(not 1000 <= t < 1070 for t, *_ in events)
    assert found.losses["events of other series"] == sum(1000 <= t < 1070 and not 0 <= s < 2 for t, _, s, _ in events)
    assert (found.contribution, found.step) == (Contribution(1), 1.0)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(EVENTS)
def test_values_are_clipped_and_rounded_one_by_one_and_their_sums_are_exact(
    events: list[tuple[int, int, int, float]],
) -> None:
    given = columns(events)
    found = tally(given["times"], BINS, values=given["values"], most_per_event=12.5, step=0.25)
    sums = [Fraction(0)] * 7
    for time, _, _, value in events:
        if 1000 <= time < 1070:
            sums[(time - 1000) // 10] += Fraction(round(min(max(value, 0.0), 12.5) / 0.25)) / 4
    assert [Fraction(value) for value in found.values[0].tolist()] == sums
    assert (found.contribution, found.step) == (Contribution(50), 0.25)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(EVENTS, EVENTS, st.integers(1, 6), st.data())
def test_all_that_one_person_did_changes_no_more_than_the_limit(
    others: list[tuple[int, int, int, float]],
    own: list[tuple[int, int, int, float]],
    most: int,
    data: st.DataObject,
) -> None:
    mixed = [(event, False) for event in others]
    for time, _, series, value in own:
        mixed.insert(data.draw(st.integers(0, len(mixed))), ((time, 9, series, value), True))
    files = ([event for event, _ in mixed], [event for event, mine in mixed if not mine])
    for by_value in (False, True):
        found = []
        for rows in files:
            given = columns(rows)
            bound: dict[str, Any] = {"values": given["values"], "most_per_event": 5.0, "step": 0.5} if by_value else {}
            found.append(
                tally(
                    given["times"],
                    BINS,
                    series=given["series"],
                    names=TWO,
                    persons=given["persons"],
                    most_per_person=most,
                    **bound,
                )
            )
        change = in_steps(found[0]) - in_steps(found[1])
        limit = 2 * most if by_value else most
        counting = [(s, t) for t, _, s, v in own if 0 <= s < 2 and 1000 <= t < 1070]
        assert (change >= 0).all()
        assert change.sum() <= limit
        assert found[0].cloak(WindowSum(1), epsilon=1, delta=1e-6).contribution == Contribution(limit)
        if not by_value:
            assert change.sum() == min(len(counting), most)  # no less is taken than may be


def test_which_events_count_does_not_depend_on_the_order_of_the_file(rng: np.random.Generator) -> None:
    times, persons = rng.permutation(70) + 1000, rng.integers(0, 5, 70)
    order = rng.permutation(70)
    first = tally(times, BINS, persons=persons, most_per_person=3)
    second = tally(times[order], BINS, persons=persons[order], most_per_person=3)
    assert (first.values == second.values).all()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(EVENTS, st.lists(st.sampled_from(["", "0", "1x", "zoe"]), max_size=8))
def test_which_events_of_a_person_count_does_not_depend_on_who_else_is_there(
    events: list[tuple[int, int, int, float]], others: list[str]
) -> None:
    """Others sort before and after, and so they change the number that NumPy would give a label."""
    times = [time for time, *_ in events]
    persons = [f"p{person}" for _, person, *_ in events]
    alone = tally(times, BINS, persons=persons, most_per_person=2)
    away = tally([*times, *(BINS.end for _ in others)], BINS, persons=[*persons, *others], most_per_person=2)
    assert (alone.values == away.values).all()


@pytest.mark.parametrize(("one", "other", "third"), [(2**63 + 1, 2**63 + 2, 3), ("a", "a\0", "b"), (-1, 2**64 - 1, 0)])
def test_persons_that_numpy_would_make_one_are_two(one: Any, other: Any, third: Any) -> None:
    """Merged, they would share one limit, and what counts of the other would depend on the one."""
    found = tally(BINS.times[:5], BINS, persons=[one, one, other, other, third], most_per_person=2)
    assert found.values[0].tolist() == [1, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    "persons",
    [
        [7, "7"],
        [2**53, 0.5],
        [math.nan, math.nan],
        ["a", None],
        [[1], [2]],
        np.array([True, False]),
        np.array(["NaT", "2026-10-05"], dtype="datetime64[s]"),
        "ab",
    ],
)
def test_persons_who_are_neither_whole_numbers_nor_texts_are_refused(persons: Any) -> None:
    with pytest.raises(InputError, match="persons"):
        tally([1000, 1001], BINS, persons=persons, most_per_person=1)


VISITS = st.lists(TIMES, max_size=20)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(EVENTS, VISITS, st.integers(1, 4), st.integers(1, 3), st.data())
def test_visits_of_one_person_that_count_are_apart(
    others: list[tuple[int, int, int, float]], own: list[int], most: int, separation: int, data: st.DataObject
) -> None:
    """In all series together, and whatever the others do."""
    mixed = [(time, person, series) for time, person, series, _ in others]
    for time in own:
        mixed.insert(data.draw(st.integers(0, len(mixed))), (time, 9, data.draw(st.integers(0, 1))))
    found = []
    for rows in (mixed, [row for row in mixed if row[1] != 9]):
        times, persons, series = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(3))
        options: dict[str, Any] = {"persons": persons, "most_per_person": most, "separation": separation}
        found.append(tally(times, BINS, **options, series=series, names=TWO))
    change = (in_steps(found[0]) - in_steps(found[1])).sum(axis=0)
    assert found[0].contribution == Contribution(most, per_bin=1, separation=separation)
    assert ((change == 0) | (change == 1)).all()
    assert change.sum() <= most
    assert (np.diff(np.flatnonzero(change)) >= separation).all()


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({"values": [1.0]}, CalibrationError, "give most_per_event"),
        ({"persons": ["a"]}, CalibrationError, "give most_per_person"),
        ({"most_per_person": 3}, InputError, "most_per_person=3 without persons"),
        ({"most_per_event": 3.0}, InputError, "most_per_event=3.0 without values"),
        ({"step": 3.0}, InputError, "step=3.0 without values"),
        ({"persons": ["a"], "most_per_person": 1.5}, InputError, "most_per_person=1.5"),
        (
            {"persons": ["a", "b"], "most_per_person": 1},
            InputError,
            "persons has 2 entries",
        ),
        ({"values": [math.nan], "most_per_event": 1.0}, ReadingError, r"values\[0\]"),
        ({"values": [1.0, 2.0], "most_per_event": 1.0}, InputError, "values"),
        ({"values": [1.0], "most_per_event": -1.0}, CalibrationError, "most_per_event=-1.0"),
        ({"values": [1.0], "most_per_event": 1.0, "step": 2.0}, CalibrationError, "0.5 steps"),
        ({"values": [1.0], "most_per_event": 1.0, "step": 1e-15}, CalibrationError, "most_per_event=.* step="),
        ({"values": [1.0], "most_per_event": 1e-290}, CalibrationError, "between 1e-40 and 1e"),
        ({"persons": ["a"], "most_per_person": 1e19}, InputError, "1,099,511,627,776"),
        ({"separation": 2}, InputError, "separation=2 without persons"),
        ({"persons": ["a"], "most_per_person": 1, "separation": 0}, InputError, "separation=0"),
        ({"series": [0, 1]}, InputError, "series has shape"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds: dict[str, Any], error: type[CloakworkError], said: str) -> None:
    with pytest.raises(error, match=said):
        tally([1000], BINS, **bounds)
