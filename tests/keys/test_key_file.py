"""Files of keys: for their owner alone, whole or not there, and refused when anything is not as it should be."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import KeyFileError
from cloakwork.keys import (
    DeviceKind,
    Generation,
    KeyRing,
    load_keys,
    new_keys,
    open_generation,
    revoke,
    save_keys,
)
from tests.keys.conftest import NOW, PLAN


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_of_keys_is_for_its_owner_alone_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen when its bytes go to the disk, with a mask that takes no right away; then its name and its folder."""
    seen: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        told = os.fstat(handle)
        seen.append("folder" if stat.S_ISDIR(told.st_mode) else f"{stat.S_IMODE(told.st_mode):o}")
        sync(handle)

    def renamed(self: Path, target: Path) -> Path:
        seen.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    path = tmp_path / "keys.json"
    before = os.umask(0)
    try:
        save_keys(new_keys("flat"), path)
        assert seen == ["600", "name", "folder"]
        seen.clear()
        open_generation(path, "s07", PLAN, "reading", NOW)
        assert seen == ["600", "name", "folder"]
        save_keys(load_keys(path).export("s07"), tmp_path / "s07.key.json")
    finally:
        os.umask(before)
    assert {file.name: f"{mode(file):o}" for file in tmp_path.iterdir()} == {
        "keys.json": "600",
        "keys.json.lock": "600",
        "s07.key.json": "600",
    }


def test_a_write_that_fails_leaves_the_old_file_and_no_other(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        open_generation(keys, "s07", PLAN, "reading", NOW)
    assert keys.read_bytes() == before
    assert {file.name for file in keys.parent.iterdir()} == {"keys.json", "keys.json.lock"}


@pytest.mark.parametrize("rights", [0o640, 0o604, 0o660, 0o644, 0o666, 0o601])
def test_a_file_that_others_can_get_at_is_refused(keys: Path, rights: int) -> None:
    keys.chmod(rights)
    for refused in (load_keys, lambda path: revoke(path, "s07")):
        with pytest.raises(KeyFileError) as problem:
            refused(keys)
        assert problem.value.values == {"path": str(keys), "mode": rights}
    keys.chmod(0o400)
    assert load_keys(keys).site == "flat"


def test_keys_are_not_written_over(keys: Path) -> None:
    before = keys.read_bytes()
    with pytest.raises(KeyFileError, match="exists"):
        save_keys(new_keys("flat"), keys)
    assert keys.read_bytes() == before
    link = keys.with_name("dangling.json")
    link.symlink_to(keys.with_name("nowhere"))
    with pytest.raises(KeyFileError, match="exists"):
        save_keys(new_keys("flat"), link)


def change(where: str, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of one entry, by its path with dots; None takes it out."""

    def apply(whole: dict[str, Any]) -> None:
        *path, last = (int(part) if part.isdigit() else part for part in where.split("."))
        place: Any = whole
        for part in path:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value

    return apply


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a key file with two generations."""
    path = tmp_path_factory.mktemp("whole") / "keys.json"
    save_keys(new_keys("flat"), path)
    for _ in range(2):
        open_generation(path, "s07", PLAN, "reading", NOW)
    return path.read_text()


@pytest.mark.parametrize(
    ("where", "value", "key"),
    [
        ("v", 1, "v"),
        ("site", "a b", "site"),
        ("exported", 1, "exported"),
        ("devices", [], "devices"),
        ("devices.s07.0.generation", 2**25, "generation"),
        ("devices.s07.0.generation", -1, "generation"),
        ("devices.s07.0.generation", 400_001, "devices"),
        ("devices.s07.0.plan", "ab", "plan"),
        ("devices.s07.0.kind", "other", "kind"),
        ("devices.s07.0.made", -5, "made"),
        ("devices.s07.0.revoked", "now", "revoked"),
        ("devices.s07.1.key", "zz" * 32, "key"),
        ("devices.s07.1.key", "ab" * 31, "key"),
        ("devices.s07.1.key", None, "devices, s07, entry 2"),
        ("devices.s07.1.extra", 1, "devices, s07, entry 2"),
    ],
)
def test_a_file_with_a_wrong_entry_is_refused_without_showing_a_key(
    keys: Path, whole: str, where: str, value: object, key: str
) -> None:
    content = json.loads(whole)
    secrets = [known["key"] for known in content["devices"]["s07"]]
    change(where, value)(content)
    keys.write_text(json.dumps(content))
    with pytest.raises(KeyFileError) as refused:
        load_keys(keys)
    assert refused.value.values == {"path": str(keys), "key": key}
    assert not any(secret[:8] in str(refused.value) for secret in secrets)


@pytest.mark.parametrize(
    "content",
    [b"", b'{"v":1', b"\xff\xfe", b"[" * 100_000, b"[1]", b'{"v":1,"v":1}', b'{"v":1' + b"0" * 5000 + b"}"],
    ids=["empty", "cut off", "no text", "deep", "a list", "a name twice", "a huge number"],
)
def test_a_file_that_is_no_json_object_is_refused(keys: Path, content: bytes) -> None:
    keys.write_bytes(content)
    with pytest.raises(KeyFileError) as refused:
        load_keys(keys)
    assert refused.value.values["path"] == str(keys)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40))
def test_no_damage_at_all_breaks_the_reader(tmp_path: Path, junk: bytes, place: int, length: int) -> None:
    path = tmp_path / "damaged.json"
    path.touch(0o600)
    whole = json.dumps(DAMAGED.as_dict()).encode()
    path.write_bytes(whole[:place] + junk + whole[place + length :])
    try:
        ring = load_keys(path)
    except KeyFileError:
        return
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", ring.site)


DAMAGED = KeyRing("flat", {"s07": (Generation(1, PLAN, DeviceKind.READING, NOW, None, bytes(32)),)})
