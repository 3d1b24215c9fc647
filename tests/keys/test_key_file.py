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
    FIRST_SECOND,
    export,
    load_keys,
    load_unveiling_keys,
    new_keys,
    open_generation,
    rotate,
    save_export,
    save_new_keys,
)
from cloakwork.keys import key_file as keyfile

PLAN = "ab" * 32
NOW = FIRST_SECOND + 60 * 400_000


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    save_new_keys(new_keys("flat"), path)
    return path


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
        save_new_keys(new_keys("flat"), path)
        assert seen == ["600", "name", "folder"]
        seen.clear()
        open_generation(path, "s07", PLAN, "reading", NOW)
        assert seen == ["600", "600", "name", "folder"]  # the lock's memory comes first
        save_export(export(load_keys(path), "s07"), tmp_path / "s07.key.json")
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
        rotate(keys, NOW)
    assert keys.read_bytes() == before
    assert {file.name for file in keys.parent.iterdir()} == {"keys.json", "keys.json.lock"}


def test_what_a_power_cut_left_behind_is_in_nobodys_way(keys: Path) -> None:
    keys.with_name(".keys.json.part").write_text("half")
    rotate(keys, NOW)
    assert len(load_keys(keys).masters) == 2
    assert not keys.with_name(".keys.json.part").exists()


def test_a_link_to_the_file_stays_a_link(keys: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(keys)
    first = open_generation(link, "s07", PLAN, "reading", NOW)
    assert link.is_symlink()
    assert open_generation(keys, "s07", PLAN, "reading", NOW).generation == first.generation + 1


@pytest.mark.parametrize("rights", [0o640, 0o604, 0o660, 0o644, 0o666, 0o601])
def test_a_file_that_others_can_get_at_is_refused(keys: Path, rights: int) -> None:
    keys.chmod(rights)
    with pytest.raises(
        KeyFileError, match=rf"others can get at this file \(mode {rights:o}\).* chmod 600 .*keys\.json"
    ):
        load_keys(keys)
    with pytest.raises(KeyFileError, match="keys rotate"):
        open_generation(keys, "s07", PLAN, "reading", NOW)
    keys.chmod(0o400)
    assert load_keys(keys).site == "flat"


def test_keys_are_not_written_over(keys: Path) -> None:
    before = keys.read_bytes()
    with pytest.raises(KeyFileError, match="is there already: give another name, or move it away"):
        save_new_keys(new_keys("flat"), keys)
    assert keys.read_bytes() == before
    link = keys.with_name("dangling.json")
    link.symlink_to(keys.with_name("nowhere"))
    with pytest.raises(KeyFileError, match="is there already"):
        save_new_keys(new_keys("flat"), link)


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


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        ("v", 2, "this release of Cloakwork reads version 1, and no other"),
        ("v", True, "reads version 1"),
        ("v", None, "reads version 1"),
        ("site", "a b", "site: a name has 1 to 64 letters"),
        ("site", 7, "site: a name has"),
        ("site", None, "the file: site missing"),
        ("masters", [], "masters: the first is from generation 0"),
        ("masters", {}, "masters: give a list"),
        ("masters.0", 5, "masters, entry 1: give an object"),
        ("masters.0.from", 3, "the first is from generation 0"),
        ("masters.0.from", -1, "from: give a whole number from 0"),
        ("masters.0.from", 0.0, "from: give a whole number"),
        ("masters.0.from", True, "from: give a whole number"),
        ("masters.0.key", "zz" * 32, "a key is not 64 small hexadecimal digits"),
        ("masters.0.key", "AB" * 32, "a key is not 64 small hexadecimal digits"),
        ("masters.0.key", "ab" * 31, "a key is not 64 small hexadecimal digits"),
        ("masters.0.key", "ab" * 33, "a key is not 64 small hexadecimal digits"),
        ("masters.0.key", 7, "a key is not 64 small hexadecimal digits"),
        ("masters.0.extra", 1, "masters, entry 1: 1 unknown name; allowed are from, key"),
        ("extra", 1, "the file: 1 unknown name; allowed are v, site, masters, devices"),
        ("devices", [], "devices: give an object with a list for each sensor"),
        ("devices.s 7", [], "sensor: a name has 1 to 64"),
        ("devices.s08", [], "devices, s08: each generation is larger than the one before"),
        ("devices.s07", 1, "devices, s07: give a list"),
        ("devices.s07.0.generation", 2**25, "generation: give a whole number from 0 to 33554431"),
        ("devices.s07.0.generation", 400_001, "devices, s07: each generation is larger"),
        ("devices.s07.0.plan", "ab", "plan: the digest of a plan is 64"),
        ("devices.s07.0.kind", "other", "kind is not reading or bench"),
        ("devices.s07.0.kind", [], "kind is not reading or bench"),
        ("devices.s07.0.made", -5, "made: give a whole number"),
        ("devices.s07.0.revoked", "now", "revoked: give a whole number"),
        ("devices.s07.0.revoked", None, "devices, s07, entry 1: revoked missing"),
        ("devices.s07.0.key", "ab" * 32, "devices, s07, entry 1: 1 unknown name"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(keys: Path, where: str, value: object, says: str) -> None:
    for _ in range(2):
        open_generation(keys, "s07", PLAN, "reading", NOW)
    whole = json.loads(keys.read_text())
    secret = whole["masters"][0]["key"]
    change(where, value)(whole)
    keys.write_text(json.dumps(whole))
    with pytest.raises(KeyFileError) as refused:
        load_keys(keys)
    assert re.search(says, str(refused.value))
    assert str(refused.value).startswith(f"{keys}: ")
    assert secret[:8] not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON. Take the last whole copy from a backup"),
        (b'{"v":1', "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"v":1,"v":1}', "a name stands twice in one object"),
        (b'{"v":1' + b"0" * 5000 + b"}", "not valid JSON|reads version 1"),
    ],
)
def test_a_file_that_is_no_json_object_is_refused(keys: Path, content: bytes, says: str) -> None:
    keys.write_bytes(content)
    with pytest.raises(KeyFileError, match=says):
        load_keys(keys)


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"No such file or directory\. Make keys with: cloakwork keys new"):
        load_keys(tmp_path / "none.json")
    with pytest.raises(KeyFileError, match="Is a directory"):
        load_keys(tmp_path)
    with pytest.raises(KeyFileError, match="No such file"):
        rotate(tmp_path / "none.json", NOW)
    assert list(tmp_path.iterdir()) == []


