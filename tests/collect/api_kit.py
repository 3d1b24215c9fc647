"""Shared by tests of the HTTP interface: small sites, a real store and intake, and a client for each role."""

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response

from cloakwork.collect.api import ApiContext, make_app
from cloakwork.collect.api.event_streams import EventHub
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.intake import Intake
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.site_worker import RecoveryState
from cloakwork.collect.storage import Reading, RecoveredSource, Result, Role, Store, open_store, pack_map
from cloakwork.mqtt import BrokerState, MqttClient
from cloakwork.site import freeze, parse_site
from tests.collect.fake_store import lenient
from tests.waiting import PATIENCE, until

PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loads no certificates: httpx2 would, for each request
NOW = time.time_ns() // 1_000_000
SITE = """
name = "{name}"
sensors = 4
baseline = 20.0
unit = "°C"
[physics]
kind = "line"
places = 12
T = 0.01
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.05
window = "1min"
readings_per_window = 30
"""


@cache
def collected(text: str) -> CollectedSite:
    site = parse_site(text)
    return CollectedSite(site, freeze(site, site.cloak()))


def watched(name: str = "hall") -> CollectedSite:
    return collected(SITE.format(name=name))


class Still(LiveRecovery):
    """Live recovery that does nothing."""

    def __init__(self) -> None:
        self.now = RecoveryState(1500, 900, 3, False, 1, 7, 0, 0.5, 20.0, "")

    def state(self, site: str) -> RecoveryState:
        assert site
        return self.now


class Broker(MqttClient):
    """A connection to a broker whose state the test sets."""

    state = BrokerState(True, NOW, "")

    def __init__(self) -> None:
        pass


@dataclass
class Bench:
    """An app with all that is behind it; `secrets` by role, and of a second device under `other`."""

    store: Store
    intake: Intake
    live: Still
    broker: Broker
    context: ApiContext
    app: FastAPI
    client: TestClient
    secrets: dict[str, str]
    ids: dict[str, str]

    @property
    def hub(self) -> EventHub:
        hub: EventHub = self.app.state.hub
        return hub

    def code(self, who: str) -> str:
        """A one-time code for the token of someone."""
        [token] = [token for token in self.store.tokens.list_all() if token.id == self.ids[who]]
        return self.context.access.make_code(token)

    def save(self, *made: Result) -> None:
        """Store results, each with a reading: one without readings is not kept."""
        self.store.readings.add([Reading(one.site, "s1", one.time, one.time, 1, NOW) for one in made])
        assert len(self.store.results.save(made)) == len(made)

    def bearer(self, who: str) -> dict[str, str]:
        return {} if who == "anonymous" else {"Authorization": f"Bearer {self.secrets[who]}"}

    def ask(self, path: str, who: str = "analyst") -> Response:
        answer: Response = self.client.get(path, headers=self.bearer(who))
        return answer

    def get(self, path: str, who: str = "analyst") -> Any:
        """What a request that succeeds gives."""
        answer = self.ask(path, who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, who: str) -> Response:
        answer: Response = self.client.post(path, json=body, headers=self.bearer(who))
        return answer


def error_code(answer: Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["error"]["code"]


def reading(
    seq: int = 1, *, sensor: str = "s1", site: str = "hall", when: int = NOW, value: int = 5
) -> dict[str, object]:
    return {"v": 1, "site": site, "sensor": sensor, "seq": seq, "time": when, "value": value}


def result(when: int = NOW, *, site: str = "hall", solved: int = NOW) -> Result:
    spot = RecoveredSource("3", (0.25,), 1.0, 0.1, 0.97)
    weights = pack_map(np.array([0.0, 0.0, 0.97] + [0.0] * 9))
    return Result(
        site, when, 1, 4, "PointSources", "converged", 0.01, 0.4, (), (0.03, 0.97), (spot,), weights, solved, 12.5
    )


@contextmanager
def parts(
    folder: Path,
    *,
    sites: Mapping[str, CollectedSite | CollectedBits] | None = None,
    url: str | None = None,
    **options: Any,
) -> Iterator[Bench]:
    """Everything but a server; `client` is not started. The options are those of `ApiContext`."""
    sites = {name: watched(name) for name in ("hall", "yard")} if sites is None else sites
    with open_store(url or str(folder / "store.db")) as store:
        intake = Intake(store, {name: lenient(*one.ids) for name, one in sites.items()}, on_new=lambda _: None)
        intake.start()
        try:
            live, broker = Still(), Broker()
            context = ApiContext(store, sites, intake, live, broker=broker, **options)
            app = make_app(context)
            made = {
                "device": store.tokens.create(Role.DEVICE, "hall", "s1", "a device"),
                "other": store.tokens.create(Role.DEVICE, "hall", "s2", "another device"),
                "analyst": store.tokens.create(Role.ANALYST, label="an analyst"),
                "operator": store.tokens.create(Role.OPERATOR, label="an operator"),
                "yard": store.tokens.create(Role.ANALYST, "yard", label="an analyst of the yard"),
            }
            secrets = {who: new.secret for who, new in made.items()}
            ids = {who: new.token.id for who, new in made.items()}
            client = TestClient(app, raise_server_exceptions=False)
            yield Bench(store, intake, live, broker, context, app, client, secrets, ids)
        finally:
            intake.stop()


@contextmanager
def bench(folder: Path, **options: Any) -> Iterator[Bench]:
    """An app that is called in this process."""
    with parts(folder, **options) as made, made.client:
        yield made


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[tuple[Bench, str]]:
    """An app behind a real server, and its address."""
    with parts(folder, **options) as made:
        server = uvicorn.Server(
            uvicorn.Config(made.app, port=0, log_level="warning", server_header=False, timeout_graceful_shutdown=5)
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield made, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            made.hub.close()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the server did not end: a stream keeps it"
