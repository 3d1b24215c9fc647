"""The intake: strict, durable before acknowledged, and everything odd counted with its reason."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.collect.intake import Intake
from cloakwork.collect.problems import Busy, Reason
from cloakwork.collect.records import Problem, Reading, Report, Verdict
from cloakwork.collect.store import Store, StoreBusyError, open_store
from cloakwork.errors import InputError
from cloakwork.sensor.wire import write_reading, write_status
from tests.collect.intake_kit import DAY, NOW, SITES, Desk, Shelf, row, until


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def desk(shelf: Shelf) -> Iterator[Desk]:
    found = Desk(shelf)
    yield found
    shelf.gate.set()
    found.intake.stop()


def test_a_reading_is_done_with_when_it_is_stored_and_not_before(desk: Desk, shelf: Shelf) -> None:
    shelf.gate.clear()
    desk.reading(1, value=-7)
    time.sleep(0.05)
    assert (desk.done, desk.new) == (0, [])
    shelf.gate.set()
    until(lambda: desk.new)
    assert desk.done == 1
    assert desk.new == list(shelf.rows.values()) == [Reading("flat", "s1", 1, NOW, -7, NOW)]
    assert (desk.intake.state.storing, desk.intake.state.stored, desk.counted()) == (True, 1, {})


def test_a_status_is_kept_and_handed_on(desk: Desk, shelf: Shelf) -> None:
    desk.offer("cloakwork/v1/hall/h1/status", write_status("spent", 3, 60))
    until(lambda: desk.reports)
    assert desk.reports == shelf.reports == [Report("hall", "h1", "spent", 3, 60, NOW)]
    assert (desk.done, shelf.rows) == (1, {})


GOOD = write_reading(1, NOW, 5)


@pytest.mark.parametrize(
    ("topic", "payload", "reason", "names"),
    [
        (
            "cloakwork/v1/flat/s1/reading",
            b'{"v":1,"seq":1,"time":2,"value":"secret"}',
            Reason.MALFORMED,
            ("flat", "s1"),
        ),
        ("cloakwork/v1/flat/s1/reading", b"", Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/flat/s1/reading", b"\xff" * 97, Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/flat/s1/reading", write_status("online", 1, 2), Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/flat/s1/status", GOOD, Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/barn/s1/reading", GOOD, Reason.UNKNOWN_SITE, ("", "")),
        ("cloakwork/v1/flat/s9/reading", GOOD, Reason.UNKNOWN_SENSOR, ("flat", "")),
        ("cloakwork/v1/flat/h1/status", write_status("online", 1, 2), Reason.UNKNOWN_SENSOR, ("flat", "")),
        ("cloakwork/v1/flat/s1/readings", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v2/flat/s1/reading", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v1/flat/s 1/reading", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v1/flat/s1/bench", GOOD, Reason.BENCH, ("flat", "s1")),
        ("cloakwork/v1/flat-bench/s1/bench", GOOD, Reason.BENCH, ("", "")),
    ],
)
def test_what_cannot_be_used_is_counted_with_its_reason_and_done_with(
    shelf: Shelf, topic: str, payload: bytes, reason: Reason, names: tuple[str, str]
) -> None:
    desk = Desk(shelf)
    desk.offer(topic, payload)
    assert desk.done == 1  # at once: it does not wait for the store
    desk.intake.stop()
    assert shelf.problems == [Problem(*names, reason.value, 1, NOW)]
    assert (desk.counted(), shelf.rows, desk.new) == ({reason.value: 1}, {}, [])


def test_duplicates_and_alarms_are_counted_and_not_handed_on(desk: Desk) -> None:
    for value in (5, 5, 6, 5):
        desk.reading(1, value=value)
    until(lambda: desk.done == 4)
    until(lambda: desk.counted() == {Reason.DUPLICATE.value: 2, Reason.ALARM.value: 1})
    until(lambda: len(desk.new) == desk.intake.state.stored == 1)


def test_readings_out_of_order_are_counted_and_handed_on(desk: Desk) -> None:
    for seq in (5, 3, 7, 6):
        desk.reading(seq)
    until(lambda: desk.done == 4)
    until(lambda: desk.counted() == {Reason.ORDER.value: 2})
    until(lambda: len(desk.new) == desk.intake.state.stored == 4)


@pytest.mark.parametrize(
    ("stamp", "reason", "handed"),
    [
        (NOW, None, 1),
        (NOW - 6000, None, 1),
        (NOW - 6001, Reason.LATE, 1),
        (NOW + DAY, None, 1),
        (NOW + DAY + 1, Reason.CLOCK, 0),
        (0, Reason.CLOCK, 0),
    ],
)
def test_late_and_wrongly_stamped_readings_are_stored_all_the_same(
    desk: Desk, shelf: Shelf, stamp: int, reason: Reason | None, handed: int
) -> None:
    desk.reading(1, stamp=stamp)
    until(lambda: desk.intake.state.stored)
    until(lambda: desk.counted() == ({} if reason is None else {reason.value: 1}))
    until(lambda: (desk.done, len(shelf.rows), len(desk.new)) == (1, 1, handed))


@given(st.text(max_size=80), st.binary(max_size=120))
@settings(max_examples=200, deadline=None)
def test_no_message_whatever_stops_the_intake(topic: str, payload: bytes) -> None:
    desk = Desk(Shelf())
    desk.offer(topic, payload)
    desk.offer("cloakwork/v1/flat/s1/reading", payload)
    desk.reading(1)
    desk.intake.stop()
    assert desk.done == 3
    assert len(desk.new) == 1


def test_many_readings_share_a_transaction(desk: Desk, shelf: Shelf) -> None:
    shelf.gate.clear()
    for seq in range(2000):
        desk.reading(seq)
    shelf.gate.set()
    until(lambda: desk.done == len(desk.new) == 2000)
    assert max(shelf.batches) == 500
    assert len(shelf.batches) <= 6
    assert [reading.seq for reading in desk.new] == list(range(2000))


def test_a_full_queue_holds_the_sender_back_and_refuses_requests(shelf: Shelf) -> None:
    desk = Desk(shelf, capacity=10)
    shelf.gate.clear()
    sender = desk.send(100)
    until(lambda: not desk.intake.has_room)
    time.sleep(0.05)
    assert desk.intake.state.queued == 10
    with pytest.raises(Busy, match="10 readings wait"):
        desk.intake.submit([row(500)])
    shelf.gate.set()
    sender.join(10)
    until(lambda: desk.done == 100)
    desk.intake.stop()
    assert len(shelf.rows) == 100


def test_a_failing_store_costs_nothing_but_time(desk: Desk, shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    shelf.failure = sqlite3.OperationalError("INSERT of value 123456789 failed")
    for seq in range(20):
        desk.reading(seq)
    desk.offer("cloakwork/v1/flat/s2/status", write_status("online", 1, 2))
    desk.offer("cloakwork/v1/flat/s2/status", b"nonsense")
    until(lambda: shelf.attempts >= 3)
    state = desk.intake.state
    assert (state.storing, state.reason, state.stored) == (False, "OperationalError", 0)
    assert (desk.done, desk.new, desk.reports) == (1, [], [])  # the nonsense, which nobody waits for
    with pytest.raises(Busy, match="cannot be written"):
        desk.intake.submit([row(500)])
    shelf.failure = None
    until(lambda: desk.done == 22)
    assert desk.intake.state.storing
    until(lambda: len(desk.new) == len(shelf.rows) == 20)
    until(lambda: shelf.problems)
    assert [(problem.reason, problem.count) for problem in shelf.problems] == [(Reason.MALFORMED.value, 1)]
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2, "once when it fails, once when it works again"
    assert "123456789" not in caplog.text


def test_counters_are_kept_while_they_cannot_be_written(desk: Desk, shelf: Shelf) -> None:
    shelf.failure = OSError()
    desk.offer("nonsense", b"")
    until(lambda: not desk.intake.state.storing)
    desk.offer("nonsense", b"")
    shelf.failure = None
    until(lambda: desk.intake.state.storing)
    desk.intake.stop()
    assert sum(problem.count for problem in shelf.problems) == 2


def test_readings_that_were_stored_before_their_answer_was_lost_are_new(desk: Desk, shelf: Shelf) -> None:
    shelf.answer_lost = True
    desk.reading(1)
    until(lambda: desk.done and desk.new)
    assert desk.new == [row(1)]
    assert desk.counted() == {}


def test_stopped_while_the_store_fails_nothing_is_acknowledged(shelf: Shelf) -> None:
    desk = Desk(shelf, capacity=10)
    shelf.gate.clear()
    said: list[object] = []

    def submit() -> None:
        try:
            said.append(desk.intake.submit([row(500)]))
        except Busy as problem:
            said.append(problem)

    request = threading.Thread(target=submit)
    request.start()
    until(lambda: shelf.calls)
    sender = desk.send(30)
    until(lambda: not desk.intake.has_room)
    shelf.failure = StoreBusyError("locked")
    shelf.gate.set()
    until(lambda: desk.intake.state.reason == "locked")
    desk.intake.stop()
    for thread in (sender, request):
        thread.join(10)
        assert not thread.is_alive()
    assert (desk.done, shelf.rows, desk.intake.state.queued) == (0, {}, 0)
    assert [type(answer) for answer in said] == [Busy]


def test_stopping_stores_what_is_queued(shelf: Shelf) -> None:
    desk = Desk(shelf)
    shelf.gate.clear()
    for seq in range(1200):
        desk.reading(seq)
    threading.Timer(0.05, shelf.gate.set).start()
    desk.intake.stop()
    assert desk.done == len(shelf.rows) == 1200
    desk.reading(5000)
    assert desk.done == 1200, "after the stop nothing is acknowledged"


def test_it_can_be_started_again(desk: Desk) -> None:
    desk.reading(1)
    desk.intake.stop()
    desk.intake.start()
    desk.reading(2)
    until(lambda: desk.done == 2)


def test_a_request_is_answered_with_a_verdict_for_each_reading(desk: Desk) -> None:
    assert desk.intake.submit([row(1), row(2), row(1), row(1, value=6)]) == [
        Verdict.NEW,
        Verdict.NEW,
        Verdict.AGAIN,
        Verdict.ALARM,
    ]
    assert desk.intake.submit([]) == []
    assert desk.intake.submit([row(1)]) == [Verdict.AGAIN]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(9, site="barn"), Reason.UNKNOWN_SITE),
        (row(9, sensor="s9"), Reason.UNKNOWN_SENSOR),
        (row(1 << 53), Reason.MALFORMED),
        (row(9, value=1 << 53), Reason.MALFORMED),
        (row(9, stamp=-1), Reason.MALFORMED),
    ],
)
def test_a_request_with_a_bad_reading_stores_none(desk: Desk, shelf: Shelf, bad: Reading, reason: Reason) -> None:
    with pytest.raises(InputError, match=str(reason)) as refused:
        desk.intake.submit([row(1), bad])
    assert refused.value.reason is reason
    assert desk.counted() == {reason.value: 1}
    assert shelf.rows == {}


def test_a_request_that_takes_too_long_is_busy_and_may_come_again(desk: Desk, shelf: Shelf) -> None:
    shelf.gate.clear()
    with pytest.raises(Busy, match="Send them again"):
        desk.intake.submit([row(1)], timeout=0.05)
    shelf.gate.set()
    assert desk.intake.submit([row(1)]) == [Verdict.AGAIN]


def test_a_listener_that_fails_does_not_end_the_intake(shelf: Shelf) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    intake = Intake(shelf, SITES, on_new=fail, on_report=fail)
    intake.start()
    answers = []
    for seq in range(3):
        intake.offer("cloakwork/v1/flat/s1/reading", write_reading(seq, NOW, 1), lambda: answers.append(1 // 0))
        intake.offer("cloakwork/v1/flat/s1/status", write_status("online", seq, 3), lambda: answers.append(1))
    until(lambda: len(answers) == 3)
    assert intake.submit([row(7)]) == [Verdict.NEW]
    intake.stop()
    assert len(shelf.rows) == 4


def test_problems_found_elsewhere_are_counted_too(shelf: Shelf) -> None:
    desk = Desk(shelf)
    desk.intake.count(Reason.MALFORMED, "flat", "s2")
    desk.intake.count(Reason.UNKNOWN_SENSOR, "flat", "<script>")
    desk.intake.stop()
    assert shelf.problems == [
        Problem("flat", "s2", Reason.MALFORMED.value, 1, NOW),
        Problem("flat", "", Reason.UNKNOWN_SENSOR.value, 1, NOW),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db"), wait_s=0.2) as found:
        yield found


def test_everything_ends_up_in_a_real_store(store: Store) -> None:
    desk = Desk(store)
    for seq in range(1500):
        desk.reading(seq, sensor="s1" if seq % 2 else "s2", stamp=NOW - seq)
    for value in (5, 6):
        desk.reading(1, value=value, stamp=NOW - 1)
    desk.offer("cloakwork/v1/flat/s1/status", write_status("online", 1, 2))
    desk.offer("cloakwork/v1/flat/s1/reading", b"nonsense")
    desk.intake.stop()
    assert desk.done == 1504
    kept = list(store.iterate("flat"))
    assert sorted(reading.seq for reading in kept) == list(range(1500))
    assert store.reports("flat") == desk.reports
    assert [(alarm.sensor, alarm.seq) for alarm in store.alarms("flat")] == [("s1", 1)]
    wanted = {Reason.MALFORMED: 1, Reason.DUPLICATE: 1, Reason.ALARM: 1}
    assert {problem.reason: problem.count for problem in store.problems("flat")} == wanted


def test_a_locked_database_is_waited_for(store: Store, tmp_path: Path) -> None:
    desk = Desk(store)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    desk.reading(1)
    until(lambda: not desk.intake.state.storing)
    assert "locked" in desk.intake.state.reason
    assert desk.done == 0
    other.execute("COMMIT")
    other.close()
    until(lambda: desk.done == 1)
    desk.intake.stop()
    assert [reading.seq for reading in store.iterate("flat")] == [1]
