"""Event streams of a real server: everything new is sent, once, until the stream ends."""

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from cloakwork.collect.api import event_streams
from cloakwork.collect.api.event_streams import BURST
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import DeviceReport, ProblemCount, Result, Role
from cloakwork.collect.storage.results import ResultTable
from tests.collect.api_kit import NOW, PLAIN, Bench, result, served
from tests.waiting import PATIENCE, until


class Listener:
    """Reads a stream of events in the background, as a browser does."""

    def __init__(self, address: str, headers: dict[str, str], query: str = "?site=hall") -> None:
        self.events: Queue[tuple[str, Any] | None] = Queue()
        self.opened = threading.Event()
        self.comments = 0
        self._thread = threading.Thread(target=self._read, args=(f"{address}/v1/events{query}", headers), daemon=True)
        self._thread.start()
        assert self.opened.wait(PATIENCE)

    def _read(self, url: str, headers: dict[str, str]) -> None:
        try:
            with httpx2.stream("GET", url, headers=headers, verify=PLAIN, timeout=PATIENCE) as answer:
                event = ""
                for line in answer.iter_lines():
                    self.opened.set()
                    name, _, value = line.partition(": ")
                    if name == "event":
                        event = value
                    elif name == "data":
                        self.events.put((event, json.loads(value)))
                    self.comments += line.startswith(":")
        except httpx2.HTTPError:
            pass
        finally:
            self.opened.set()
            self.events.put(None)

    def next(self, kind: str = "result") -> Any:
        """The next event of a kind."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            assert event is not None, "the stream has ended"
            if event[0] == kind:
                return event[1]

    def times(self, count: int) -> list[int]:
        return [self.next()["time"] for _ in range(count)]

    def wait_for_end(self) -> None:
        while self.events.get(timeout=PATIENCE) is not None:
            pass


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Bench, str]]:
    monkeypatch.setattr(event_streams, "FOLLOW_S", 0.05)
    monkeypatch.setattr(event_streams, "CHECK_S", 0.2)
    with served(tmp_path) as one:
        yield one


def test_everything_after_the_opening_of_a_stream_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes until the store is looked at again; what was there before is no news, for whoever comes."""
    monkeypatch.setattr(event_streams, "FOLLOW_S", 1.0)
    with served(tmp_path) as (made, address):
        made.save(result(NOW))
        first = Listener(address, made.bearer("analyst"))
        made.save(result(NOW + 1))
        second = Listener(address, made.bearer("operator"))
        made.save(result(NOW + 2), result(NOW - 1))
        assert first.times(3) == [NOW + 1, NOW - 1, NOW + 2]
        assert second.times(2) == [NOW - 1, NOW + 2]
        made.save(replace(result(NOW + 1, solved=NOW + 5), settled=True))
        assert [(told["time"], told["settled"]) for told in (first.next(), second.next())] == [(NOW + 1, True)] * 2
        made.save(*(result(NOW + k) for k in range(10, 10 + 2 * BURST)))
        assert first.times(BURST) == [NOW + k for k in range(10 + BURST, 10 + 2 * BURST)], "the newest of many"


def test_a_change_of_the_health_is_an_event_and_silence_is_none(running: tuple[Bench, str]) -> None:
    made, address = running
    listener = Listener(address, made.bearer("analyst"))
    made.store.reports.add([DeviceReport("hall", "s1", "online", 4, 30, NOW)])
    assert listener.next("health") == {"site": "hall"}
    made.store.problems.add([ProblemCount("hall", "s1", Reason.LATE, 2, NOW)])
    assert listener.next("health") == {"site": "hall"}
    made.live.now = replace(made.live.now, waiting=17)
    assert listener.next("health") == {"site": "hall"}
    made.live.now = replace(made.live.now, lag_ms=77)  # which grows as time passes
    made.save(result())
    assert listener.events.get(timeout=PATIENCE) == ("result", made.get("/v1/sites/hall/results")["items"][0])


