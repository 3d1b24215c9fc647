"""One-time codes sign in once, and a session ends together with its streams."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloakwork.collect.api.access_control import CODE_S, MAX_CODES, AccessControl
from cloakwork.collect.storage import Role, Store
from cloakwork.errors import ApiError
from tests.collect.api_kit import Bench, bench


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


def test_a_code_signs_in_once_with_the_token_that_it_was_made_for(made: Bench) -> None:
    code = made.code("analyst")
    first, second = (made.client.post("/v1/session", json={"code": code}) for _ in range(2))
    assert (first.status_code, first.json()) == (200, {"role": "analyst", "site": None, "label": "an analyst"})
    assert "httponly" in first.headers["set-cookie"].lower()
    assert code not in first.headers["set-cookie"]
    assert (second.status_code, second.json()["error"]["code"]) == (401, "no-token")
    assert made.client.get("/v1/sites").status_code == 200
    made.client.cookies.clear()
    assert made.client.get("/v1/sites", headers={"Authorization": f"Bearer {code}"}).status_code == 401


def test_a_code_of_a_token_that_was_revoked_or_of_a_device_opens_nothing(made: Bench) -> None:
    code, device = made.code("analyst"), made.code("device")
    made.store.tokens.revoke(made.ids["analyst"])
    assert made.client.post("/v1/session", json={"code": code}).status_code == 401
    assert made.client.post("/v1/session", json={"code": device}).status_code == 403


def test_codes_are_kept_as_hashes_expire_and_are_few(sqlite_store: Store) -> None:
    now = [0.0]
    access = AccessControl(sqlite_store, clock=lambda: now[0])
    token, _ = sqlite_store.tokens.create(Role.ANALYST)

    def opens(code: str) -> bool:
        try:
            return access.redeem(code).token == token
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
