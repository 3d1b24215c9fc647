"""`cloakwork token`: secrets of devices and people, made, listed and revoked."""

from pathlib import Path

from cloakwork.collect import open_store
from tests.cli.conftest import Run


def test_a_token_is_made_listed_and_revoked(succeed: Run, run: Run, tmp_path: Path) -> None:
    store = tmp_path / "new.db"
    made = succeed(
        "token", "new", "--role", "device", "--site", "hall", "--id", "s1", "--label", "door", "--store", store
    )
    secret = made.out.strip()
    assert secret.startswith("cw_")
    assert made.out == secret + "\n", "a script can take it as it is"
    assert secret not in made.err
    assert "send the readings of its own sensor, and nothing else" in made.err
    assert store.stat().st_mode & 0o077 == 0
    listed = succeed("token", "list", "--store", store)
    assert secret not in listed.said
    for word in ("device", "hall", "s1", "door", "works"):
        assert word in listed.out
    [one] = succeed("token", "list", "--json", "--store", store).values["tokens"]
    assert (one["role"], one["site"], one["sensor"], one["revoked"]) == ("device", "hall", "s1", None)
    with open_store(str(store)) as opened:
        assert opened.tokens.check(secret) is not None
        succeed("token", "revoke", one["id"], "--store", store)
        assert opened.tokens.check(secret) is None
    assert "revoked" in succeed("token", "list", "--store", store).out
    nobody = run("token", "revoke", secret, "--store", store)
    assert nobody.code == 2
    assert "there is no such token" in nobody.err
