"""Every route for every role: a route that is missing in this table fails the first test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from cloakwork.collect.api import Truth, event_streams
from cloakwork.collect.api.access_control import GuardedRoute
from cloakwork.collect.api.error_responses import ERROR_SCHEMA
from tests.collect.api_kit import NOW, Bench, bench, error_code, reading, result

ROLES = ("anonymous", "device", "analyst", "operator")
READERS = {"analyst", "operator"}
EVERYONE = set(ROLES)
RULES: dict[tuple[str, str], set[str]] = {
    ("GET", "/"): EVERYONE,
    ("GET", "/static/{name}"): EVERYONE,
    ("GET", "/healthz"): EVERYONE,
    ("POST", "/v1/session"): EVERYONE,
    ("GET", "/openapi.json"): EVERYONE - {"anonymous"},
    ("POST", "/v1/readings"): {"device"},
    ("GET", "/v1/sites"): READERS,
    ("GET", "/v1/sites/{site}"): READERS,
    ("GET", "/v1/sites/{site}/latest"): READERS,
    ("GET", "/v1/sites/{site}/results"): READERS,
    ("GET", "/v1/sites/{site}/results/{time}"): READERS,
    ("GET", "/v1/sites/{site}/readings"): READERS,
    ("GET", "/v1/sites/{site}/health"): READERS,
    ("GET", "/v1/sites/{site}/attack"): READERS,
    ("GET", "/v1/sites/{site}/timeline"): READERS,
    ("GET", "/v1/events"): READERS,
    ("GET", "/metrics"): READERS,
    ("GET", "/v1/session"): READERS,
    ("DELETE", "/v1/session"): READERS,
    ("GET", "/v1/tokens"): {"operator"},
    ("POST", "/v1/tokens"): {"operator"},
    ("DELETE", "/v1/tokens/{token}"): {"operator"},
    ("POST", "/v1/sites/{site}/erase"): {"operator"},
}
BODIES: dict[tuple[str, str], object] = {
    ("POST", "/v1/readings"): reading(),
    ("POST", "/v1/tokens"): {"role": "analyst"},
    ("POST", "/v1/sites/{site}/erase"): {"sensor": "s4"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch, bench(tmp_path_factory.mktemp("roles")) as one:
        patch.setattr(event_streams, "STREAM_S", 0.01)
        one.save(result())
        yield one


def status_of(made: Bench, method: str, path: str, who: str) -> int:
    filled = path.format(site="hall", time=NOW, token="0" * 12, name="app.js")
    body = BODIES.get((method, path))
    if path == "/v1/session" and method == "POST":
        body = {"token": made.secrets.get(who, "cw_" + 43 * "A")}
    made.client.cookies.clear()
    return made.client.request(method, filled, headers=made.bearer(who), json=body).status_code


def test_every_route_is_in_the_table_and_guarded(made: Bench) -> None:
    found = {
        (method, route.path)
        for route in made.app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert found == set(RULES)
    assert all(isinstance(route, GuardedRoute) for route in made.app.routes), "a route that is not behind the gate"


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize(("method", "path"), list(RULES))
def test_a_role_can_use_its_routes_and_no_others(made: Bench, method: str, path: str, who: str) -> None:
    status = status_of(made, method, path, who)
    if path == "/v1/session" and method == "POST":
        assert status == {"anonymous": 401, "device": 403}.get(who, 200)
    elif who not in RULES[method, path]:
        assert status == (401 if who == "anonymous" else 403)
    elif path == "/v1/tokens/{token}":
        assert status == 404  # it got as far as looking for it
    else:
        assert 200 <= status < 300


@pytest.mark.parametrize("path", [path for method, path in RULES if method == "GET" and "{site}" in path])
def test_a_token_for_one_site_does_not_see_another(made: Bench, path: str) -> None:
    missing, other = (made.ask(path.format(site=site, time=NOW), "yard") for site in ("nowhere", "hall"))
    assert other.status_code == missing.status_code == 404
    assert other.json() == missing.json(), "whether there is such a site must not show"


def test_a_token_for_one_site_lists_and_follows_that_site_only(made: Bench) -> None:
    assert [site["name"] for site in made.get("/v1/sites", "yard")] == ["yard"]
    assert made.ask("/v1/events?site=hall", "yard").status_code == 404
    assert made.ask("/v1/events", "yard").status_code == 200


def test_metrics_need_a_token_for_all_sites(made: Bench) -> None:
    refused = made.ask("/metrics", "yard")
    assert error_code(refused) == (403, "forbidden")
    assert "hall" not in refused.text
    assert 'site="hall"' in made.ask("/metrics").text


def test_a_route_without_roles_cannot_be_made() -> None:
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(TypeError, match="no roles"):
        router.get("/open")(lambda: None)


def test_the_document_lists_roles_and_errors_of_every_route(made: Bench) -> None:
    document = made.get("/openapi.json", "device")
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}
    hidden = {"/", "/static/{name}", "/openapi.json"}
    listed = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert listed == {(method, path) for method, path in RULES if path not in hidden}
    for method, path in listed:
        operation = document["paths"][path][method.lower()]
        assert operation["description"], path
        assert operation["tags"], path
        assert set(operation["x-roles"]) == RULES[method, path] - {"anonymous"} or RULES[method, path] == EVERYONE
        assert ("security" in operation) is bool(operation["x-roles"])
        expected = {"500"} | ({"401", "403"} if operation["x-roles"] else set())
        expected |= {"413", "415", "422"} if "requestBody" in operation else set()
        assert expected <= set(operation["responses"])
        for status, failure in operation["responses"].items():
            if status >= "400":
                assert failure["content"]["application/json"]["schema"] == ERROR_SCHEMA


def test_the_operator_of_one_site_manages_the_tokens_of_that_site_only(made: Bench) -> None:
    operator = made.post("/v1/tokens", {"role": "operator", "site": "yard"}, "operator")
    own, client = {"Authorization": f"Bearer {operator.json()['secret']}"}, made.client
    assert {token["site"] for token in client.get("/v1/tokens", headers=own).json()["items"]} == {"yard"}
    assert client.delete(f"/v1/tokens/{made.ids['analyst']}", headers=own).status_code == 404
    assert client.post("/v1/tokens", json={"role": "operator"}, headers=own).status_code == 403
    assert client.post("/v1/tokens", json={"role": "operator", "site": "hall"}, headers=own).status_code == 404
    device = client.post("/v1/tokens", json={"role": "device", "site": "yard", "sensor": "s1"}, headers=own)
    assert device.status_code == 201
    assert client.delete(f"/v1/tokens/{device.json()['id']}", headers=own).status_code == 204
    assert client.post("/v1/sites/hall/erase", json={"everything": True}, headers=own).status_code == 404


def test_a_new_token_works_and_its_secret_is_shown_once(made: Bench) -> None:
    for body, expected in (
        ({"role": "device", "site": "hall", "sensor": "s9"}, (422, "unknown-sensor")),
        ({"role": "device", "site": "nowhere", "sensor": "s1"}, (404, "not-found")),
        ({"role": "device", "site": "hall"}, (422, "invalid")),
    ):
        assert error_code(made.post("/v1/tokens", body, "operator")) == expected
    answer = made.post("/v1/tokens", {"role": "analyst", "label": "wall screen"}, "operator")
    secret = answer.json()["secret"]
    assert answer.headers["cache-control"] == "no-store"
    assert made.client.get("/v1/sites", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    listed = made.ask("/v1/tokens", "operator").text
    assert "wall screen" in listed
    assert secret not in listed


def test_the_truth_of_a_simulation_is_for_readers_and_there_is_none_without_one(made: Bench, tmp_path: Path) -> None:
    def simulated(site: str, time: int | None) -> Truth | None:
        return Truth(time or NOW, [(0.25,)]) if site == "hall" else None

    path = f"/v1/sites/hall/truth?time={NOW + 5}"
    assert made.ask(path, "operator").status_code == 404
    with bench(tmp_path, simulation=simulated) as demo:
        statuses = {who: demo.ask(path, who).status_code for who in (*ROLES, "yard")}
        assert statuses == {"anonymous": 401, "device": 403, "analyst": 200, "operator": 200, "yard": 404}
        assert demo.get(path) == {"time": NOW + 5, "sources": [{"at": [0.25]}]}
        assert demo.ask("/v1/sites/yard/truth").status_code == 404
