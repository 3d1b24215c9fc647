"""Abuse: bodies that cost a lot to read, and requests that take long to answer."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.exceptions import RequestValidationError
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from cloakwork.collect.api import route_context, routes_results
from cloakwork.collect.storage import Reading
from tests.collect.api_kit import NOW, PLAIN, bench, result, served
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


@pytest.mark.parametrize(
    ("path", "name"), [("results?limit=1000", "results"), ("readings", "readings"), ("attack", "attack_until")]
)
def test_long_responses_are_made_off_the_event_loop_and_attacks_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    with served(tmp_path) as (made, address):
        made.store.readings.add([Reading("hall", "s1", k, NOW + k, 5, NOW) for k in range(3)])
        made.store.results.save([result(NOW + k) for k in range(3)])
        threads: list[str] = []
        busy, most, lock = [0], [0], threading.Lock()

        def watched_call(usual: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                with lock:
                    busy[0] += 1
                    most[0] = max(most[0], busy[0])
                time.sleep(0.02)
                try:
                    return usual(*args, **options)
                finally:
                    with lock:
                        busy[0] -= 1

            return call

        def written(body: Any) -> Any:
            threads.append(threading.current_thread().name)
            return usual_json(body)

        usual_json = route_context.json_response
        for module in (route_context, routes_results):
            monkeypatch.setattr(module, "json_response", written)
        attacks = made.app.state.context.attacks
        part = attacks if name == "attack_until" else getattr(made.store, name)
        method = name if name == "attack_until" else "page"
        monkeypatch.setattr(part, method, watched_call(getattr(part, method)))
        headers = made.bearer("analyst")
        with ThreadPoolExecutor(6) as crowd:
            asked = [
                crowd.submit(
                    httpx2.get, f"{address}/v1/sites/hall/{path}", headers=headers, verify=PLAIN, timeout=PATIENCE
                )
                for _ in range(6)
            ]
            assert [one.result().status_code for one in asked] == [200] * 6
        assert most[0] == 1 or name != "attack_until"
        assert all(one.startswith("AnyIO worker thread") for one in threads)
        assert len(threads) == 6


def test_heavy_work_uses_one_core(tmp_path: Path) -> None:
    def threads() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    before = threads()
    with bench(tmp_path) as made:
        assert made.app.state.context.compute(threads) == {1}
    assert threads() == before


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
