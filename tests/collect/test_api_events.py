"""Event streams of a real server: sent, resumed and ended."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from cloakwork.collect.api import EventLimits
from cloakwork.collect.api.event_hub import StreamEnd
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading, Role
from tests.collect.api_kit import NOW, PLAIN, Bench, result, served
from tests.waiting import PATIENCE

QUICK = EventLimits(follow_s=0.1, check_s=0.2)


class Listener:
    """Reads a stream of events in the background, as a browser does."""

    def __init__(self, address: str, headers: dict[str, str], query: str = "?site=hall") -> None:
        self.events: Queue[dict[str, str] | None] = Queue()
        self.opened = threading.Event()
        self.status = 0
        self.comments = 0
        self._thread = threading.Thread(target=self._read, args=(f"{address}/v1/events{query}", headers), daemon=True)
        self._thread.start()
        assert self.opened.wait(PATIENCE)

    def _read(self, url: str, headers: dict[str, str]) -> None:
        try:
            with httpx2.stream("GET", url, headers=headers, verify=PLAIN, timeout=PATIENCE) as answer:
                self.status = answer.status_code
                self.kind = answer.headers["content-type"]
                event: dict[str, str] = {}
                for line in answer.iter_lines():
                    self._take(line, event)
        except httpx2.HTTPError:
            pass
        finally:
            self.opened.set()
            self.events.put(None)

    def _take(self, line: str, event: dict[str, str]) -> None:
        if not line:
            if "data" in event:
                self.events.put(dict(event))
            event.clear()
            self.opened.set()
        elif line.startswith(":"):
            self.comments += 1
        else:
            name, _, value = line.partition(": ")
            event[name] = value

    def next(self, kind: str = "result", seconds: float = PATIENCE) -> dict[str, Any]:
        """The next event of a kind."""
        end = time.monotonic() + seconds
        while True:
            event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            assert event is not None, "the stream has ended"
            if event["event"] == kind:
                return {"id": event.get("id"), **json.loads(event["data"])}

    def ended(self, seconds: float = PATIENCE) -> str:
        """The code in the last event of a stream that has ended."""
        last: dict[str, str] = {}
        while (event := self.events.get(timeout=seconds)) is not None:
            last = event
        assert last["event"] == "end"
        code: str = json.loads(last["data"])["code"]
        return code


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, str]]:
    with served(tmp_path_factory.mktemp("events"), QUICK) as one:
        yield one


def save(made: Bench, when: int, site: str = "hall") -> None:
    made.store.readings.add([Reading(site, "s1", when, when, 1, NOW)])
    made.store.results.save([result(when, site=site)])


def test_everything_after_the_opening_of_a_stream_is_sent(tmp_path: Path) -> None:
    """However long it takes until the store is looked at again; what was there before is none, for whoever comes."""
    with served(tmp_path, EventLimits(follow_s=2.0)) as (made, address):
        save(made, NOW)
        first = Listener(address, made.bearer("analyst"))
        save(made, NOW + 1)
        second = Listener(address, made.bearer("operator"))
        save(made, NOW + 2)
        made.store.reports.add([DeviceReport("hall", "s1", "online", 4, 30, NOW)])
        assert [first.next()["time"] for _ in range(2)] == [NOW + 1, NOW + 2]
        assert first.next("report")["used"] == 4
        times = [second.next()["time"]]
        while times[-1] != NOW + 2:
            times.append(second.next()["time"])
        assert NOW not in times


def test_reports_problems_and_lag_are_sent(running: tuple[Bench, str]) -> None:
    made, address = running
    listener = Listener(address, made.bearer("operator"))
    made.store.reports.add([DeviceReport("hall", "s1", "online", 4, 30, NOW)])
    assert listener.next("report")["used"] == 4
    made.store.problems.add([ProblemCount("hall", "s1", Reason.LATE, 2, NOW)])
    told = listener.next("problem")
    assert (told["sensor"], told["reason"], told["count"]) == ("s1", Reason.LATE, 2)
    made.live.now = replace(made.live.now, waiting=17)
    while (lag := listener.next("lag"))["waiting"] != 17:
        pass
    assert lag["site"] == "hall"


def test_a_reconnecting_client_gets_what_it_missed(tmp_path: Path) -> None:
    with served(tmp_path, QUICK) as (made, address):
        for k in range(4):
            save(made, NOW + k)
        back = Listener(address, made.bearer("analyst") | {"Last-Event-ID": str(NOW + 1)})
        assert marks(back, 2) == [(NOW + 2, str(NOW + 2)), (NOW + 3, str(NOW + 3))]
        made.publish(result(NOW + 4))
        assert marks(back, 1) == [(NOW + 4, str(NOW + 4))]
        made.publish(result(NOW - 500))
        assert marks(back, 1) == [(NOW - 500, None)], "an older one does not set the mark back"


def marks(listener: Listener, count: int) -> list[tuple[int, str | None]]:
    """Time and id of the next results."""
    return [(told["time"], told["id"]) for told in (listener.next() for _ in range(count))]


def test_the_id_of_several_sites_is_that_of_the_site_furthest_behind(tmp_path: Path) -> None:
    with served(tmp_path, QUICK) as (made, address):
        analyst = made.bearer("analyst")
        save(made, NOW)
        first = Listener(address, analyst, "")
        for _ in range(2):
            first.next("lag")  # both sites are watched from now on
        made.publish(result(NOW + 30_000))
        assert marks(first, 1) == [(NOW + 30_000, "0")], "the yard has no result yet"
        save(made, NOW + 20_000, "yard")
        back = Listener(address, analyst | {"Last-Event-ID": "0"}, "")
        assert marks(back, 2) == [(NOW, "0"), (NOW + 20_000, str(NOW))]
        assert first.next()["site"] == "yard"

        later = Listener(address, analyst, "")
        made.publish(result(NOW + 40_000))
        made.publish(result(NOW + 50_000, site="yard"))
        assert marks(later, 2) == [(NOW + 40_000, str(NOW + 20_000)), (NOW + 50_000, str(NOW + 40_000))]
        made.publish(result(NOW + 50_000, site="yard", solved=NOW + 1))
        assert marks(later, 1) == [(NOW + 50_000, str(NOW + 40_000))], "the newest, recovered again"


def test_a_stream_has_no_events_of_other_sites(running: tuple[Bench, str]) -> None:
    made, address = running
    limited = Listener(address, made.bearer("yard"), "")
    everything = Listener(address, made.bearer("analyst"), "")
    made.publish(result(NOW + 3000))
    made.publish(result(NOW + 3001, site="yard"))
    assert [everything.next()["site"] for _ in range(2)] == ["hall", "yard"]
    assert limited.next()["site"] == "yard"


def test_a_stream_ends_with_a_token_that_another_process_revokes(running: tuple[Bench, str]) -> None:
    made, address = running
    new = made.store.tokens.create(Role.ANALYST)
    listener = Listener(address, {"Authorization": f"Bearer {new.secret}"})
    made.publish(result(NOW + 5000))
    assert listener.next()["time"] == NOW + 5000
    made.store.tokens.revoke(new.token.id)
    assert listener.ended() == StreamEnd.REVOKED.code


def test_a_stream_of_a_session_ends_with_the_session(tmp_path: Path) -> None:
    with served(tmp_path, QUICK) as (made, address):
        with httpx2.Client(verify=PLAIN, base_url=address) as browser:
            answer = browser.post("/v1/session", json={"token": made.secrets["operator"]})
            cookie = f"cloakwork={answer.cookies['cloakwork']}"
            listener = Listener(address, {"Cookie": cookie})
            other = Listener(address, made.bearer("operator"))
            assert browser.delete("/v1/session", headers={"X-Cloakwork": "1"}).status_code == 204
        assert listener.ended() == StreamEnd.REVOKED.code
        made.publish(result(NOW + 6000))
        assert other.next()["time"] == NOW + 6000, "that of another goes on"


def test_a_disconnect_is_noticed(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(asking(made))
            assert link.recv(100).startswith(b"HTTP/1.1 200")
            assert len(made.hub.streams) == 1
        end = time.monotonic() + 60
        while made.hub.streams and time.monotonic() < end:
            time.sleep(0.01)
        assert not made.hub.streams


def asking(made: Bench) -> bytes:
    lines = ["GET /v1/events?site=hall HTTP/1.1", "Host: x", f"Authorization: Bearer {made.secrets['analyst']}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextmanager
def deaf(made: Bench, address: str) -> Iterator[socket.socket]:
    """A client that asks for events and does not read them."""
    host = urlsplit(address)
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect((host.hostname, host.port))
        link.sendall(asking(made))
        link.settimeout(60)
        yield link


PUBLISHED = 150  # of 200 kB each: more than the buffers of a connection hold


def test_a_client_that_does_not_read_is_dropped_and_others_are_not(tmp_path: Path) -> None:
    with served(tmp_path, EventLimits(kept=2_000_000, send_s=60.0)) as (made, address), deaf(made, address) as link:
        listener = Listener(address, made.bearer("operator"), "?site=yard")
        for k in range(PUBLISHED):
            made.publish(replace(result(NOW + k), status="x" * 200_000))
            time.sleep(0.02)  # a client that reads keeps up
        told = b""
        while b"event: end" not in told:
            piece = link.recv(65536)
            assert piece, "the stream was cut without a word"
            told += piece
        while b"}" not in told.rpartition(b"event: end")[2]:
            piece = link.recv(4096)
            assert piece, "the stream was cut in its last word"
            told += piece
        assert b'"code": "slow"' in told.rpartition(b"event: end")[2]
        assert "cloakwork_event_streams_dropped_total 1.0" in made.app.state.context.metrics.text().decode()
        made.publish(result(NOW, site="yard"))
        assert listener.next()["site"] == "yard"


def test_a_silent_stream_has_heartbeats_and_a_long_one_ends(tmp_path: Path) -> None:
    with served(tmp_path, EventLimits(heartbeat_s=0.3, stream_s=6.0)) as (made, address):
        listener = Listener(address, made.bearer("analyst"))
        assert listener.ended() == StreamEnd.TIME.code
        assert listener.comments >= 2


def test_streams_are_bounded_and_end_when_the_collector_stops(tmp_path: Path) -> None:
    with served(tmp_path, EventLimits(streams_per_token=2, streams=3)) as (made, address):
        own = [Listener(address, made.bearer("analyst")) for _ in range(2)]
        assert httpx2.get(f"{address}/v1/events", headers=made.bearer("analyst"), verify=PLAIN).status_code == 429
        other = Listener(address, made.bearer("operator"))
        assert httpx2.get(f"{address}/v1/events", headers=made.bearer("operator"), verify=PLAIN).status_code == 429
    assert {listener.ended() for listener in (*own, other)} == {StreamEnd.CLOSING.code}
