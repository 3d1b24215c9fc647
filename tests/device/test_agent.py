"""The gateway agent with a real broker: which readings arrive, which are kept, and what is never sent."""

import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cloakwork.device import ConstantReading
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.wire import read_reading, read_status
from tests.broker import READER, Broker, running_broker
from tests.device.agent_kit import QUICK, RATIO, exactly, listening, working
from tests.devices import SENSOR, make_folder
from tests.forking import python
from tests.waiting import PATIENCE, until


def test_readings_arrive_cloaked_and_are_unveiled_exactly(folder: Path, broker: Broker) -> None:
    told = make_folder(folder, ratio=RATIO, schedule=QUICK)
    with listening(broker) as listener, working(folder, broker, ConstantReading(21.25)):
        # on a busy machine slots stay empty: it goes on until a whole window was used
        until(lambda: ("online", 4, 4) in [read_status(payload) for payload in listener.of("status")])
        until(lambda: len(listener.readings()) >= 10)
    assert exactly(listener.readings(), told, 85)
    assert len(set(listener.readings().values())) > 3
    stamps = [read_reading(payload)[1] for payload in listener.of("reading")]
    assert all(stamp % 50 == 0 for stamp in stamps)
    assert abs(stamps[-1] - time.time() * 1000) < 120_000


class Counting:
    """A source that counts its readings, each of which makes one message."""

    def __init__(self) -> None:
        self.asked = 0

    def read(self) -> tuple[int, int]:
        self.asked += 1
        return 85, 4


def test_readings_taken_while_the_broker_is_away_arrive_later_once_and_unchanged(
    folder: Path, broker: Broker, time_server: dict[str, Any]
) -> None:
    told = make_folder(folder, ratio=RATIO, schedule=QUICK, time=time_server)
    source = Counting()
    with listening(broker) as before, ExitStack() as stack:
        with working(folder, broker, source) as notes:
            until(lambda: len(before.readings()) >= 3)
            broker.stop()
            until(lambda: "the link to the broker is lost" in notes)
            made = source.asked
            until(lambda: source.asked >= made + 6)
            broker.start()
            listener = stack.enter_context(listening(broker))
            until(lambda: len(listener.readings()) >= 20)
        until(listener.goodbyes)
    arrived = before.readings() | listener.readings()
    kept = [line for line in (folder / "outbox").read_bytes().split(b"\n") if line.startswith(b"{")]
    waiting = {read_reading(line)[0] for line in kept} - set(arrived)
    assert len(arrived) + len(waiting) == source.asked
    assert exactly(arrived, told, 85)


AGENT = """
import signal, sys, threading
from pathlib import Path
from cloakwork.device import Agent, ConstantReading
from cloakwork.mqtt import BrokerAddress
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
broker = BrokerAddress("localhost", int(sys.argv[2]))
Agent(Path(sys.argv[1]), ConstantReading(21.25), broker=broker).run(stopping.is_set)
"""


def agent_process(folder: Path, broker: Broker) -> subprocess.Popen[str]:
    return python(AGENT, folder, broker.port, stderr=subprocess.PIPE, text=True)