def test_a_very_large_file_is_refused(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyfile, "LARGEST_FILE", 100)
    with pytest.raises(KeyFileError, match="this is no file of keys"):
        load_keys(keys)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40))
def test_no_damage_at_all_breaks_the_reader(tmp_path: Path, junk: bytes, place: int, length: int) -> None:
    path = tmp_path / "damaged.json"
    path.touch(0o600)
    whole = DAMAGED.to_json().encode()
    path.write_bytes(whole[:place] + junk + whole[place + length :])
    try:
        ring = load_keys(path)
    except KeyFileError:
        return
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", ring.site)


DAMAGED = new_keys("flat")


def test_an_export_is_not_taken_for_the_keys_of_the_site(keys: Path, tmp_path: Path) -> None:
    open_generation(keys, "s07", PLAN, "reading", NOW)
    path = tmp_path / "s07.key.json"
    save_export(export(load_keys(keys), "s07"), path)
    with pytest.raises(KeyFileError, match=r"this file has the keys of one sensor\. Give the site's own file of keys"):
        open_generation(path, "s07", PLAN, "reading", NOW)
    whole = json.loads(path.read_text())
    for where, value, says in (
        ("generations", [], "there is at least one"),
        ("generations.0.key", "ab", "64 small hexadecimal"),
        ("generations.0.made", 5, "1 unknown name"),
        ("sensor", "", "sensor: a name"),
    ):
        damaged = json.loads(json.dumps(whole))
        change(where, value)(damaged)
        path.write_text(json.dumps(damaged))
        with pytest.raises(KeyFileError, match=says):
            load_unveiling_keys(path)
