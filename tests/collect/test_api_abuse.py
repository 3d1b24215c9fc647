"""Abuse: strangers, guessers, and clients that take more than their share."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.exceptions import RequestValidationError
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from cloakwork.collect.api import ApiSettings, route_context, routes_results
from cloakwork.collect.api.capacity import WorkerThreads
from cloakwork.collect.storage import Reading, Token
from tests.collect.api_kit import NOW, PLAIN, bench, reading, result, served
from tests.waiting import PATIENCE, until


def test_wrong_tokens_have_to_wait_and_good_ones_from_the_same_address_do_not(tmp_path: Path) -> None:
    with bench(tmp_path, ApiSettings(failure_rate=0.001, failure_burst=3.0, token_s=0.0)) as made:

        def attempt(secret: str) -> int:
            return made.client.get("/v1/sites", headers={"Authorization": f"Bearer {secret}"}).status_code

        assert [attempt(f"cw_{k:043d}") for k in range(10)] == [401] * 3 + [429] * 7
        login = made.client.post("/v1/session", json={"token": f"cw_{0:043d}"})
        assert (login.status_code, login.json()["error"]["code"]) == (429, "too-many-failures")
        assert int(login.headers["retry-after"]) > 1
        assert attempt(made.secrets["analyst"]) == 200, "although it was never seen before"
        assert made.client.post("/v1/readings", json=reading(), headers=made.bearer("device")).status_code == 200
        assert made.client.post("/v1/session", json={"token": made.secrets["operator"]}).status_code == 200


def test_a_flood_of_guesses_delays_only_other_guesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path, ApiSettings(failure_rate=0.001, failure_burst=1.0)) as (made, address):
        release, usual = threading.Event(), made.store.tokens.check

        def look(secret: str) -> Token | None:
            if secret.startswith("cw_000"):
                release.wait(PATIENCE)
            return usual(secret)

        def guess(number: int) -> int:
            wrong = {"Authorization": f"Bearer cw_{number:043d}"}
            return httpx2.get(f"{address}/v1/sites", headers=wrong, verify=PLAIN, timeout=PATIENCE).status_code

        assert guess(0) == 401
        monkeypatch.setattr(made.store.tokens, "check", look)
        with ThreadPoolExecutor(40) as crowd:
            guesses = [crowd.submit(guess, k) for k in range(40)]
            until(lambda: sum(one.done() for one in guesses) >= 31)
            try:
                with httpx2.Client(
                    transport=httpx2.HTTPTransport(verify=PLAIN, local_address="127.0.0.2")
                ) as neighbour:
                    heard = neighbour.get(f"{address}/v1/sites", headers=made.bearer("analyst"), timeout=PATIENCE)
                assert heard.status_code == 200, "threads for reading are free"
            finally:
                release.set()
            assert Counter(one.result() for one in guesses) == {429: 9, 503: 31}


def many_keys(size: int) -> bytes:
    keys = ",".join(f'"{k:x}":0' for k in range(size // 9))
    return f"{{{keys}}}".encode()


def test_a_stranger_can_send_neither_much_nor_often(tmp_path: Path) -> None:
    as_json = {"Content-Type": "application/json"}
    with bench(tmp_path, ApiSettings(sign_in_rate=0.001, sign_in_burst=6.0)) as made:

        def attempt(body: bytes) -> tuple[int, str]:
            answer = made.client.post("/v1/session", content=body, headers=as_json)
            return answer.status_code, answer.json()["error"]["code"]

        assert attempt(many_keys(1_000_000)) == (413, "too-large")
        assert attempt(many_keys(3_000)) == (413, "too-large")
        assert attempt(many_keys(2_000)) == (422, "invalid")
        assert [attempt(b"{}")[0] for _ in range(3)] == [422] * 3
        assert attempt(b"{}") == (429, "too-many")
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
    with bench(tmp_path, ApiSettings(device_burst=1e6)) as made:
        for body in (many_keys(900_000), b"[" + many_keys(900_000) + b"]", b"[" + 900 * b"{}," + b"{}]", b"[0,0,0]"):
            answer = made.client.post(
                "/v1/readings", content=body, headers=made.bearer("device") | {"Content-Type": "application/json"}
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
            assert "body" in answer.json()["error"]["message"]
    assert len(made_of) == 4
    assert max(made_of) <= 6, "one for each key that is missing in the first reading that is wrong"


def test_a_device_is_charged_before_its_body_is_parsed(tmp_path: Path) -> None:
    with bench(tmp_path, ApiSettings(device_rate=0.001, device_burst=100.0)) as made:

        def send(body: bytes) -> int:
            headers = made.bearer("device") | {"Content-Type": "application/json"}
            return made.client.post("/v1/readings", content=body, headers=headers).status_code

        assert send(many_keys(250_000)) == 422  # of 128 bytes for each of 20 readings: about 97 requests
        assert [send(b"{}") for _ in range(6)][-1] == 429


def test_pages_count_by_their_length(tmp_path: Path) -> None:
    with bench(tmp_path, ApiSettings(reader_rate=0.001, reader_burst=50.0, rows_per_request=50)) as made:

        def page(what: str, limit: int) -> int:
            return made.client.get(f"/v1/sites/hall/{what}?limit={limit}", headers=made.bearer("analyst")).status_code

        assert [page("results", 1000), page("readings", 1000), page("results", 1000)] == [200, 200, 429]
        assert page("results", 50) == 200


@pytest.mark.parametrize(
    ("path", "name"), [("results?limit=1000", "results"), ("readings", "readings"), ("attack", "attack_until")]
)
def test_long_responses_of_one_token_are_made_one_at_a_time_and_off_the_event_loop(
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
        assert most[0] == 1
        assert all(one.startswith("AnyIO worker thread") for one in threads)
        assert len(threads) == 6


def test_heavy_work_uses_one_core() -> None:
    def threads() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    work = WorkerThreads(writes=1, reads=1, on_call=lambda *_: None)
    before = threads()
    assert asyncio.run(work.heavy(threads)) == {1}
    assert threads() == before
