"""Errors have one shape and reveal nothing; bodies are limited; responses have safe headers; logs hold no secret."""

import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi.exceptions import RequestValidationError

from cloakwork.collect.api import error_responses, route_context
from cloakwork.collect.storage import Reading
from cloakwork.errors import BusyError, StoreAwayError
from tests.collect.api_kit import NOW, PLAIN, Bench, bench, error_code, reading, served
from tests.waiting import PATIENCE, until

TELLING = "hunter2-21.25"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


def test_one_shape_for_every_error(made: Bench) -> None:
    client, device, analyst = made.client, made.bearer("device"), made.bearer("analyst")
    for answer, expected in (
        (client.get("/v1/nothing"), (404, "not-found")),
        (client.get("/v1/sites/", headers=analyst), (404, "not-found")),
        (client.put("/v1/sites"), (405, "wrong-method")),
        (client.request("BREW", "/v1/sites"), (405, "wrong-method")),
        (client.get("/v1/sites"), (401, "no-token")),
        (client.get("/v1/tokens", headers=analyst), (403, "forbidden")),
        (client.post("/v1/readings", content=b" " * 1_100_000, headers=device | JSON), (413, "too-large")),
        (client.post("/v1/readings", content=b"{}", headers=device), (415, "not-json")),
        (client.get("/v1/sites/hall/results?limit=many", headers=analyst), (422, "invalid")),
    ):
        assert error_code(answer) == expected
        body = answer.json()
        assert (list(body), list(body["error"])) == (["error"], ["code", "message"])
        assert body["error"]["message"].endswith(".")
        assert answer.headers["content-type"] == "application/json"
    assert client.put("/v1/sites").headers["allow"] == "GET"


