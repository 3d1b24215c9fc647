"""Attack: every caller tries every route of a running collector."""

import http.client
import json
from pathlib import Path

from cloakwork.collect.storage import Role, open_store
from tests.attacks.conftest import Attack
from tests.attacks.test_slow_requests import collector
from tests.collect.test_api_roles import BODIES, RULES
from tests.waiting import PATIENCE

FOR_ALL_SITES = {("GET", "/metrics"), ("POST", "/v1/tokens")}  # the body asks for a token for all sites
OTHER_SITE, REVOKED, UNKNOWN = "other site", "revoked", "unknown"


def status(port: int, method: str, path: str, headers: dict[str, str], body: object) -> int:
    """The status of an answer; its body is not read, since a stream has no end."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        link.request(method, path, None if body is None else json.dumps(body), headers)
        return link.getresponse().status
    finally:
        link.close()


def credentials(url: str, port: int) -> dict[str, tuple[str, dict[str, str]]]:
    """The role and the headers of each caller: by token, by session, with too small a token, or with none."""
    with open_store(url) as store:
        made = {
            role.value: store.tokens.create(role, *(("hall", "s1") if role is Role.DEVICE else ())) for role in Role
        }
        other = store.tokens.create(Role.OPERATOR, "yard")
        gone = store.tokens.create(Role.OPERATOR)
        store.tokens.revoke(gone.token.id)
    callers = {name: (name, {"Authorization": f"Bearer {new.secret}"}) for name, new in made.items()}
    callers |= {
        OTHER_SITE: ("", {"Authorization": f"Bearer {other.secret}"}),
        REVOKED: ("", {"Authorization": f"Bearer {gone.secret}"}),
        UNKNOWN: ("", {"Authorization": f"Bearer cw_{'x' * 43}"}),
        "anonymous": ("", {}),
        "anonymous with a cookie": ("", {"Cookie": f"cloakwork={'x' * 43}"}),
    }
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    link.request(
        "POST", "/v1/session", json.dumps({"token": made["operator"].secret}), {"Content-Type": "application/json"}
    )
    cookie = (link.getresponse().getheader("Set-Cookie") or "").partition(";")[0]
    link.close()
    callers["forged by another website"] = ("reads", {"Cookie": cookie, "Sec-Fetch-Site": "cross-site"})
    return callers


def may(caller: str, role: str, method: str, path: str) -> bool:
    """Whether a caller may get more than a refusal, by a table that is written by hand."""
    allowed = RULES[method, path]
    if "anonymous" in allowed:
        return True
    if role == "reads":
        return method == "GET" and "operator" in allowed
    if caller == OTHER_SITE:
        return "operator" in allowed and "{site}" not in path and (method, path) not in FOR_ALL_SITES
    return role in allowed


def test_no_caller_gets_further_than_its_role(attack: Attack, tmp_path: Path) -> None:
    """Ten kinds of callers make every request that the collector's own document lists, and those of the page.

    Claim: a caller whose role may not use a route, or not for this site, is refused.
    """
    with collector(tmp_path) as (port, _):
        callers = credentials(f"sqlite:///{tmp_path / 'store.db'}", port)
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        link.request("GET", "/openapi.json", headers=callers["operator"][1])
        listed = json.load(link.getresponse())["paths"]
        link.close()
        routes = {(method.upper(), path) for path, operations in listed.items() for method in operations} | set(RULES)
        for method, path in sorted(routes):
            filled = path.format(site="hall", time=1, token="0" * 12, name="none.js")
            for caller, (role, headers) in callers.items():
                body = BODIES.get((method, path), {} if method == "POST" else None)
                own = headers | {"Content-Type": "application/json"}
                found = status(port, method, filled, own, body)
                refused = found in {401, 403, 429} or (found == 404 and "{site}" in path)
                attack.expect(refused or may(caller, role, method, path))
                if may(caller, role, method, path) and "anonymous" not in RULES[method, path]:
                    assert found not in {401, 403}, (method, path, caller)
