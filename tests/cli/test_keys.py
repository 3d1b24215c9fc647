"""`cloakwork keys`: what it says, what it writes, and that it never shows a key."""

import json
import re
import stat
from pathlib import Path

import pytest

from cloakwork.keys import FIRST_SECOND, load_keys, open_generation, revoke
from tests.cli.conftest import SITE, Run

PLAN = "ab" * 32
NOW = FIRST_SECOND + 60 * 400_000


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


@pytest.fixture
def keys(site: Path, run: Run) -> Path:
    path = site.with_name("keys.json")
    assert run("keys", "new", site, "--out", path).code == 0
    return path


def secrets(path: Path) -> list[str]:
    return re.findall(r'"key": "([0-9a-f]{64})"', path.read_text())


def test_new_keys_are_for_the_site_and_for_their_owner_alone(site: Path, run: Run) -> None:
    path = site.with_name("k.json")
    done = run("keys", "new", site, "--out", path)
    assert (done.code, done.out) == (0, "")
    assert load_keys(path).site == "corridor"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"wrote the keys of corridor to {path}" in done.err
    assert "can remove the noise from every reading" in done.err
    assert not any(key in done.err for key in secrets(path))


def test_a_list_says_how_each_device_stands(keys: Path, run: Run) -> None:
    for kind in ("reading", "bench", "reading"):
        open_generation(keys, "s1", PLAN, kind, NOW)
    open_generation(keys, "s2", PLAN, "reading", NOW)
    revoke(keys, "s2", NOW + 60)
    open_generation(keys, "s3", PLAN, "reading", NOW)
    shown = json.loads(run("keys", "list", keys, "--json").out)
    assert [(one["sensor"], one["kind"], one["state"]) for one in shown["devices"]] == [
        ("s1", "reading", "replaced"),
        ("s1", "bench", "in use"),
        ("s1", "reading", "in use"),
        ("s2", "reading", "revoked"),
        ("s3", "reading", "in use"),
    ]
    first = shown["devices"][0]
    assert (first["generation"], first["plan"], first["made"]) == (400_000, PLAN, "2026-10-05T18:40:00Z")
    assert shown["devices"][3]["revoked"] == "2026-10-05T18:41:00Z"
    words = run("keys", "list", keys).out
    for part in ("abababababab ", "replaced", "revoked", "2026-10-05 18:40", "400001"):
        assert part in words
    assert PLAN not in words
    assert not any(key in words + json.dumps(shown) for key in secrets(keys))


def test_an_export_is_written_for_one_sensor(keys: Path, run: Run) -> None:
    opened = [open_generation(keys, "s1", PLAN, "reading", NOW) for _ in range(2)]
    open_generation(keys, "s2", PLAN, "reading", NOW)
    path = keys.with_name("s1.key.json")
    done = run("keys", "export", keys, "--id", "s1", "--out", path)
    assert (done.code, done.out) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.key for one in load_keys(path, exported=True).generations("s1")] == [one.key for one in opened]
    assert "the keys of s1, generations 400000, 400001" in done.err
    assert "and of no other sensor" in done.err
    assert not any(key in done.err for key in secrets(path) + secrets(keys))


def test_revoking_says_what_else_to_do(keys: Path, run: Run) -> None:
    open_generation(keys, "s1", PLAN, "reading", NOW)
    done = run("keys", "revoke", keys, "--id", "s1")
    assert done.code == 0
    assert "revoked s1, generations 400000, at 20" in done.err
    for part in ("Remove the password of s1 at the broker", "Provision a new device for s1", "at most the last 64"):
        assert part in done.out
    again = run("keys", "revoke", keys, "--id", "s1")
    assert (again.code, again.out) == (0, "")
    assert "s1 was revoked already" in again.err
