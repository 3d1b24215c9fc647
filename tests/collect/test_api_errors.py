"""Errors have one shape and reveal nothing; responses have security headers; logs hold no secret and no payload."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.collect.api_kit import PLAIN, Bench, bench, reading, served

TELLING = "hunter2-21.25"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


def shape(answer: httpx2.Response) -> str:
    """The code of an error, whose shape is checked."""
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert answer.headers["content-type"] == "application/json"
    message: str = body["error"]["message"]
    assert message[0].isupper() or message.startswith(("body", "path", "query", "header", "request")), message
    assert message.endswith("."), message
    code: str = body["error"]["code"]
    return code


def test_one_shape_for_every_error(made: Bench) -> None:
    client, device, analyst = made.client, made.bearer("device"), made.bearer("analyst")
    as_json = {"Content-Type": "application/json"}
    found = {
        404: client.get("/v1/nothing"),
        405: client.put("/v1/sites"),
        401: client.get("/v1/sites"),
        403: client.get("/v1/tokens", headers=analyst),
        413: client.post("/v1/readings", content=b" " * 1_100_000, headers=device | as_json),
        415: client.post("/v1/readings", content=b"{}", headers=device),
        422: client.get("/v1/sites/hall/results?limit=many", headers=analyst),
    }
    assert {status: answer.status_code for status, answer in found.items()} == {status: status for status in found}
    assert [shape(answer) for answer in found.values()] == [
        "not-found",
        "wrong-method",
        "no-token",
        "forbidden",
        "too-large",
        "not-json",
        "invalid",
    ]
    assert found[405].headers["allow"] == "GET"
    assert shape(client.get("/v1/sites/", headers=analyst)) == "not-found"
    assert shape(client.request("BREW", "/v1/sites")) == "wrong-method"


def test_an_internal_error_reveals_nothing(
    made: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot handle {TELLING}")

    monkeypatch.setattr(made.store.results, "latest", fail)
    with caplog.at_level(logging.DEBUG):
        answer = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
    assert (answer.status_code, shape(answer)) == (500, "internal")
    for told in (answer.text, caplog.text):
        assert TELLING not in told
        assert "Traceback" not in told
    assert "GET /v1/sites/{site}/latest failed: RuntimeError at test_api_errors.py" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_log_and_no_error_has_a_secret_or_a_payload(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Over a real server, whose own log counts as well."""
    answers: list[httpx2.Response] = []
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
        answers += [client.post("/v1/readings", json=body, headers=device) for body in bodies]
        answers.append(
            client.post("/v1/readings", content=TELLING, headers=device | {"Content-Type": "application/json"})
        )
        answers.append(client.post("/v1/tokens", json={"role": TELLING, "label": "\x00"}, headers=operator))
        answers.append(client.post("/v1/session", json={"token": wrong}))
        answers.append(client.post("/v1/session", json={"token": TELLING * 10}))
        answers.append(client.get("/v1/sites", headers={"Authorization": f"Bearer {wrong}"}))
        answers.append(client.get("/v1/sites", headers={"Cookie": f"cloakwork={TELLING}"}))
        made_token = client.post("/v1/tokens", json={"role": "analyst", "label": "x"}, headers=operator).json()
        client.delete(f"/v1/tokens/{made_token['id']}", headers=operator)
        session = client.post("/v1/session", json={"token": made.secrets["operator"]})
        secrets = [*made.secrets.values(), made_token["secret"], session.cookies["cloakwork"], TELLING]
        client.post("/v1/sites/hall/erase", json={"everything": True}, headers=operator)
    assert all(400 <= answer.status_code < 500 for answer in answers), answers
    told = [answer.text + str(answer.headers) for answer in answers]
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    assert any("made token" in text for text in ours), "what operators do is logged"
    for secret in secrets:
        assert not any(secret in text for text in told)
        assert not any(secret in text for text in ours)


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
        answer = made.client.get(path, headers=made.bearer(who))
        assert {name: answer.headers[name] for name in SAFE} == SAFE
        assert "server" not in answer.headers
        assert "strict-transport-security" not in answer.headers
        assert answer.headers["cache-control"] == (
            "no-cache" if path == "/" and answer.status_code == 200 else "no-store"
        )
        assert "access-control-allow-origin" not in answer.headers


def test_no_other_site_may_read_a_response(made: Bench) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = made.client.options("/v1/readings", headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_files_of_the_page_are_found_by_name_only(made: Bench) -> None:
    for name in ("../app.py", "%2e%2e/api/app.py", "..%2fapi%2fapp.py", "%2fetc%2fpasswd", "__init__.py", "x" * 200):
        assert made.client.get(f"/static/{name}").status_code in {404, 422}
    for name, file in made.app.state.page.items():
        answer = made.client.get(f"/static/{name}")
        assert answer.content == file.body
        assert answer.headers["content-type"] == file.media_type
        again = made.client.get(f"/static/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_metrics_count_readings_problems_lag_and_requests(made: Bench) -> None:
    made.client.post("/v1/readings", json=[reading(1), reading(2)], headers=made.bearer("device"))
    made.client.post("/v1/readings", json=[reading(1), reading(2, value=9)], headers=made.bearer("device"))
    made.client.post("/v1/readings", json=reading() | {"v": 2}, headers=made.bearer("device"))
    text = made.client.get("/metrics", headers=made.bearer("analyst")).text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    wanted = {
        'cloakwork_readings_total{verdict="new"}': 2,
        'cloakwork_readings_total{verdict="again"}': 1,
        'cloakwork_readings_total{verdict="alarm"}': 1,
        'cloakwork_problems_total{reason="malformed"}': 1,
        'cloakwork_lag_seconds{site="hall"}': 1.5,
        'cloakwork_backlog_frames{site="hall"}': 3,
        "cloakwork_broker_connected": 1,
        "cloakwork_queued_readings": 0,
        'cloakwork_http_requests_total{method="POST",route="/v1/readings",status="200"}': 2,
        'cloakwork_http_requests_total{method="POST",route="/v1/readings",status="422"}': 1,
    }
    assert {name: float(lines.get(name, "nan")) for name in wanted} == wanted


def test_addresses_that_do_not_exist_do_not_fill_the_metrics(made: Bench) -> None:
    for k in range(50):
        made.client.get(f"/made-up/{k}")
        made.client.get(f"/v1/sites/made-up-{k}", headers=made.bearer("analyst"))
    text = made.client.get("/metrics", headers=made.bearer("analyst")).text
    assert "made-up" not in text