def test_a_failed_look_at_the_store_ends_no_stream_and_loses_nothing(
    running: tuple[Bench, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, address = running
    listener, at, failures = Listener(address, made.bearer("analyst")), ResultTable.at, iter([ValueError("a defect")])

    def flaky(self: ResultTable, *rest: Any) -> list[Result]:
        for failure in failures if rest[1] else ():
            raise failure
        return at(self, *rest)

    monkeypatch.setattr(ResultTable, "at", flaky)
    made.save(result(NOW))
    assert listener.times(1) == [NOW]
    assert next(failures, None) is None


def test_a_stream_has_no_events_of_other_sites(running: tuple[Bench, str]) -> None:
    made, address = running
    limited, everything = (Listener(address, made.bearer(who), "") for who in ("yard", "analyst"))
    made.save(result(NOW))
    assert everything.next()["site"] == "hall"
    made.save(result(NOW, site="yard"))
    assert everything.next()["site"] == limited.next()["site"] == "yard"


def test_a_stream_ends_with_its_token_or_its_session_and_others_do_not(running: tuple[Bench, str]) -> None:
    made, address = running
    other = Listener(address, made.bearer("operator"))
    token = made.store.tokens.create(Role.ANALYST)
    listener = Listener(address, {"Authorization": f"Bearer {token.secret}"})
    made.save(result(NOW))
    assert listener.next()["time"] == NOW
    made.store.tokens.revoke(token.token.id)  # as another process might
    listener.wait_for_end()
    with httpx2.Client(verify=PLAIN, base_url=address) as browser:
        answer = browser.post("/v1/session", json={"token": made.secrets["operator"]})
        listener = Listener(address, {"Cookie": f"cloakwork={answer.cookies['cloakwork']}"})
        assert browser.delete("/v1/session", headers={"X-Cloakwork": "1"}).status_code == 204
    listener.wait_for_end()
    made.save(result(NOW + 1))
    assert other.times(2) == [NOW, NOW + 1]


def deaf(made: Bench, address: str) -> socket.socket:
    """A client that asks for events and does not read them."""
    host, link = urlsplit(address), socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect((host.hostname, host.port))
    lines = ["GET /v1/events?site=hall HTTP/1.1", "Host: x", f"Authorization: Bearer {made.secrets['analyst']}"]
    link.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return link


def test_a_disconnect_is_noticed(running: tuple[Bench, str]) -> None:
    made, address = running
    with deaf(made, address):
        until(lambda: len(made.hub.streams) == 1)
    until(lambda: not made.hub.streams)


@pytest.mark.parametrize("limit", [("SEND_S", 0.5), ("KEPT", 4)])
def test_a_client_that_does_not_read_is_dropped_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, float]
) -> None:
    """Either it takes longer than is allowed to read an event, or it reads again after too many others."""
    monkeypatch.setattr(event_streams, "FOLLOW_S", 0.02)
    monkeypatch.setattr(event_streams, *limit)
    with served(tmp_path) as (made, address):
        listener = Listener(address, made.bearer("operator"))
        with deaf(made, address) as link:
            until(lambda: len(made.hub.streams) == 2)
            for k in range(40):  # of 200 kB each: more than the buffers of a connection hold
                made.save(replace(result(NOW + k), status="x" * 200_000))
                assert listener.next()["time"] == NOW + k
            if limit[0] == "KEPT":
                link.settimeout(PATIENCE)
                while link.recv(1 << 20):
                    pass
            until(lambda: len(made.hub.streams) == 1)
        made.save(result(NOW + 50))
        assert listener.next()["time"] == NOW + 50


def test_a_silent_stream_has_heartbeats_and_a_long_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.3)
    monkeypatch.setattr(event_streams, "STREAM_S", 3.0)
    with served(tmp_path) as (made, address):
        listener = Listener(address, made.bearer("analyst"))
        listener.wait_for_end()
        assert listener.comments >= 2


def test_streams_are_bounded_and_end_when_the_collector_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "MAX_STREAMS", 3)
    monkeypatch.setattr(event_streams, "MAX_STREAMS_PER_TOKEN", 2)
    with served(tmp_path) as (made, address):
        for who, count in (("analyst", 2), ("operator", 1)):
            listeners = [Listener(address, made.bearer(who)) for _ in range(count)]
            assert httpx2.get(f"{address}/v1/events", headers=made.bearer(who), verify=PLAIN).status_code == 429
    for listener in listeners:
        listener.wait_for_end()
