"""A real Home Assistant beside a real broker and a real collector: what it discovers, shows and does.

`make homeassistant` installs it (500 MB) and runs this file; otherwise the file is skipped, in CI too.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from fractions import Fraction
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml

from cloakwork.collect import ListenAddress, Service, open_store
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.mqtt import BrokerAddress, device_discovery
from cloakwork.sensor.wire import topic, write_reading, write_status
from tests.broker import Broker, running_broker
from tests.collect.small_sites import FLAT, flat_site, values
from tests.collect.subscriber_kit import publish
from tests.parts import ROOT
from tests.ports import free_port
from tests.waiting import until

PROGRAM = os.environ.get("CLOAKWORK_HOME_ASSISTANT")
DEPLOY = ROOT / "deploy" / "home-assistant"
PAGE = "https://collector.example"
SITE = (
    FLAT.replace('window = "1min"', 'window = "6s"')
    + '[[zone]]\nid = "living"\nlabel = "Living room"\nroom = [1.0, 1.0]\n'
)
LIVING, CHANCE = "binary_sensor.cloakwork_flat_living_room", "sensor.cloakwork_flat_living_room_probability"
CLAIM = "binary_sensor.cloakwork_flat_claim_at_risk"
INSIDE = (1.0, 1.0)
BACKLOG = 20  # frames that can be sent at once
CONFIGURATION = """
homeassistant: {{name: Home, latitude: 0, longitude: 0, unit_system: metric, time_zone: UTC}}
http: {{server_host: 127.0.0.1, server_port: {port}}}
api:
config:
input_boolean: {{lamp: {{initial: true}}}}
light:
  - platform: template
    lights:
      lamp:
        value_template: "{{{{ is_state('input_boolean.lamp', 'on') }}}}"
        turn_on: {{service: input_boolean.turn_on, target: {{entity_id: input_boolean.lamp}}}}
        turn_off: {{service: input_boolean.turn_off, target: {{entity_id: input_boolean.lamp}}}}
automation:
  - alias: Lights off
    use_blueprint:
      path: cloakwork/lights_off.yaml
      input: {{probability: {chance}, lights: {{entity_id: light.lamp}}, below: 10, minutes: 0}}
"""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Home Assistant missing: run `make homeassistant`")


class HomeAssistant:
    """Home Assistant as a person sets it up: an account, the MQTT integration, and the files of `deploy/`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        blueprints = folder / "blueprints" / "automation" / "cloakwork"
        blueprints.mkdir(parents=True)
        shutil.copy(DEPLOY / "lights_off.yaml", blueprints)
        settings = CONFIGURATION.format(port=self.port, chance=CHANCE)
        (folder / "configuration.yaml").write_text(settings, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self._token = self._refresh = ""

    def start(self) -> None:
        """Start it, and sign in: the first time by creating an account, as its welcome page does."""
        assert PROGRAM is not None
        with (self.folder / "output").open("ab") as output:
            words = [PROGRAM, "-c", str(self.folder), "--skip-pip"]
            self._process = subprocess.Popen(words, stdout=output, stderr=output)
        self._token = ""
        until(lambda: self._answers("/api/onboarding"), "Home Assistant does not start")
        client = f"http://127.0.0.1:{self.port}/"
        grant = {"grant_type": "refresh_token", "refresh_token": self._refresh, "client_id": client}
        if not self._refresh:
            person = {"name": "Ada", "username": "ada", "password": "secret", "language": "en", "client_id": client}
            code = self.ask("/api/onboarding/users", person)["auth_code"]
            grant = {"grant_type": "authorization_code", "code": code, "client_id": client}
        granted = self.ask("/auth/token", urlencode(grant).encode())
        self._token, self._refresh = granted["access_token"], granted.get("refresh_token", self._refresh)
        until(lambda: self.ask("/api/config")["state"] == "RUNNING")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def ask(self, path: str, body: object = None) -> Any:
        """The answer to a request, as JSON where it is; a body is sent as JSON, bytes as a form."""
        kind = "application/x-www-form-urlencoded" if isinstance(body, bytes) else "application/json"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})
        with urlopen(Request(f"http://127.0.0.1:{self.port}{path}", data, headers), timeout=30) as answer:
            text = answer.read().decode()
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text

    def _answers(self, path: str) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "output").read_text(encoding="utf-8")
        with suppress(OSError, HTTPException):
            self.ask(path)
            return True
        return False

    def connect(self, broker: Broker) -> None:
        """Add the MQTT integration, as in Settings > Devices and services."""
        flow = self.ask("/api/config/config_entries/flow", {"handler": "mqtt"})
        answer = {"broker": "127.0.0.1", "port": broker.port}
        assert self.ask(f"/api/config/config_entries/flow/{flow['flow_id']}", answer)["type"] == "create_entry"

    def state(self, entity: str) -> dict[str, Any]:
        """State and attributes of an entity; none where there is none."""
        try:
            found: dict[str, Any] = self.ask(f"/api/states/{entity}")
        except HTTPError:
            return {"state": None, "attributes": {}}
        return found

    def shows(self, entity: str, *states: str) -> None:
        until(lambda: self.state(entity)["state"] in states, f"{entity} is {self.state(entity)}")

    def rendered(self, template: str) -> str:
        return str(self.ask("/api/template", {"template": template}))

    def registry(self) -> dict[str, dict[str, Any]]:
        """The entities as Home Assistant has stored them; of one that has stopped."""
        file = self.folder / ".storage" / "core.entity_registry"
        stored = json.loads(file.read_text(encoding="utf-8"))
        return {entity["entity_id"]: entity for entity in stored["data"]["entities"]}


