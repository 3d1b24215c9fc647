"""The gateway agent with sensors that fail: constants in their place, and a status that says so."""

import json
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import pytest

from cloakwork.device import ConstantReading
from cloakwork.sensor import session
from cloakwork.sensor.mqtt import Mqtt
from cloakwork.sensor.wire import read_status
from tests.broker import Broker
from tests.device.agent_kit import QUICK, RATIO, listening, working
from tests.devices import SENSOR, SITE, make_folder
from tests.waiting import until


@dataclass
class Broken:
    """A driver that does not work: it raises an error, returns what is no reading, takes too long, or never ends."""

    kind: str
    released: threading.Event = field(default_factory=threading.Event)

    def read(self) -> tuple[int, int]:
        if self.kind == "failing":
            raise OSError("the sensor reads 98765432")
        if self.kind == "slow":
            time.sleep(0.03)
        if self.kind == "offline":
            self.released.wait()
        return (98765432, 1) if self.kind != "invalid" else float("nan")  # type: ignore[return-value]


BUSY = ("slow", "skipping", "offline")  # a busy machine makes any driver and any disk slow


@pytest.mark.parametrize("kind", ["invalid", "offline"])
def test_a_broken_driver_never_looks_healthy_and_its_status_says_which_kind_and_nothing_else(
    kind: str, folder: Path, broker: Broker, time_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the broker reports a device that hangs after one and a half times this
    monkeypatch.setattr(session, "Mqtt", partial(Mqtt, keep_alive=1))
    make_folder(folder, ratio=RATIO, schedule=QUICK, time=time_server)
    source = Broken(kind)

    def states() -> list[str]:
        return [read_status(payload)[0] for payload in listener.of("status")]

    with listening(broker) as listener, working(folder, broker, source) as notes:
        until(lambda: kind in states())
        if kind != "offline":  # it stays so, also for those who come later and after the link was lost
            before = len(listener.readings())
            until(lambda: len(listener.readings()) >= before + 20)
            broker.stop()
            until(lambda: "the link to the broker is lost" in notes)
            broker.start()
            with listening(broker) as later:
                until(lambda: len(later.readings()) >= 3)
            again = [read_status(payload)[0] for topic, payload, kept in later.messages if topic.endswith("status")]
            assert set(again) <= {kind, *BUSY}
        source.released.set()
    assert set(states()) <= {"online", kind, *BUSY}
    said = b"".join(payload for _, payload, _ in listener.messages) + "".join(notes).encode()
    assert b"98765432" not in said


def test_home_assistant_discovers_the_sensor_and_its_problems(folder: Path, broker: Broker) -> None:
    make_folder(folder, ratio=RATIO, schedule=QUICK)
    with listening(broker) as early, working(folder, broker, ConstantReading(21.25), home_assistant=True):
        until(lambda: len(early.of("config")) == 2)
    with listening(broker) as listener:
        until(lambda: len(listener.of("config")) == 2)
    sent = {topic: payload for topic, payload, retained in listener.messages if topic.endswith("config") and retained}
    told = json.loads(sent[f"homeassistant/sensor/cloakwork_{SITE}_{SENSOR}/config"])
    problem = json.loads(sent[f"homeassistant/binary_sensor/cloakwork_{SITE}_{SENSOR}_problem/config"])
    states = ("online", "spent", "failing", "slow", "offline")
    for template, good in ((told["availability_template"], "online"), (problem["value_template"], "OFF")):
        shown = [jinja2.Template(template).render(value_json={"state": state}) for state in states]
        assert [text == good for text in shown] == [True, True, False, False, False]
    assert (told["device_class"], told["value_template"]) == ("temperature", "{{ value_json.value * 0.25 }}")
    assert told["state_topic"] == f"cloakwork/v1/{SITE}/{SENSOR}/reading"
    assert told["availability_topic"] == problem["state_topic"] == f"cloakwork/v1/{SITE}/{SENSOR}/status"
