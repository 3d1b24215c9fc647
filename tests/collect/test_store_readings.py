"""Readings in the store: kept once, judged rightly, paged without gaps."""

import traceback

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.collect.records import Alarm, FrameTime, Page, Reading, Verdict
from cloakwork.collect.store import Store
from cloakwork.errors import InputError
from tests.collect.rows import SITE, START, frames, moment, reading

NEW, AGAIN, ALARM = Verdict.NEW, Verdict.AGAIN, Verdict.ALARM
LARGEST = 2**53 - 1


def all_pages(store: Store, limit: int, *, newest_first: bool = False, sensor: str | None = None) -> list[Reading]:
    found: list[Reading] = []
    after = None
    while True:
        page = store.readings(SITE, limit=limit, after=after, newest_first=newest_first, sensor=sensor)
        found += page.items
        after = page.next
        if after is None:
            return found


def test_a_reading_is_new_once_and_then_known(store: Store) -> None:
    rows = frames(2)
    assert store.add_readings(rows) == [NEW] * 6
    late = [row._replace(received=row.received + 5) for row in rows]
    assert store.add_readings(late) == [AGAIN] * 6
    assert list(store.iterate(SITE)) == rows
    assert store.alarms(SITE) == []


@pytest.mark.parametrize("second", [reading(frame=4, value=7), reading(frame=4, time=START + 1)])
def test_a_number_with_two_messages_raises_one_alarm_and_keeps_the_first(store: Store, second: Reading) -> None:
    first = reading(frame=4)
    second = second._replace(received=first.received + 9)
    assert store.add_readings([first]) == [NEW]
    assert store.add_readings([second]) == [ALARM]
    assert store.add_readings([second._replace(value=8, received=0), first]) == [ALARM, AGAIN]
    assert list(store.iterate(SITE)) == [first]
    assert store.alarms(SITE) == [Alarm("s1", 4, second.received)]
    assert store.unsolved(SITE) == [first.time]


def test_messages_of_one_call_are_judged_in_their_order(store: Store) -> None:
    first = reading()
    rows = [first, first, first._replace(value=5), reading("s2"), first._replace(value=5), first]
    assert store.add_readings(rows) == [NEW, AGAIN, ALARM, NEW, ALARM, AGAIN]
    assert store.frame(SITE, first.time) == {"s1": first.value, "s2": 0}
    assert [alarm.seq for alarm in store.alarms(SITE)] == [first.seq]


def test_of_two_new_messages_under_one_number_the_stored_one_decides(store: Store) -> None:
    store.add_readings([reading(value=5)])
    assert store.add_readings([reading(value=6), reading(value=5), reading(value=6)]) == [ALARM, AGAIN, ALARM]


def test_nothing_is_nothing(store: Store) -> None:
    assert store.add_readings([]) == []
    assert store.readings(SITE) == Page((), None)
    assert list(store.iterate(SITE)) == []
    assert store.frame(SITE, START) == {}
    assert store.frames(SITE, []) == {}
    assert store.frame_times(SITE) == []


def test_sites_and_sensors_do_not_mix(store: Store) -> None:
    rows = [reading(), reading(site="hall"), reading("s2"), reading("S1"), reading("s1-"), reading("s1_")]
    assert store.add_readings(rows) == [NEW] * 6
    assert list(store.frame("hall", START)) == ["s1"]
    assert list(store.frame(SITE, START)) == ["S1", "s1", "s1-", "s1_", "s2"]


def test_the_numbers_of_the_wire_form_are_kept_exactly(store: Store) -> None:
    rows = [reading(seq=0, value=-LARGEST), reading(seq=LARGEST, time=LARGEST, value=LARGEST, received=LARGEST)]
    assert store.add_readings(rows) == [NEW, NEW]
    assert list(store.iterate(SITE)) == rows
    assert store.readings(SITE, limit=1, after=store.readings(SITE, limit=1).next).items == (rows[1],)


def test_a_number_that_does_not_fit_is_refused_with_its_whole_call(store: Store) -> None:
    for value in (2**63, -(2**63) - 1, 10**40):
        with pytest.raises(InputError, match=r"at most 64 bits\. Nothing of this call was stored") as refusal:
            store.add_readings([reading(), reading("s2", value=value)])
        shown = "".join(traceback.format_exception(refusal.value))
        assert str(abs(value)) not in shown
    assert list(store.iterate(SITE)) == []


def test_a_call_larger_than_one_statement_is_one_transaction(store: Store) -> None:
    rows = frames(700, 5)
    assert store.add_readings(rows) == [NEW] * 3500
    assert store.add_readings(rows[::-1]) == [AGAIN] * 3500
    assert list(store.iterate(SITE)) == rows
    with pytest.raises(InputError):
        store.add_readings([*frames(700, 5, first=700), reading(seq=2**64)])
    assert sum(1 for _ in store.iterate(SITE)) == 3500