def test_an_internal_error_reveals_nothing(
    made: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot handle {TELLING}")

    monkeypatch.setattr(made.store.results, "latest", fail)
    with caplog.at_level(logging.DEBUG):
        answer = made.ask("/v1/sites/hall/latest")
    assert error_code(answer) == (500, "internal")
    for text in (answer.text, caplog.text):
        assert TELLING not in text
        assert "Traceback" not in text
    assert "GET /v1/sites/{site}/latest failed: RuntimeError at test_api_errors.py" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_busy_intake_and_an_unavailable_store_ask_to_retry(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(problem: Exception, *_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(made.intake, "submit", partial(fail, BusyError("full")))
    monkeypatch.setattr(made.store.results, "latest", partial(fail, StoreAwayError("locked by 4711")))
    for answer in (made.post("/v1/readings", reading(), "device"), made.ask("/v1/sites/hall/latest")):
        assert error_code(answer) == (503, "busy")
        assert int(answer.headers["retry-after"]) > 0
        assert "4711" not in answer.text


def test_no_log_and_no_error_has_a_secret_or_a_payload(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Over a real server, whose own log counts as well."""
    with (
        caplog.at_level(logging.DEBUG),
        served(tmp_path) as (made, address),
        httpx2.Client(verify=PLAIN, base_url=address) as client,
    ):
        device, operator = made.bearer("device"), made.bearer("operator")
        wrong = f"cw_{TELLING:_<43}"
        bodies: list[object] = [
            reading() | {"value": TELLING},
            reading() | {TELLING: 1},
            reading() | {"sensor": TELLING},
            [reading(), TELLING],
            TELLING,
            {"v": {TELLING: TELLING}},
        ]
        answers = [client.post("/v1/readings", json=body, headers=device) for body in bodies]
        answers += [
            client.post("/v1/readings", content=TELLING, headers=device | JSON),
            client.post("/v1/tokens", json={"role": TELLING, "label": "\x00"}, headers=operator),
            client.post("/v1/session", json={"token": wrong}),
            client.post("/v1/session", json={"token": TELLING * 10}),
            client.get("/v1/sites", headers={"Authorization": f"Bearer {wrong}"}),
            client.get("/v1/sites", headers={"Cookie": f"cloakwork={TELLING}"}),
        ]
        new = client.post("/v1/tokens", json={"role": "analyst", "label": "x"}, headers=operator).json()
        client.delete(f"/v1/tokens/{new['id']}", headers=operator)
        session = client.post("/v1/session", json={"token": made.secrets["operator"]})
        secrets = [*made.secrets.values(), new["secret"], session.cookies["cloakwork"], TELLING]
        client.post("/v1/sites/hall/erase", json={"everything": True}, headers=operator)
    assert all(400 <= answer.status_code < 500 for answer in answers), answers
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    assert any("made token" in text for text in ours), "what operators do is logged"
    shown = [*(answer.text + str(answer.headers) for answer in answers), *ours]
    assert [secret for secret in secrets if any(secret in text for text in shown)] == []


SAFE = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/sites", "/v1/nothing", "/static/nothing", "/v1/session"])
def test_every_response_has_security_headers_and_no_version(made: Bench, path: str) -> None:
    for who in ("anonymous", "operator"):
        answer = made.ask(path, who)
        assert {name: answer.headers[name] for name in SAFE} == SAFE
        assert not {"server", "strict-transport-security", "access-control-allow-origin"} & set(answer.headers)
        assert answer.headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


def test_no_other_site_may_read_a_response(made: Bench) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = made.client.options("/v1/readings", headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_files_of_the_page_are_found_by_name_only_and_sent_when_they_change(made: Bench) -> None:
    for name in ("../api/__init__.py", "%2e%2e/__init__.py", "..%2f__init__.py", "%2fetc%2fpasswd", "x" * 200):
        assert made.client.get(f"/static/{name}").status_code in {404, 422}
    answer = made.client.get("/static/app.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    again = made.client.get("/static/app.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_metrics_count_readings_problems_lag_and_requests_and_no_made_up_addresses(made: Bench) -> None:
    for body in ([reading(1), reading(2)], [reading(1), reading(2, value=9)], reading() | {"v": 2}):
        made.post("/v1/readings", body, "device")
    for path in ("/made-up", "/v1/sites/made-up"):
        made.ask(path)
    text = made.ask("/metrics").text
    assert "made-up" not in text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    wanted = {
        'cloakwork_readings_total{verdict="new"}': 2,
        'cloakwork_readings_total{verdict="again"}': 1,
        'cloakwork_readings_total{verdict="alarm"}': 1,
        'cloakwork_problems_total{reason="malformed"}': 1,
        'cloakwork_lag_seconds{site="hall"}': 1.5,
        'cloakwork_backlog_frames{site="hall"}': 3,
        'cloakwork_solve_seconds{site="hall"}': 0.02,
        "cloakwork_broker_connected": 1,
        "cloakwork_queued_readings": 0,
        'cloakwork_http_seconds_count{method="POST",route="/v1/readings",status="200"}': 2,
        'cloakwork_http_seconds_count{method="POST",route="/v1/readings",status="422"}': 1,
    }
    assert {name: float(lines.get(name, "nan")) for name in wanted} == wanted


def many_keys(size: int) -> bytes:
    keys = ",".join(f'"{k:x}":0' for k in range(size // 9))
    return f"{{{keys}}}".encode()


def test_only_devices_can_send_much(made: Bench) -> None:
    for body, expected in ((many_keys(1_000_000), 413), (many_keys(3_000), 413), (many_keys(2_000), 422), (b"{}", 422)):
        assert made.client.post("/v1/session", content=body, headers=JSON).status_code == expected
    large = made.client.post("/v1/tokens", content=many_keys(3_000), headers=made.bearer("operator") | JSON)
    assert large.status_code == 413


def test_a_body_full_of_faults_causes_few_errors(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    usual = RequestValidationError.errors

    def counted(problem: RequestValidationError) -> Any:
        found.append(len(usual(problem)))
        return usual(problem)

    monkeypatch.setattr(RequestValidationError, "errors", counted)
    for body in (many_keys(900_000), b"[" + many_keys(900_000) + b"]", b"[" + 900 * b"{}," + b"{}]", b"[0,0,0]"):
        answer = made.client.post("/v1/readings", content=body, headers=made.bearer("device") | JSON)
        assert error_code(answer) == (422, "invalid")
        assert "body" in answer.json()["error"]["message"]
    assert max(found) <= 6, "one for each key that is missing in the first reading that is wrong"


def test_what_would_wait_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_context, "MAX_WAITING", 1)
    with bench(tmp_path) as busy, ThreadPoolExecutor(2) as crowd:
        released = threading.Event()
        held = [crowd.submit(busy.context.compute, lambda: released.wait(PATIENCE)) for _ in range(2)]
        busy.store.readings.add([Reading("hall", "s1", 1, NOW, 5, NOW)])
        try:
            until(lambda: busy.context._room._value == 0)  # noqa: SLF001
            assert busy.ask("/v1/sites/hall/attack").status_code == 503
            assert busy.ask("/v1/sites").status_code == 200
        finally:
            released.set()
        assert [one.result() for one in held] == [True, True]


@pytest.mark.parametrize(
    ("who", "length", "body", "expected"),
    [
        ("device", "Content-Length: 2000000", b"", b"HTTP/1.1 413"),
        # more than is allowed, and there is no end of it yet
        ("device", "Transfer-Encoding: chunked", 4 * (b"8000\r\n" + b" " * 0x8000 + b"\r\n"), b"HTTP/1.1 413"),
        ("device", "Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n", b"HTTP/1.1 400"),
        ("anonymous", "Content-Length: 50", b"", b"HTTP/1.1 401"),
    ],
)
def test_a_body_is_refused_before_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, length: str, body: bytes, expected: bytes
) -> None:
    monkeypatch.setattr(error_responses, "BODY_BYTES", 100_000)
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            lines = ["POST /v1/readings HTTP/1.1", "Host: localhost", "Content-Type: application/json", length]
            lines += [f"{name}: {value}" for name, value in made.bearer(who).items()]
            link.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
            answer = b""
            while not answer.endswith(b"}}") and (piece := link.recv(4096)):
                answer += piece
        assert answer.startswith(expected)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]
        assert who == "anonymous" or b"connection: close" in answer.lower()