class House:
    """A flat whose sensors publish, frame after frame, what they read of people at some points."""

    def __init__(self, watched: CollectedSite, broker: Broker) -> None:
        self.watched, self._broker = watched, broker
        self._slot = self._now() - BACKLOG

    def _now(self) -> int:
        return time.time_ns() // 1_000_000 // self.watched.schedule.period_ms

    def announce(self) -> None:
        """Announce the first sensor, as `cloakwork sensor --home-assistant` does."""
        sensor, schedule = self.watched.plan.sensors[0], self.watched.schedule
        step = Fraction(sensor.step)
        config: dict[str, Any] = {"site": "flat", "sensor": sensor.id, "unit": "°C", "kind": "reading"}
        config |= {"step": [step.numerator, step.denominator], "schedule": asdict(schedule)}
        publish(self._broker, device_discovery(config), retain=True)
        self.report("online")

    def report(self, state: str) -> None:
        """Publish the status of the first sensor."""
        where = topic("flat", self.watched.ids[0], "status")
        publish(self._broker, [(where, write_status(state, 1, self.watched.budget_rules.allowed))], retain=True)

    def measure(self, people: Sequence[tuple[float, float]], until_true: Callable[[], bool], why: str) -> None:
        """Publish frames with people at these points, one for each slot, until something is true."""

        def goes_on() -> bool:
            if self._slot < self._now():
                self._slot += 1
                when = self._slot * self.watched.schedule.period_ms
                said = values(self.watched, *people, seed=self._slot)
                messages = [
                    (topic("flat", name, "reading"), write_reading(self._slot, when, n)) for name, n in said.items()
                ]
                publish(self._broker, messages)
            return until_true()

        until(goes_on, why)


@contextmanager
def collecting(watched: CollectedSite, broker: Broker, folder: Path) -> Iterator[None]:
    """A collector that publishes to Home Assistant."""
    reached = BrokerAddress("127.0.0.1", broker.port)
    options: dict[str, Any] = {"listen": ListenAddress(port=0), "home_assistant": True, "page_url": PAGE}
    with open_store(f"sqlite:///{folder}/collector.db") as store:
        service = Service({"flat": watched}, store, broker=reached, **options)
        service.start()
        try:
            yield
        finally:
            service.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[HomeAssistant]:
    made = HomeAssistant(tmp_path_factory.mktemp("home-assistant"))
    made.start()
    try:
        made.connect(broker)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, broker: Broker, home: HomeAssistant) -> Iterator[House]:
    watched = flat_site(SITE)
    with collecting(watched, broker, tmp_path_factory.mktemp("collector")):
        made = House(watched, broker)
        made.announce()
        yield made


