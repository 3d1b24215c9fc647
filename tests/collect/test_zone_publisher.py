"""Zones in Home Assistant: through a real broker that comes and goes, and with the rights that it needs."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.storage import FoundFault, PhysicsCheck, Store, open_store
from cloakwork.collect.zone_publisher import USER_SUFFIX, ZonePublisher
from cloakwork.errors import InputError
from cloakwork.mqtt import ALARMS, BrokerAddress
from tests.broker import READER, Broker, running_broker
from tests.collect.small_sites import FLAT, flat_result, flat_site
from tests.waiting import until

NAME = "cloakwork-zones"
PAGE = "https://collector.example"
FAULT = FoundFault("s03", "dead", "", 4)
AVAILABLE = f"cloakwork/zones/{NAME}"
NAMED = FLAT + '[[zone]]\nid = "living"\nlabel = "Living room"\nroom = [1.0, 1.0]\n'
# too many of unknown strength: no odds
MANY = NAMED.replace("max_count = 3", "max_count = 30").replace("strength = 5.0", "strength = [1.0, 5.0]")
# Home Assistant's MQTT binary sensor and discovery: all keys that it documents
DOCUMENTED = """
availability availability_mode availability_template availability_topic default_entity_id device device_class
enabled_by_default encoding entity_category entity_picture expire_after force_update icon json_attributes_template
json_attributes_topic name object_id off_delay origin payload_available payload_not_available payload_off payload_on
platform qos state_topic unique_id value_template
"""


def now() -> int:
    return time.time_ns() // 1_000_000


class Listener:
    """Home Assistant's side: what was heard, in order, as (topic, payload, retained)."""

    def __init__(self, broker: Broker, *, user: str | None = None) -> None:
        self.heard: list[tuple[str, str, bool]] = []
        self.ready = False
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        if user is not None:
            self._client.username_pw_set(user, broker.users[user])
        if broker.ca is not None:
            self._client.tls_set(str(broker.ca))
        self._client.on_connect = lambda client, *_: client.subscribe([("cloakwork/#", 1), ("homeassistant/#", 1)])
        self._client.on_subscribe = self._subscribed
        self._client.on_message = self._take
        self._client.connect(broker.host, broker.port)
        self._client.loop_start()

    def _subscribed(self, *_: Any) -> None:
        self.ready = True

    def _take(self, _: Any, __: Any, message: paho.MQTTMessage) -> None:
        self.heard.append((message.topic, message.payload.decode(), message.retain))

    def of(self, topic: str) -> list[str]:
        return [payload for heard, payload, _ in self.heard if heard == topic]

    def states(self, zone: str) -> list[dict[str, Any]]:
        return [json.loads(payload) for payload in self.of(f"cloakwork/zones/flat/{zone}")]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def listening(broker: Broker, *, user: str | None = None) -> Iterator[Listener]:
    listener = Listener(broker, user=user)
    try:
        until(lambda: listener.ready)
        yield listener
    finally:
        listener.close()


@contextmanager
def telling(broker: Broker | BrokerAddress, *sites: CollectedSite, **options: Any) -> Iterator[ZonePublisher]:
    reached = (
        broker if isinstance(broker, BrokerAddress) else BrokerAddress(broker.host, broker.port, broker.ca is not None)
    )
    with TemporaryDirectory() as folder, open_store(f"{folder}/store.db") as store:
        store.checks.save(PhysicsCheck("flat", "model", 5, b"", (FAULT,)), after=None)
        teller = ZonePublisher(reached, {one.name: one for one in sites or (flat_site(),)}, store, **options)
        teller.start()
        try:
            yield teller
        finally:
            teller.stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as made:
        yield made


def test_each_zone_and_alarm_is_announced_and_stays_known(broker: Broker) -> None:
    topics = {zone: f"homeassistant/binary_sensor/cloakwork_flat_{zone}/config" for zone in ("living", *ALARMS)}
    with listening(broker) as listener, telling(broker, flat_site(NAMED), page_url=PAGE):
        until(lambda: all(listener.of(topic) for topic in topics.values()))
    with listening(broker) as listener:
        until(lambda: all(listener.of(topic) for topic in topics.values()))
    announced = {zone: json.loads(listener.of(topic)[0]) for zone, topic in topics.items()}
    for zone, topic in topics.items():
        assert (topic, listener.of(topic)[0], True) in listener.heard
        assert set(announced[zone]) <= set(DOCUMENTED.split())
        assert announced[zone]["device"]["identifiers"] == ["cloakwork_flat"], "the device of the site's sensors"
        assert announced[zone]["unique_id"] == f"cloakwork_flat_{zone}"
        assert announced[zone]["state_topic"] == f"cloakwork/zones/flat/{zone}"
        assert announced[zone]["availability_topic"] == AVAILABLE
        assert announced[zone]["device_class"] == ("occupancy" if zone == "living" else "problem")
    schedule, living = flat_site(NAMED).schedule, announced["living"]
    assert living["name"] == "Living room"
    assert living["expire_after"] == 3 * schedule.window_slots * schedule.period_ms // 1000
    assert {one["device"].get("configuration_url") for one in announced.values()} == {None, PAGE}


