"""Tokens, sessions and one-time codes: their rights, their cookies, and how they end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloakwork.collect.api import access_control
from cloakwork.collect.api.access_control import CODE_S, MAX_CODES, SESSION_S, AccessControl, Caller
from cloakwork.collect.storage import Role, Store
from cloakwork.errors import ApiError
from tests.collect.api_kit import Bench, bench, error_code

CHANGE = {"X-Cloakwork": "1"}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


def log_in(made: Bench, who: str = "operator", **headers: str) -> str:
    """The session's cookie; the client has it too."""
    made.client.cookies.clear()
    answer = made.client.post("/v1/session", json={"token": made.secrets[who]}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"]


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(made: Bench) -> None:
    cookie = log_in(made)
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert {"httponly", "samesite=strict", "path=/", "max-age=43200"} <= parts
    assert made.secrets["operator"] not in cookie
    assert "domain" not in cookie.lower()


def test_with_tls_the_cookie_travels_by_https_only(tmp_path: Path) -> None:
    with bench(tmp_path, proxied=True) as made:
        cookie = log_in(made)
        assert cookie.startswith("__Host-cloakwork=")
        assert "; Secure" in cookie
        answer = made.client.get("/v1/sites", headers={"Cookie": cookie.partition(";")[0]})
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"].startswith("max-age=")


@pytest.mark.parametrize(
    ("below", "path"),
    [("/api/hassio_ingress/a-B_1", "/api/hassio_ingress/a-B_1/"), ("/x; Domain=org", "/"), ("//host", "/"), ("x", "/")],
)
def test_below_home_assistant_other_pages_of_the_origin_do_not_get_the_cookie(
    made: Bench, below: str, path: str
) -> None:
    assert f"; Path={path};" in log_in(made, **{"X-Ingress-Path": below})


@pytest.mark.parametrize("headers", [{}, {"X-Cloakwork": "0"}, CHANGE | {"Sec-Fetch-Site": "cross-site"}])
def test_a_change_by_cookie_needs_the_header_that_other_sites_cannot_send(made: Bench, headers: dict[str, str]) -> None:
    log_in(made)
    for method, path, body in (
        ("POST", "/v1/tokens", {"role": "operator"}),
        ("DELETE", f"/v1/tokens/{made.ids['device']}", None),
        ("POST", "/v1/sites/hall/erase", {"everything": True}),
        ("DELETE", "/v1/session", None),
    ):
        assert error_code(made.client.request(method, path, json=body, headers=headers)) == (403, "forged"), path
    assert made.client.post("/v1/tokens", json={"role": "analyst"}, headers=CHANGE).status_code == 201
    assert made.store.tokens.check(made.secrets["device"]) is not None


def test_a_form_of_another_site_cannot_log_anyone_in(made: Bench) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = made.client.post(
            "/v1/session", content=f'{{"token":"{made.secrets["analyst"]}"}}', headers={"Content-Type": kind}
        )
        assert answer.status_code == 415
        assert "set-cookie" not in answer.headers


def test_logging_out_ends_the_session_and_not_the_token(made: Bench) -> None:
    value = log_in(made).partition(";")[0]
    answer = made.client.delete("/v1/session", headers=CHANGE)
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    made.client.cookies.clear()
    assert made.client.get("/v1/sites", headers={"Cookie": value}).status_code == 401
    assert made.ask("/v1/sites", "operator").status_code == 200


def test_a_revoked_token_ends_at_once_and_so_do_its_sessions_and_codes(made: Bench) -> None:
    cookie, code = log_in(made, "analyst").partition(";")[0], made.code("analyst")
    made.client.cookies.clear()

    def statuses() -> list[int]:
        headers = (made.bearer("analyst"), {"Cookie": cookie})
        return [made.client.get("/v1/sites", headers=one).status_code for one in headers]

    assert statuses() == [200, 200]
    gone = made.client.delete(f"/v1/tokens/{made.ids['analyst']}", headers=made.bearer("operator"))
    assert gone.status_code == 204
    assert statuses() == [401, 401]
    for credentials in ({"token": made.secrets["analyst"]}, {"code": code}):
        assert made.client.post("/v1/session", json=credentials).status_code == 401


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer cw_short", "cw_x", "Bearer \u00ff"])
def test_an_invalid_token_opens_nothing(made: Bench, header: str) -> None:
    answer = made.client.get("/v1/sites", headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_code_signs_in_once_with_the_token_that_it_was_made_for(made: Bench) -> None:
    code = made.code("analyst")
    first, second = (made.client.post("/v1/session", json={"code": code}) for _ in range(2))
    assert (first.status_code, first.json()["label"]) == (200, "an analyst")
    assert code not in first.headers["set-cookie"]
    assert error_code(second) == (401, "no-token")
    assert made.client.get("/v1/sites").status_code == 200
    made.client.cookies.clear()
    assert made.client.get("/v1/sites", headers={"Authorization": f"Bearer {code}"}).status_code == 401
    assert made.client.post("/v1/session", json={"code": made.code("device")}).status_code == 403


def test_codes_are_kept_as_hashes_expire_and_are_few(sqlite_store: Store) -> None:
    now = [0.0]
    access = AccessControl(sqlite_store, clock=lambda: now[0])
    token, _ = sqlite_store.tokens.create(Role.ANALYST)

    def opens(code: str) -> bool:
        try:
            return access.sign_in(code=code) == token
        except ApiError:
            return False

    early, late = access.make_code(token), access.make_code(token)
    assert not any(text in repr(vars(access)) for text in (early, late))
    now[0] = CODE_S - 1
    assert [opens(early), opens(early)] == [True, False]
    now[0] = CODE_S
    assert not opens(late)
    first, *others = (access.make_code(token) for _ in range(MAX_CODES + 1))
    assert not opens(first)
    assert all(opens(code) for code in others)


def test_sessions_are_kept_as_hashes_end_and_are_few(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_control, "MAX_SESSIONS", 5)
    monkeypatch.setattr(access_control, "MAX_SESSIONS_PER_TOKEN", 2)
    now = [0.0]
    access = AccessControl(sqlite_store, clock=lambda: now[0])
    tokens = [sqlite_store.tokens.create(Role.ANALYST).token for _ in range(5)]

    def is_open(text: str) -> bool:
        return access.is_valid(Caller(tokens[0], access_control._hash(text)))  # noqa: SLF001

    first, second, third = (access.begin_session(tokens[0]) for _ in range(3))
    assert first not in repr(vars(access))
    assert [is_open(text) for text in (first, second, third)] == [False, True, True]
    others = [access.begin_session(token) for token in tokens[1:]]
    assert [is_open(text) for text in (second, third, *others)] == [False, *[True] * 5], "the oldest of all has ended"
    now[0] = SESSION_S
    assert not any(is_open(text) for text in (third, *others))
    again = access.begin_session(tokens[0])
    assert is_open(again)
    sqlite_store.tokens.revoke(tokens[0].id)
    assert not is_open(again)