def follows(home: HomeAssistant, house: House, people: Sequence[tuple[float, float]], state: str) -> None:
    """The living room's entity comes to this state."""
    why = f"the living room is not {state}"
    house.measure(people, lambda: home.state(LIVING)["state"] == state, why)


def test_rooms_people_and_probabilities_are_discovered_and_follow_the_house(home: HomeAssistant, house: House) -> None:
    follows(home, house, [INSIDE], "on")
    assert home.state(LIVING)["attributes"]["device_class"] == "occupancy"
    assert float(home.state(CHANCE)["state"]) > 50
    assert home.state("sensor.cloakwork_flat_people")["state"] == "1"
    assert home.state("input_boolean.lamp")["state"] == "on"
    shown = "\n".join(home.rendered(card) for card in cards())
    for fact in ("Living room | someone |", "Nothing to report.", f"[map and history]({PAGE})"):
        assert fact in shown
    follows(home, house, [], "off")
    house.measure([], lambda: home.state("input_boolean.lamp")["state"] == "off", "the blueprint leaves the lamp on")


def cards() -> list[str]:
    """The templates of the dashboard."""
    board = yaml.safe_load((DEPLOY / "dashboard.yaml").read_text(encoding="utf-8"))
    return [card["content"] for view in board["views"] for card in view["cards"] if card["type"] == "markdown"]


def test_a_noisy_reading_is_diagnostic_and_a_lost_sensor_a_problem(
    home: HomeAssistant, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloakwork.collect.zone_publisher.AWAY_MS", 0)
    sensor = house.watched.ids[0]
    problem, away = f"binary_sensor.cloakwork_flat_{sensor}_problem", "binary_sensor.cloakwork_flat_sensors_away"
    noisy = f"sensor.cloakwork_flat_{sensor}_noisy"
    house.measure([], lambda: home.state(noisy)["state"] not in {None, "unknown", "unavailable"}, "no reading arrives")
    assert home.state(noisy)["attributes"]["unit_of_measurement"] == "°C"
    for name in (problem, away, "binary_sensor.cloakwork_flat_physics_changed", CLAIM):
        home.shows(name, "off")
    house.report("offline")
    home.shows(problem, "on")
    home.shows(away, "on")
    assert home.state(away)["attributes"]["reasons"] == [f"{sensor}: offline"]
    home.shows(noisy, "unavailable")
    assert any(f"{sensor}: offline" in home.rendered(card) for card in cards())
    house.report("online")
    home.shows(problem, "off")
    home.shows(away, "off")


def test_entities_survive_restarts_of_broker_and_home_assistant(
    home: HomeAssistant, house: House, broker: Broker
) -> None:
    follows(home, house, [INSIDE], "on")
    broker.kill()
    home.shows(LIVING, "unavailable")
    broker.start()
    follows(home, house, [INSIDE], "on")
    follows(home, house, [], "off")
    home.stop()
    stored = home.registry()
    categories = {name: entity["entity_category"] for name, entity in stored.items() if entity["platform"] == "mqtt"}
    assert {name for name, category in categories.items() if category is None} == {
        LIVING,
        CHANCE,
        "sensor.cloakwork_flat_people",
        *(name for name in categories if "room_2" in name),
    }
    assert {category for category in categories.values() if category} == {"diagnostic"}
    assert stored[CHANCE]["options"]["sensor"]["suggested_display_precision"] == 0
    assert stored[f"sensor.cloakwork_flat_{house.watched.ids[0]}_noisy"]["options"]["sensor"] == {
        "suggested_display_precision": 1
    }
    home.start()
    follows(home, house, [INSIDE], "on")
    home.stop()
    assert set(home.registry()) == set(stored), "nothing is discovered twice"
    home.start()