def test_states_follow_results_and_old_results_are_not_published(broker: Broker) -> None:
    start = now()
    with listening(broker) as listener, telling(broker) as teller:
        until(lambda: teller.state.connected)
        assert not listener.states("room-1")
        teller.result(flat_result(flat_site(), start, zone=0))
        until(lambda: listener.states("room-2"))
        assert listener.states("room-1")[0] | {"time": ""} == {
            "occupied": True,
            "probability": 0.9,
            "expected": 0.9,
            "time": "",
        }
        assert listener.states("room-2")[0]["occupied"] is False
        teller.result(flat_result(flat_site(), start - 1, zone=1))
        teller.result(flat_result(flat_site(), start - 10**9, zone=1))
        teller.result(flat_result(flat_site(), start + 10**7, zone=1))
        teller.result(flat_result(flat_site(), start + 1, zone=None))
        until(lambda: len(listener.states("room-2")) == 2)
    assert [state["occupied"] for state in listener.states("room-1")] == [True, False]
    assert [state["occupied"] for state in listener.states("room-2")] == [False, False]
    assert not any(retained for topic, _, retained in listener.heard if topic.startswith("cloakwork/zones/flat/"))


def test_alarms_have_their_reasons_and_need_no_result(broker: Broker) -> None:
    reasons = {"physics-changed": [fault_text(FAULT)]}
    with listening(broker) as listener, telling(broker):
        until(lambda: all(listener.states(alarm) for alarm in ALARMS))
    assert [listener.states(alarm)[0] for alarm in ALARMS] == [{"reasons": reasons.get(one, [])} for one in ALARMS]


USER = READER + USER_SUFFIX  # of a collector whose own user is READER
RIGHTS = f"\nuser {USER}\ntopic write cloakwork/zones/#\ntopic write homeassistant/binary_sensor/+/config\n"


@pytest.mark.parametrize("allowed", [True, False])
def test_with_tls_and_a_password_it_works_with_two_rights_and_nothing_arrives_without_them(
    tmp_path: Path, allowed: bool
) -> None:
    broker = Broker(tmp_path / "broker", tls=True, users={USER: "a word", "home": "another"})
    rules = (broker.folder / "rules").read_text()
    rules += RIGHTS if allowed else ""
    (broker.folder / "rules").write_text(rules + "\nuser home\ntopic read cloakwork/#\ntopic read homeassistant/#\n")
    broker.start()
    try:
        reached = BrokerAddress(broker.host, broker.port, True, READER, "a word", broker.ca)
        with listening(broker, user="home") as listener, telling(reached) as teller:
            until(lambda: teller.state.connected)
            teller.result(flat_result(flat_site(), now(), zone=0))
            if allowed:
                until(lambda: listener.states("room-1") and listener.of(AVAILABLE))
            else:
                until(lambda: re.search(r"Denied PUBLISH .*zones/flat", broker.log.read_text(encoding="utf-8")))
        assert bool(listener.heard) is allowed
        with telling(BrokerAddress(broker.host, broker.port, True, READER, "wrong", broker.ca)) as teller:
            until(lambda: teller.state.reason.startswith(f"the broker refuses {USER} (Not authorized)"))
    finally:
        broker.kill()


def test_a_site_without_odds_has_alarms_and_no_zones(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with listening(broker) as listener:
        with telling(broker, flat_site(MANY)) as teller:
            teller.result(flat_result(flat_site(MANY), now(), zone=0))
            until(lambda: all(listener.states(alarm) for alarm in ALARMS))
        until(lambda: listener.of(AVAILABLE) == ["online", "offline"])
    told = {f"homeassistant/binary_sensor/cloakwork_flat_{alarm}/config" for alarm in ALARMS}
    told |= {f"cloakwork/zones/flat/{alarm}" for alarm in ALARMS}
    assert {topic for topic, *_ in listener.heard} == {AVAILABLE, *told}
    assert "BasisPursuit" in caplog.text


def test_names_that_would_be_mistaken_are_refused(tmp_path: Path, sqlite_store: Store) -> None:
    with pytest.raises(InputError) as problem:
        ZonePublisher(BrokerAddress(), {}, sqlite_store, name="a/b")
    assert problem.value.values == {"name": "a/b"}
    with pytest.raises(InputError) as problem:
        ZonePublisher(BrokerAddress(tls=True, authority=tmp_path / "none.pem"), {}, sqlite_store)
    assert problem.value.values == {"path": str(tmp_path / "none.pem")}
    zone = '[[zone]]\nid = "{}"\nroom = [1.0, 1.0]\n'
    one = flat_site(FLAT.replace('"flat"', '"a"') + zone.replace("{}", "b_c"))
    other = flat_site(FLAT.replace('"flat"', '"a_b"') + zone.replace("{}", "c"))
    with pytest.raises(InputError) as problem:
        ZonePublisher(BrokerAddress(), {"a": one, "a_b": other}, sqlite_store)
    assert (problem.value.values["site"], problem.value.values["zone"]) == ("a_b", "c")
