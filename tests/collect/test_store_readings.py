"""Readings in the store: kept once, judged rightly, paged without gaps."""

import traceback

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.collect.storage import Alarm, FrameState, Reading, ReadingStatus, Store
from cloakwork.errors import InputError
from tests.collect.store_rows import SITE, START, frames, reading

NEW, AGAIN, ALARM = ReadingStatus.NEW, ReadingStatus.AGAIN, ReadingStatus.ALARM
LARGEST = 2**53 - 1


def all_pages(store: Store, limit: int, *, newest_first: bool = False, sensor: str | None = None) -> list[Reading]:
    found: list[Reading] = []
    after = None
    while True:
        page = store.readings.page(SITE, limit=limit, after=after, newest_first=newest_first, sensor=sensor)
        found += page.items
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("second", [reading(frame=4, value=7), reading(frame=4, time=START + 1)])
def test_a_number_with_two_messages_raises_one_alarm_and_keeps_the_first(store: Store, second: Reading) -> None:
    first = reading(frame=4)
    second = second._replace(received=first.received + 9)
    assert store.readings.add([first]) == [NEW]
    assert store.readings.add([second]) == [ALARM]
    assert store.readings.add([second._replace(value=8, received=0), first]) == [ALARM, AGAIN]
    assert list(store.readings.iterate(SITE)) == [first]
    assert store.readings.alarms(SITE) == [Alarm("s1", 4, second.received)]
    assert store.frames.waiting(SITE) == [FrameState(first.time, 1, 0)]


def test_sites_and_sensors_do_not_mix(store: Store) -> None:
    rows = [reading(), reading(site="hall"), reading("s2"), reading("S1"), reading("s1-"), reading("s1_")]
    assert store.readings.add(rows) == [NEW] * 6
    assert list(store.frames.values("hall", [START])[START]) == ["s1"]
    assert list(store.frames.values(SITE, [START])[START]) == ["S1", "s1", "s1-", "s1_", "s2"]


def test_the_numbers_of_the_wire_form_are_kept_exactly(store: Store) -> None:
    rows = [reading(seq=0, value=-LARGEST), reading(seq=LARGEST, time=LARGEST, value=LARGEST, received=LARGEST)]
    assert store.readings.add(rows) == [NEW, NEW]
    assert list(store.readings.iterate(SITE)) == rows
    assert store.readings.page(SITE, limit=1, after=store.readings.page(SITE, limit=1).next).items == (rows[1],)


def test_a_number_that_does_not_fit_is_refused_with_its_whole_call(store: Store) -> None:
    for value in (2**63, -(2**63) - 1, 10**40):
        with pytest.raises(InputError, match="64 bits") as refusal:
            store.readings.add([reading(), reading("s2", value=value)])
        shown = "".join(traceback.format_exception(refusal.value))
        assert str(abs(value)) not in shown
    assert list(store.readings.iterate(SITE)) == []


def test_a_sensor_that_speaks_twice_of_one_time_counts_once_with_its_highest_number(store: Store) -> None:
    store.readings.add([reading(seq=9, value=9), reading(seq=3, value=3), reading("s2", value=1)])
    assert store.frames.values(SITE, [START])[START] == {"s1": 9, "s2": 1}
    assert store.frames.times(SITE) == [FrameState(START, 3)]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 4, 7, 21, 22])
def test_pages_hold_every_reading_once_in_order(store: Store, limit: int, newest_first: bool) -> None:
    rows = frames(7)
    store.readings.add(rows[::-1])
    assert all_pages(store, limit, newest_first=newest_first) == (rows[::-1] if newest_first else rows)
    own = [row for row in rows if row.sensor == "s2"]
    assert all_pages(store, limit, newest_first=newest_first, sensor="s2") == (own[::-1] if newest_first else own)


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_neither_repeat_nor_skip_while_readings_arrive(store: Store, newest_first: bool) -> None:
    rows = frames(8)
    store.readings.add(rows)
    found: list[Reading] = []
    after = None
    for k in range(100):
        page = store.readings.page(SITE, limit=5, after=after, newest_first=newest_first)
        found += page.items
        after = page.next
        if after is None:
            break
        # one that is newer than all, and one that is older
        store.readings.add([reading("s5", 100 + k), reading("s0", 3, seq=1000 + k)])
    assert [row for row in found if row in rows] == (rows[::-1] if newest_first else rows)
    assert len(set(found)) == len(found)


def test_iterating_ends_although_readings_arrive(store: Store) -> None:
    rows = frames(6000, 1)
    store.readings.add(rows)
    found = []
    for k, row in enumerate(store.readings.iterate(SITE)):
        found.append(row)
        if k % 1000 == 0:
            store.readings.add([reading("s1", 10_000 + k)])
    assert found == rows


def test_a_cursor_that_no_page_returned_is_refused(sqlite_store: Store) -> None:
    for after in ["", "5", "x.s1.1", "1.s1", "1.s1.y", f"{10**30}.s1.1", "1.s1.1.1"]:
        with pytest.raises(InputError) as refusal:
            sqlite_store.readings.page(SITE, after=after)
        assert refusal.value.after == after[:40]


MESSAGES = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), max_size=12
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(MESSAGES, max_size=4))
def test_verdicts_are_those_of_a_simple_model(store: Store, calls: list[list[tuple[str, int, int, int]]]) -> None:
    store.erase(SITE)
    known: dict[tuple[str, int], tuple[int, int]] = {}
    for call in calls:
        expected = []
        for sensor, seq, time, value in call:
            first = known.get((sensor, seq))
            expected.append(NEW if first is None else AGAIN if first == (time, value) else ALARM)
            known.setdefault((sensor, seq), (time, value))
        assert store.readings.add([Reading(SITE, *message, 1) for message in call]) == expected
    assert {(row.sensor, row.seq): (row.time, row.value) for row in store.readings.iterate(SITE)} == known
    assert {frame.time for frame in store.frames.times(SITE)} == {time for time, _ in known.values()}