def test_killed_while_the_broker_is_away_nothing_kept_is_lost_and_the_last_will_is_heard(
    folder: Path, broker: Broker
) -> None:
    told = make_folder(folder, ratio=RATIO, schedule=QUICK, fallback=85)
    with listening(broker) as listener:
        process = agent_process(folder, broker)
        until(lambda: len(listener.readings()) >= 3)
        process.kill()
        process.communicate()
        until(lambda: read_status(listener.of("status")[-1])[0] == "offline")
    process = agent_process(folder, broker)
    with listening(broker) as listener:
        until(lambda: len(listener.readings()) >= 3)
    broker.stop()
    before = len((folder / "outbox").read_bytes())
    until(lambda: len((folder / "outbox").read_bytes()) > before + 500)
    process.kill()
    process.communicate()
    lines = (folder / "outbox").read_bytes().split(b"\n")
    kept = [read_reading(line)[0] for line in lines if line.startswith(b"{") and line.endswith(b"}")]
    broker.start()
    process = agent_process(folder, broker)
    with listening(broker) as listener:
        until(lambda: set(kept) <= set(listener.readings()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        process.communicate()
    assert exactly(listener.readings(), told, 85)


def test_with_tls_password_and_rules_only_the_right_device_speaks(folder: Path, tmp_path: Path) -> None:
    told = make_folder(folder, ratio=RATIO, schedule=QUICK)
    users = {SENSOR: "right horse", READER: "battery"}
    with (
        running_broker(tmp_path / "broker", tls=True, users=users) as broker,
        listening(broker, READER, "battery") as ear,
    ):
        wrong = BrokerAddress(broker.host, broker.port, True, SENSOR, "wrong", broker.ca)
        with working(folder, broker, ConstantReading(21.25), reached=wrong) as notes:
            until(lambda: any("the broker refuses this device" in said for said in notes))
        untrusted = BrokerAddress(broker.host, broker.port, True, SENSOR, users[SENSOR], None)
        with working(folder, broker, ConstantReading(21.25), reached=untrusted) as notes:
            until(lambda: any("cannot connect" in said for said in notes))
        assert not ear.messages
        right = BrokerAddress(broker.host, broker.port, True, SENSOR, users[SENSOR], broker.ca)
        with working(folder, broker, ConstantReading(21.25), reached=right):
            until(lambda: len(ear.readings()) >= 5)
    assert exactly(ear.readings(), told, 85)


def test_of_two_copies_at_work_one_stops_before_a_number_is_used_twice(
    folder: Path, broker: Broker, tmp_path: Path
) -> None:
    make_folder(folder, ratio=RATIO, schedule=QUICK | {"window_slots": 12})
    with listening(broker) as listener:
        with working(folder, broker, ConstantReading(21.25)):
            until(lambda: len(listener.readings()) >= 3)
        shutil.copytree(folder, tmp_path / "copy")
        with working(folder, broker, ConstantReading(21.25)) as notes:
            until(lambda: len(listener.readings()) >= 9)
            with working(tmp_path / "copy", broker, ConstantReading(25.0)) as others:
                until(lambda: any("copy of this device" in said for said in notes + others))
        listener.readings()  # fails where one number has two values


def test_a_device_that_may_not_listen_sends_nothing(folder: Path, tmp_path: Path) -> None:
    make_folder(folder, ratio=RATIO, schedule=QUICK)
    users = {SENSOR: "right horse", READER: "battery"}
    with running_broker(tmp_path / "broker", users=users) as broker:
        broker.stop()
        rules = next(path for path in broker.folder.iterdir() if b"pattern readwrite" in path.read_bytes())
        rules.write_text(rules.read_text().replace("pattern readwrite", "pattern write"))
        broker.start()
        mine = BrokerAddress(broker.host, broker.port, False, SENSOR, users[SENSOR])
        with (
            listening(broker, READER, "battery") as ear,
            working(folder, broker, ConstantReading(21.25), reached=mine) as notes,
        ):
            until(lambda: any("does not let this device read" in said for said in notes))
        assert not ear.of("reading")


def test_no_file_of_a_working_device_holds_a_true_reading(folder: Path, broker: Broker) -> None:
    make_folder(folder, ratio=RATIO, schedule=QUICK, step=[1, 1])
    with listening(broker) as listener, working(folder, broker, ConstantReading(98765432.0)) as notes:
        until(lambda: len(listener.readings()) >= 10)
    held = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    sent = b"".join(payload for _, payload, _ in listener.messages)
    lucky = any(value == 98765432 for value in listener.readings().values())  # noise of nothing happens, too
    assert lucky or b"98765432" not in held + sent + "".join(notes).encode()
