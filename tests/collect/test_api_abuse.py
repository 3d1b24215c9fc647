"""Abuse: bodies that cost a lot to read, and requests that take long to answer."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError

from cloakwork.collect.api import route_context
from cloakwork.collect.storage import Reading
from tests.collect.api_kit import NOW, bench
from tests.waiting import PATIENCE, until


def many_keys(size: int) -> bytes:
    keys = ",".join(f'"{k:x}":0' for k in range(size // 9))
    return f"{{{keys}}}".encode()


def test_a_stranger_cannot_send_much(tmp_path: Path) -> None:
    as_json = {"Content-Type": "application/json"}
    with bench(tmp_path) as made:

        def attempt(body: bytes) -> tuple[int, str]:
            answer = made.client.post("/v1/session", content=body, headers=as_json)
            return answer.status_code, answer.json()["error"]["code"]

        assert attempt(many_keys(1_000_000)) == (413, "too-large")
        assert attempt(many_keys(3_000)) == (413, "too-large")
        assert attempt(many_keys(2_000)) == (422, "invalid")
        assert attempt(b"{}") == (422, "invalid")
        assert made.client.get("/v1/sites", headers=made.bearer("analyst")).status_code == 200
        large = made.client.post("/v1/tokens", content=many_keys(3_000), headers=made.bearer("operator") | as_json)
        assert large.status_code == 413, "only devices have much to send"


def test_a_body_full_of_faults_causes_few_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[int] = []
    usual = RequestValidationError.errors

    def counted(problem: RequestValidationError) -> Any:
        made_of.append(len(usual(problem)))
        return usual(problem)

    monkeypatch.setattr(RequestValidationError, "errors", counted)
    with bench(tmp_path) as made:
        for body in (many_keys(900_000), b"[" + many_keys(900_000) + b"]", b"[" + 900 * b"{}," + b"{}]", b"[0,0,0]"):
            answer = made.client.post(
                "/v1/readings", content=body, headers=made.bearer("device") | {"Content-Type": "application/json"}
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
            assert "body" in answer.json()["error"]["message"]
    assert len(made_of) == 4
    assert max(made_of) <= 6, "one for each key that is missing in the first reading that is wrong"


def test_what_would_wait_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_context, "MAX_WAITING", 1)
    with bench(tmp_path) as made, ThreadPoolExecutor(2) as crowd:
        context, go_on = made.app.state.context, threading.Event()
        held = [crowd.submit(context.compute, go_on.wait, PATIENCE) for _ in range(2)]
        made.store.readings.add([Reading("hall", "s1", 1, NOW, 5, NOW)])
        try:
            until(lambda: context._room._value == 0)  # noqa: SLF001
            assert made.client.get("/v1/sites/hall/attack", headers=made.bearer("analyst")).status_code == 503
            assert made.client.get("/v1/sites", headers=made.bearer("analyst")).status_code == 200
        finally:
            go_on.set()
        assert [one.result() for one in held] == [True, True]