def test_a_frame_has_the_readings_of_exactly_one_time(store: Store) -> None:
    store.add_readings([*frames(2), reading("s9", 0, time=moment(0) + 1)])
    assert store.frame(SITE, moment(1)) == {"s1": 10, "s2": 10, "s3": 10}
    assert store.frames(SITE, [moment(1), moment(0) + 1, 5]) == {
        moment(1): {"s1": 10, "s2": 10, "s3": 10},
        moment(0) + 1: {"s9": 0},
        5: {},
    }


def test_a_sensor_that_speaks_twice_of_one_time_counts_once_with_its_highest_number(store: Store) -> None:
    store.add_readings([reading(seq=9, value=9), reading(seq=3, value=3), reading("s2", value=1)])
    assert store.frame(SITE, START) == {"s1": 9, "s2": 1}
    assert store.frame_times(SITE) == [FrameTime(START, 2)]


def test_many_frames_are_read_in_one_go(store: Store) -> None:
    store.add_readings(frames(1200, 1))
    found = store.frames(SITE, [moment(k) for k in range(1200)])
    assert [found[moment(k)] for k in range(1200)] == [{"s1": 10 * k} for k in range(1200)]


def test_frame_times_hold_to_their_period_order_and_limit(store: Store) -> None:
    store.add_readings([*frames(5), reading("s4", 2)])
    assert store.frame_times(SITE, limit=2) == [FrameTime(moment(4), 3), FrameTime(moment(3), 3)]
    assert store.frame_times(SITE, newest_first=False, limit=1) == [FrameTime(moment(0), 3)]
    found = store.frame_times(SITE, moment(1), moment(3))
    assert found == [FrameTime(moment(2), 4), FrameTime(moment(1), 3)]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 4, 7, 21, 22])
def test_pages_hold_every_reading_once_in_order(store: Store, limit: int, newest_first: bool) -> None:
    rows = frames(7)
    store.add_readings(rows[::-1])
    assert all_pages(store, limit, newest_first=newest_first) == (rows[::-1] if newest_first else rows)
    own = [row for row in rows if row.sensor == "s2"]
    assert all_pages(store, limit, newest_first=newest_first, sensor="s2") == (own[::-1] if newest_first else own)


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_neither_repeat_nor_skip_while_readings_arrive(store: Store, newest_first: bool) -> None:
    rows = frames(8)
    store.add_readings(rows)
    found: list[Reading] = []
    after = None
    for k in range(100):
        page = store.readings(SITE, limit=5, after=after, newest_first=newest_first)
        found += page.items
        after = page.next
        if after is None:
            break
        # one that is newer than all, and one that is older
        store.add_readings([reading("s5", 100 + k), reading("s0", 3, seq=1000 + k)])
    assert [row for row in found if row in rows] == (rows[::-1] if newest_first else rows)
    assert len(set(found)) == len(found)


def test_readings_hold_to_their_period(store: Store) -> None:
    rows = frames(4)
    store.add_readings(rows)
    assert list(store.readings(SITE, since=moment(1), until=moment(3)).items) == rows[3:9]
    assert list(store.iterate(SITE, moment(1), moment(3))) == rows[3:9]
    assert list(store.iterate(SITE, since=moment(3))) == rows[9:]


def test_iterating_ends_although_readings_arrive(store: Store) -> None:
    rows = frames(6000, 1)
    store.add_readings(rows)
    found = []
    for k, row in enumerate(store.iterate(SITE)):
        found.append(row)
        if k % 1000 == 0:
            store.add_readings([reading("s1", 10_000 + k)])
    assert found == rows


@pytest.mark.parametrize("after", ["", "5", "x.s1.1", "1.s1", "1.s1.y", f"{10**30}.s1.1", "1.s1.1.1"])
def test_a_cursor_that_no_page_gave_is_refused(store: Store, after: str) -> None:
    with pytest.raises(InputError, match="is no cursor: give what the page before had"):
        store.readings(SITE, after=after)


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_a_limit_out_of_range_is_refused(store: Store, limit: int) -> None:
    for ask in (store.readings, store.results, store.alarms, store.report_history):
        with pytest.raises(InputError, match="between 1 and 10000"):
            ask(SITE, limit=limit)
    for times in (store.unsolved, store.outgrown):
        with pytest.raises(InputError, match="between 1 and 10000"):
            times(SITE, limit)
    with pytest.raises(InputError, match="between 1 and 10000"):
        store.frame_times(SITE, limit=limit)


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
        assert store.add_readings([Reading(SITE, *message, 1) for message in call]) == expected
    assert {(row.sensor, row.seq): (row.time, row.value) for row in store.iterate(SITE)} == known
    assert {frame.time for frame in store.frame_times(SITE)} == {time for time, _ in known.values()}
