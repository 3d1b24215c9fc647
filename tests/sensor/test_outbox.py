"""Messages wait for the broker in order, survive a power cut, and never exceed the limit."""

from pathlib import Path

import pytest

from cloakwork.sensor.errors import WireError
from cloakwork.sensor.outbox import NAME, Outbox
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import write_reading


def message(seq: int, value: int = 5) -> bytes:
    return write_reading(seq, 0, value)


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path))


def test_messages_stay_in_order_until_they_are_confirmed(store: Folder) -> None:
    outbox = Outbox(store, 10)
    for seq in (3, 4, 5):
        assert outbox.add(message(seq)) == seq
    outbox.confirmed(4)
    outbox.confirmed(99)
    assert outbox.first(8) == [(3, message(3)), (5, message(5))]
    assert [seq for seq, _ in Outbox(store, 10).first(8)] == [3, 4, 5]  # sending again after a start is harmless


def test_a_torn_line_is_skipped(store: Folder) -> None:
    outbox = Outbox(store, 10)
    outbox.add(message(1))
    whole = store.read(NAME) or b""
    store.write(NAME, whole + message(2)[:-5])
    assert [seq for seq, _ in Outbox(store, 10).first(8)] == [1]


def test_a_full_outbox_drops_the_oldest_and_its_file_stays_small(store: Folder) -> None:
    outbox = Outbox(store, 8)
    for seq in range(200):
        outbox.add(message(seq))
    assert [seq for seq, _ in outbox.first(99)] == list(range(192, 200))
    assert len(store.read(NAME) or b"") < 40 * len(message(199))


def test_the_outbox_knows_its_messages_after_dropping_them_and_after_a_power_cut(store: Folder) -> None:
    outbox = Outbox(store, 8)
    outbox.add(message(1))
    outbox.confirmed(1)
    outbox = Outbox(store, 8)  # the confirmed one is still in the file
    for seq in range(2, 30):
        outbox.add(message(seq))
    assert all(outbox.knows(message(seq)) for seq in range(1, 30))
    again = Outbox(store, 8)
    assert all(again.knows(message(seq)) for seq in range(1, 30))


def test_the_last_message_that_left_is_not_sent_again_after_a_start(store: Folder) -> None:
    outbox = Outbox(store, 8)
    for seq in range(40):
        outbox.add(message(seq))
        outbox.confirmed(seq)
    Outbox(store, 8)  # opening compacts the file
    assert Outbox(store, 8).newest() == message(39)
    assert len(Outbox(store, 8)) < 20


def test_the_outbox_does_not_know_messages_of_another_device(store: Folder) -> None:
    outbox = Outbox(store, 8)
    outbox.add(message(5))
    assert not outbox.knows(message(5, value=6))
    assert not outbox.knows(message(9))
    outbox.confirmed(5)
    assert not outbox.knows(message(5, value=6))
    outbox.clear()
    assert outbox.knows(message(5))
    with pytest.raises(WireError):
        outbox.knows(b"nonsense")
