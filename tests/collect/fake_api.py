"""A fake collector for tests of the page: the same routes and shapes, and a clock that the test moves.

Time stands still until `advance` lets some of it pass, with all the results that fall into it.
"""

import json
import mimetypes
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.collect.fake_sites import LAG, START_MS, FakeSite

TOKEN = "cw_" + "a" * 43
CODE = "b" * 32
COOKIE = "session=of-the-test"
PAGE = Path(str(files("cloakwork.collect").joinpath("page")))
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Stop(Exception):  # noqa: N818 - it is an answer, not a fault
    """An error response, with its status and code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class FakeApi:
    """The server; `sites` may be changed while it runs."""

    def __init__(self, sites: Mapping[str, FakeSite]) -> None:
        self.sites = sites
        self.down = False
        self.signed_in = False
        self.codes = {CODE}
        self.listeners: list[queue.Queue[tuple[str, Any] | None]] = []
        self.now = START_MS
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = _Server(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and send the new results."""
        before = self.now
        self.now += milliseconds
        for name, site in self.sites.items():
            late = LAG * site.site.period_ms
            for when in reversed(site.times(before + 1, self.now)):
                self.tell("result", site.result(when) | {"site": name})
            for when in reversed(site.times(before - late + 1, self.now - late)):
                self.tell("settled", site.result(when, now=self.now) | {"site": name})

    def tell(self, kind: str, data: Any) -> None:
        for listener in list(self.listeners):
            listener.put((kind, data))

    def cut(self) -> None:
        """Stop answering."""
        self.down = True
        for listener in list(self.listeners):
            listener.put(None)

    def mend(self) -> None:
        self.down = False


@contextmanager
def running_api(sites: Mapping[str, FakeSite]) -> Iterator[FakeApi]:
    api = FakeApi(sites)
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.cut()
        api.server.shutdown()
        api.server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser may disconnect at any time; the page shows all other errors."""


class _Handler(BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Tests need no log."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.api.now / 1000 if timestamp is None else timestamp, usegmt=True)

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_DELETE(self) -> None:
        self._answer(self._delete)

    def _answer(self, work: Callable[[], None]) -> None:
        if self.api.down:
            self.close_connection = True
            return
        try:
            work()
        except Stop as stop:
            self._json({"error": {"code": stop.code, "message": str(stop)}}, stop.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _json(self, data: Any, status: int = 200, **headers: str) -> None:
        self._send(json.dumps(data).encode(), "application/json", status, **headers)

    def _send(self, body: bytes, kind: str, status: int = 200, **headers: str) -> None:
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string())
        for name, value in (HEADERS | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _get(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/":
            self._file("index.html")
        elif url.path.startswith("/static/"):
            self._file(url.path.removeprefix("/static/"))
        elif not url.path.startswith("/v1/"):
            raise Stop(404, "not-found", "There is nothing here.")
        elif not self.api.signed_in or COOKIE not in (self.headers["Cookie"] or ""):
            raise Stop(401, "unauthorised", "Sign in with a token: POST /v1/session.")
        elif url.path == "/v1/events":
            self._events(query["site"])
        else:
            self._json(self._data(url.path.removeprefix("/v1/").split("/"), query))

    def _file(self, name: str) -> None:
        path = PAGE / name
        if "/" in name or not path.is_file():
            raise Stop(404, "not-found", "There is no such file.")
        self._send(path.read_bytes(), mimetypes.guess_type(name)[0] or "text/plain")

    def _data(self, parts: list[str], query: dict[str, str]) -> Any:
        if parts == ["sites"]:
            return [site.info | {"now": self.api.now} for site in self.api.sites.values()]
        site = self.api.sites.get(parts[1])
        if site is None:
            raise Stop(404, "unknown-site", f"There is no site {parts[1]}.")
        if len(parts) == 2:
            return site.geometry
        if parts[2] == "health":
            return site.health(self.api.now)
        if parts[2] == "results" and len(parts) == 3:
            return _page(site, query, self.api.now)
        return _moment(site, parts, query, self.api.now)

    def _post(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        if self.path != "/v1/session" or self.headers["X-Cloakwork"] != "1":
            raise Stop(403, "refused", "Send the header X-Cloakwork: 1.")
        if "code" in told:
            if told["code"] not in self.api.codes:
                raise Stop(401, "no-token", "This address has been used or has expired.")
            self.api.codes.remove(told["code"])
        elif told.get("token") != TOKEN:
            raise Stop(401, "unauthorised", "This token is unknown.")
        self.api.signed_in = True
        self._json({"role": "analyst"}, Set_Cookie=f"{COOKIE}; HttpOnly; SameSite=Strict; Path=/")

    def _delete(self) -> None:
        self.api.signed_in = False
        self._json({}, Set_Cookie="session=; Max-Age=0; Path=/")

    def _events(self, name: str) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        heard: queue.Queue[tuple[str, Any] | None] = queue.Queue()
        self.api.listeners.append(heard)
        try:
            self.wfile.write(b": hello\n\n")
            while (event := heard.get()) is not None:
                kind, data = event
                if data.get("site", name) == name:
                    self.wfile.write(
                        f"event: {kind}\nid: {data.get('time', '')}\ndata: {json.dumps(data)}\n\n".encode()
                    )
                    self.wfile.flush()
        finally:
            self.api.listeners.remove(heard)


def _page(site: FakeSite, query: dict[str, str], now: int) -> dict[str, Any]:
    limit = int(query.get("limit", 100))
    until = min(now, int(query.get("until", now + 1)) - 1)
    times = site.times(int(query.get("since", 0)), until)
    items = [site.result(when, now=now) for when in times[:limit]]
    return {"items": items, "next": str(times[limit - 1]) if len(times) > limit else None}


def _moment(site: FakeSite, parts: list[str], query: dict[str, str], now: int) -> dict[str, Any]:
    asked = int(parts[3]) if len(parts) > 3 else int(query.get("time", now))
    if parts[2] == "timeline":
        return site.timeline(int(query["since"]) if "since" in query else None, now)
    if parts[2] == "tracks":
        return {"items": site.tracks(int(query["since"]), int(query["until"]))}
    if parts[2] == "truth":
        if not site.offers_truth:
            raise Stop(404, "not-found", "This site is not simulated.")
        return {"time": asked, "sources": site.truth(asked)}
    times = site.times(0, min(asked, now))
    if not times or (parts[2] == "results" and times[0] != asked):
        raise Stop(404, "no-result", "There is no result of that time.")
    if parts[2] == "results":
        found = site.alone(asked) if query.get("alone") == "true" else site.result(asked, now=now)
        return found | {"map": site.map(found)}
    if parts[2] == "attack":
        span = {"window": site.info["window_s"], "hour": 3600.0, "day": 86_400.0}[query["span"]]
        frames = min(len(site.times(times[0] - int(1000 * span) + 1, times[0])), 100)
        found = site.result(times[0], frames=frames)
        kept = {"frames": frames, "since": times[0] - int(1000 * span), "cut": site.cut, "span": query["span"]}
        return found | {"map": site.map(found)} | kept
    raise Stop(404, "not-found", "There is nothing here.")
