"""The intake: strict, durable before acknowledged, and everything odd counted with its reason."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.collect.intake import Intake
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import ProblemCount, Reading, ReadingStatus
from cloakwork.errors import BusyError, InputError, StoreBusyError
from cloakwork.sensor.wire import write_reading, write_status
from tests.collect.fake_store import ALLOWED, DAY, NOW, SITES, FakeStore, IntakeHarness, row
from tests.waiting import PATIENCE, until


@pytest.fixture
def fake_store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def harness(fake_store: FakeStore) -> Iterator[IntakeHarness]:
    found = IntakeHarness(fake_store)
    yield found
    fake_store.gate.set()
    found.intake.stop()


def test_a_reading_is_done_with_when_it_is_stored_and_not_before(harness: IntakeHarness, fake_store: FakeStore) -> None:
    fake_store.gate.clear()
    harness.reading(1, value=-7)
    time.sleep(0.05)
    assert (harness.done, harness.new) == (0, [])
    fake_store.gate.set()
    until(lambda: harness.new)
    assert harness.done == 1
    assert harness.new == list(fake_store.rows.values()) == [Reading("flat", "s1", 1, NOW, -7, NOW)]
    assert (harness.intake.state.storing, harness.intake.state.stored, harness.counted()) == (True, 1, {})


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
        ("cloakwork/v1/flat/s1/reading", write_status("online", 1, ALLOWED), Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/flat/s1/status", GOOD, Reason.MALFORMED, ("flat", "s1")),
        ("cloakwork/v1/barn/s1/reading", GOOD, Reason.UNKNOWN_SITE, ("", "")),
        ("cloakwork/v1/flat/s9/reading", GOOD, Reason.UNKNOWN_SENSOR, ("flat", "")),
        ("cloakwork/v1/flat/h1/status", write_status("online", 1, ALLOWED), Reason.UNKNOWN_SENSOR, ("flat", "")),
        ("cloakwork/v1/flat/s1/readings", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v2/flat/s1/reading", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v1/flat/s 1/reading", GOOD, Reason.WRONG_TOPIC, ("", "")),
        ("cloakwork/v1/flat/s1/bench", GOOD, Reason.BENCH, ("flat", "s1")),
        ("cloakwork/v1/flat-bench/s1/bench", GOOD, Reason.BENCH, ("", "")),
    ],
)
def test_an_unusable_message_is_counted_by_reason_and_acknowledged(
    fake_store: FakeStore, topic: str, payload: bytes, reason: Reason, names: tuple[str, str]
) -> None:
    harness = IntakeHarness(fake_store)
    harness.offer(topic, payload)
    assert harness.done == 1  # at once: it does not wait for the store
    harness.intake.stop()
    assert fake_store.stored_problems == [ProblemCount(*names, reason.value, 1, NOW)]
    assert (harness.counted(), fake_store.rows, harness.new) == ({reason.value: 1}, {}, [])


def test_duplicates_and_alarms_are_counted_and_not_handed_on(harness: IntakeHarness) -> None:
    for value in (5, 5, 6, 5):
        harness.reading(1, value=value)
    until(lambda: harness.done == 4)
    until(lambda: harness.counted() == {Reason.DUPLICATE.value: 2, Reason.ALARM.value: 1})
    until(lambda: len(harness.new) == harness.intake.state.stored == 1)


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
    harness: IntakeHarness, fake_store: FakeStore, stamp: int, reason: Reason | None, handed: int
) -> None:
    harness.reading(1, stamp=stamp)
    until(lambda: harness.intake.state.stored)
    until(lambda: harness.counted() == ({} if reason is None else {reason.value: 1}))
    until(lambda: (harness.done, len(fake_store.rows), len(harness.new)) == (1, 1, handed))


@given(st.text(max_size=80), st.binary(max_size=120))
@settings(max_examples=200, deadline=None)
def test_no_message_whatever_stops_the_intake(topic: str, payload: bytes) -> None:
    harness = IntakeHarness(FakeStore())
    harness.offer(topic, payload)
    harness.offer("cloakwork/v1/flat/s1/reading", payload)
    harness.reading(1)
    harness.intake.stop()
    assert harness.done == 3
    assert len(harness.new) == 1


def test_a_full_queue_holds_the_sender_back_and_refuses_requests(fake_store: FakeStore) -> None:
    harness = IntakeHarness(fake_store, capacity=10)
    fake_store.gate.clear()
    sender = harness.send(100)
    until(lambda: not harness.intake.has_room)
    time.sleep(0.05)
    assert harness.intake.state.queued == 10
    with pytest.raises(BusyError) as refusal:
        harness.intake.submit([row(500)])
    assert refusal.value.queued == 10
    fake_store.gate.set()
    sender.join(PATIENCE)
    until(lambda: harness.done == 100)
    harness.intake.stop()
    assert len(fake_store.rows) == 100


def test_a_failing_store_costs_nothing_but_time(
    harness: IntakeHarness, fake_store: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    fake_store.failure = sqlite3.OperationalError("INSERT of value 123456789 failed")
    for seq in range(20):
        harness.reading(seq)
    harness.offer("cloakwork/v1/flat/s2/status", write_status("online", 1, ALLOWED))
    harness.offer("cloakwork/v1/flat/s2/status", b"nonsense")
    until(lambda: fake_store.attempts >= 3)
    state = harness.intake.state
    assert (state.storing, state.reason, state.stored) == (False, "OperationalError", 0)
    assert (harness.done, harness.new) == (1, [])  # the nonsense, which nobody waits for
    with pytest.raises(BusyError):
        harness.intake.submit([row(500)])
    fake_store.failure = None
    until(lambda: harness.done == 22)
    assert harness.intake.state.storing
    until(lambda: len(harness.new) == len(fake_store.rows) == 20)
    until(lambda: fake_store.stored_problems)
    assert [(problem.reason, problem.count) for problem in fake_store.stored_problems] == [(Reason.MALFORMED.value, 1)]
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2, "once when it fails, once when it works again"
    assert "123456789" not in caplog.text


def test_stopped_while_the_store_fails_nothing_is_acknowledged(fake_store: FakeStore) -> None:
    harness = IntakeHarness(fake_store, capacity=10)
    fake_store.gate.clear()
    said: list[object] = []

    def submit() -> None:
        try:
            said.append(harness.intake.submit([row(500)]))
        except BusyError as problem:
            said.append(problem)

    request = threading.Thread(target=submit)
    request.start()
    until(lambda: fake_store.calls)
    sender = harness.send(30)
    until(lambda: not harness.intake.has_room)
    fake_store.failure = StoreBusyError("locked")
    fake_store.gate.set()
    until(lambda: harness.intake.state.reason == "locked")
    harness.intake.stop()
    for thread in (sender, request):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert (harness.done, fake_store.rows, harness.intake.state.queued) == (0, {}, 0)
    assert [type(answer) for answer in said] == [BusyError]


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
def test_a_request_with_a_bad_reading_stores_none(
    harness: IntakeHarness, fake_store: FakeStore, bad: Reading, reason: Reason
) -> None:
    with pytest.raises(InputError) as refused:
        harness.intake.submit([row(1), bad])
    assert refused.value.reason is reason
    assert harness.counted() == {reason.value: 1}
    assert fake_store.rows == {}


def test_a_listener_that_fails_does_not_end_the_intake(fake_store: FakeStore) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    intake = Intake(fake_store, SITES, on_new=fail)
    intake.start()
    answers = []
    for seq in range(3):
        intake.offer("cloakwork/v1/flat/s1/reading", write_reading(seq, NOW, 1), lambda: answers.append(1 // 0))
        intake.offer("cloakwork/v1/flat/s1/status", write_status("online", seq, ALLOWED), lambda: answers.append(1))
    until(lambda: len(answers) == 3)
    assert intake.submit([row(7)]) == [ReadingStatus.NEW]
    intake.stop()
    assert len(fake_store.rows) == 4
