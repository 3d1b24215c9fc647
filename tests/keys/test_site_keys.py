"""The trusted party's keys: never lost, never shared, and no generation ever twice."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import KeyFileError
from cloakwork.keys import (
    load_keys,
    new_keys,
    open_generation,
    revoke,
    save_keys,
)
from tests.forking import python
from tests.keys.conftest import NOW, PLAN


def test_what_was_written_is_read_back(keys: Path) -> None:
    first = open_generation(keys, "s07", PLAN, "reading", NOW)
    second = open_generation(keys, "s08", PLAN, "bench", NOW + 120)
    revoke(keys, "s07", NOW + 180)
    assert json.loads(keys.read_text()) == {
        "v": 2,
        "site": "flat",
        "exported": False,
        "devices": {
            "s07": [
                {"generation": 400_000, "plan": PLAN, "kind": "reading", "made": NOW, "revoked": NOW + 180}
                | {"key": first.key.hex()},
            ],
            "s08": [
                {"generation": 400_002, "plan": PLAN, "kind": "bench", "made": NOW + 120, "revoked": None}
                | {"key": second.key.hex()},
            ],
        },
    }
    assert load_keys(keys).generations("s07") == (replace(first, revoked=NOW + 180),)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "open", "open", "back up", "restore"]),
        st.sampled_from(["s1", "s2"]),
        st.integers(-300, 300),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_no_key_comes_twice_and_generations_grow(tmp_path: Path, steps: list[Any]) -> None:
    """Whatever the order of clocks that jump and restored files."""
    path = tmp_path / "k.json"
    path.unlink(missing_ok=True)
    save_keys(new_keys("flat"), path)
    backup, now, seen = path.read_bytes(), NOW, []
    for what, sensor, jump in steps:
        now += jump
        if what == "back up":
            backup = path.read_bytes()
        elif what == "restore":
            path.write_bytes(backup)
        else:
            before = load_keys(path).devices.get(sensor, ())
            opened = open_generation(path, sensor, PLAN, "reading", now)
            assert all(opened.number > known.number for known in before)
            seen.append(opened.key)
    assert len(set(seen)) == len(seen)


OPENER = """
import sys
from cloakwork.keys import open_generation
print("ready", flush=True)
sys.stdin.readline()
for _ in range({count}):
    print(open_generation({path!r}, "s07", "ab" * 32, "reading").number, flush=True)
"""


def opener(path: Path, count: int) -> "subprocess.Popen[str]":
    code = OPENER.format(count=count, path=str(path))
    return python(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def start(*processes: "subprocess.Popen[str]") -> None:
    """Let all of them go at the same moment."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def test_two_processes_at_once_never_get_the_same_generation(keys: Path) -> None:
    processes = [opener(keys, 30) for _ in range(2)]
    start(*processes)
    numbers = [int(line) for process in processes for line in process.communicate()[0].split()]
    assert len(numbers) == len(set(numbers)) == 60
    assert sorted(numbers) == [one.number for one in load_keys(keys).generations("s07")]


def test_a_generation_that_was_handed_out_survives_a_kill(keys: Path) -> None:
    with opener(keys, 100_000) as process:
        start(process)
        assert process.stdout is not None
        numbers = [int(process.stdout.readline()) for _ in range(10)]
        process.kill()
        numbers += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    known = {one.number for one in load_keys(keys).generations("s07")}
    assert set(numbers) <= known
    assert open_generation(keys, "s07", PLAN, "reading").number > max(numbers)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("s 7", PLAN, "reading"), "sensor"),
        (("", PLAN, "reading"), "sensor"),
        (("s07", "abc", "reading"), "plan"),
        (("s07", PLAN, "test"), "kind"),
    ],
)
def test_a_generation_for_something_impossible_is_refused(
    keys: Path, arguments: tuple[str, str, str], key: str
) -> None:
    before = keys.read_bytes()
    with pytest.raises(KeyFileError) as problem:
        open_generation(keys, *arguments, NOW)
    assert problem.value.values["key"] == key
    assert keys.read_bytes() == before


def test_a_generation_is_not_opened_in_the_keys_of_another_site(keys: Path) -> None:
    with pytest.raises(KeyFileError) as problem:
        open_generation(keys, "s07", PLAN, "reading", NOW, site="hall")
    assert problem.value.values == {"path": str(keys), "site": "flat", "expected": "hall"}
    assert open_generation(keys, "s07", PLAN, "reading", NOW, site="flat").number == 400_000


def test_revoking_marks_what_is_there_and_not_what_comes_after(keys: Path) -> None:
    open_generation(keys, "s07", PLAN, "reading", NOW)
    revoke(keys, "s07", NOW + 100)
    open_generation(keys, "s07", PLAN, "reading", NOW + 200)
    assert [one.revoked for one in load_keys(keys).generations("s07")] == [NOW + 100, None]
    revoke(keys, "s07", NOW + 300)
    assert [one.revoked for one in load_keys(keys).generations("s07")] == [NOW + 100, NOW + 300]
    with pytest.raises(KeyFileError) as problem:
        revoke(keys, "s99", NOW)
    assert problem.value.values["sensor"] == "s99"


def test_an_export_has_the_keys_of_one_sensor_and_nothing_of_another(keys: Path, tmp_path: Path) -> None:
    own = [open_generation(keys, "s07", PLAN, kind, NOW) for kind in ("reading", "bench")]
    other = open_generation(keys, "s08", PLAN, "reading", NOW)
    ring = revoke(keys, "s07", NOW + 5)
    path = tmp_path / "s07.key.json"
    save_keys(ring.export("s07"), path)
    assert "s08" not in path.read_text()
    assert other.key.hex() not in path.read_text()
    found = load_keys(path, exported=True)
    assert found.devices == {"s07": tuple(replace(known, revoked=NOW + 5) for known in own)}
    assert (found.site, found.sensors, found.exported) == ("flat", ("s07",), True)
    with pytest.raises(KeyFileError, match="exists"):
        save_keys(ring.export("s07"), path)


def test_no_text_of_any_object_shows_a_key(keys: Path) -> None:
    opened = open_generation(keys, "s07", PLAN, "reading", NOW)
    ring = load_keys(keys)
    shown = f"{opened!r} {opened} {ring!r} {ring.export('s07')!r}"
    assert repr(opened.key)[2:10] not in shown
    assert opened.key.hex()[:8] not in shown
    assert "number=400000" in shown
