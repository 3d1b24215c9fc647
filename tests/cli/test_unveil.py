"""`cloakwork unveil`: from the readings of real devices' code to a file that only its owner can read."""

import csv
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.keys import (
    Generation,
    load_keys,
    new_keys,
    open_generation,
    revoke,
    save_keys,
)
from cloakwork.privacy import noise_table
from cloakwork.readings import ReadingsFile
from cloakwork.sensor import keystream
from cloakwork.sensor.table import look_up
from cloakwork.site import Plan, freeze, load_site
from tests.cli.conftest import SITE as CORRIDOR
from tests.cli.conftest import Outcome, Run

SITE = "baseline = 20.0\n" + CORRIDOR
HEADER = "time,sensor,seq,steps\n"
TIME = 2_000_000_000_000


class House:
    """A site with its plan and keys, and the command."""

    def __init__(self, folder: Path, call: Run) -> None:
        self.folder, self._call = folder, call
        self.site = folder / "site.toml"
        self.site.write_text(SITE)
        loaded = load_site(self.site)
        self.plan = freeze(loaded, loaded.cloak())
        self.plan.write(folder / "site.plan.json")
        self.keys = folder / "keys.json"
        save_keys(new_keys("corridor"), self.keys)
        self.readings, self.out = folder / "readings.csv", folder / "true.csv"

    def opens(self, sensor: str) -> Generation:
        return open_generation(self.keys, sensor, self.plan.digest, "reading")

    def sends(self, *parts: list[str]) -> None:
        self.readings.write_text(HEADER + "".join(row for part in parts for row in part))

    def unveil(self, *extra: object) -> Outcome:
        return self._call("unveil", self.site, self.readings, "--keys", self.keys, "--out", self.out, *extra)


def sent(plan: Plan, opened: Generation, sensor: str, true: list[int], *, time: int = TIME) -> list[str]:
    """Rows as a device sends them, worked out with the device's own code."""
    table = noise_table(plan.sensor(sensor).ratio)
    rows, key, epoch = [], opened.key, 0
    for counter, value in enumerate(true):
        while epoch < counter // keystream.EPOCH:
            key, epoch = keystream.ratchet(key), epoch + 1
        seq = keystream.sequence(opened.number, counter)
        stream = keystream.stream_key(key, plan.site, sensor, opened.number, epoch)
        words = keystream.words(stream, seq, len(table.levels))
        noise = sum(level.factor * look_up(level.cuts, word) for level, word in zip(table.levels, words, strict=True))
        rows.append(f"{time + counter},{sensor},{seq},{value + noise}\n")
    return rows


@pytest.fixture
def house(tmp_path: Path, run: Run) -> House:
    return House(tmp_path, run)


def values(path: Path) -> list[int]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["sigma"], row["unit"]) for row in rows} == {("0.0", "")}
    return [int(row["steps"]) for row in rows]


def test_true_readings_are_written_for_their_owner_alone(house: House) -> None:
    true = [80_000 + k for k in range(100)]
    rows = sent(house.plan, house.opens("s1"), "s1", true)
    house.sends(rows)
    house.out.write_text("an older file that everyone could read")
    house.out.chmod(0o644)
    done = house.unveil()
    assert (done.code, done.out) == (0, "")
    assert values(house.out) == true
    read_back = ReadingsFile(house.out, house.plan.ids, plan=house.plan.id).readings()
    found = [f"{time},s1,{seq}" for part in read_back for time, seq in zip(part.time, part.seq, strict=True)]
    assert found == [row.rpartition(",")[0] for row in rows]
    assert stat.S_IMODE(house.out.stat().st_mode) == 0o600
    assert "wrote 100 true readings of 1 sensor" in done.err
    assert f"{house.out} holds TRUE readings, without noise" in done.err
    assert not re.search("warning|caution|left out", done.err)


def test_rows_that_cannot_be_unveiled_are_counted_by_reason(house: House) -> None:
    opened = house.opens("s1")
    revoke(house.keys, "s1", TIME // 1000)
    rows = sent(house.plan, opened, "s1", [5] * 12, time=TIME - 9)
    forged = rows[3].replace(",", ",", 1).rsplit(",", 1)[0] + ",12345\n"
    house.sends(rows, [forged, rows[0], "0,zz,0,0\n"])
    done = house.unveil()
    assert done.code == 0
    assert values(house.out) == [5] * 9
    assert "6 of 15 rows left out" in done.err
    for part in (
        "2 from after the device was revoked",
        "2 alarm: one seq with two values",
        "1 the same reading again",
        "1 unknown sensor",
        "warning: sequence numbers of s1 have two values",
    ):
        assert part in done.err


def test_a_wrong_key_is_warned_of(house: House) -> None:
    opened = house.opens("s1")
    house.sends(sent(house.plan, replace(opened, key=bytes(32)), "s1", [5] * 300))
    done = house.unveil()
    assert done.code == 0
    assert f"warning: the keys of s1 (generation {opened.number}) seem wrong" in done.err


def test_no_true_reading_and_no_key_appears_in_any_message(house: House) -> None:
    secret = 31_415_926
    opened = house.opens("s1")
    rows = sent(house.plan, opened, "s1", [secret] * 40)
    house.sends(rows, [rows[7].rsplit(",", 1)[0] + ",7\n", f"0,s1,0,{secret}.5\n"])
    done = house.unveil()
    assert done.code == 0
    said = done.out + done.err
    assert str(secret) not in said
    assert opened.key.hex() not in said
    assert load_keys(house.keys).generations("s1")[0].key.hex() not in said


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "no usable reading in 0 rows"),
        (["0,s1,5,5\n"], "no usable reading in 1 rows; row 2: no key for this sensor"),
        (["0,zz,5,5\n"], "row 2: unknown sensor 'zz'"),
    ],
)
def test_nothing_to_unveil_is_bad_input_and_writes_no_file(rows: list[str], says: str, house: House) -> None:
    house.sends(rows)
    done = house.unveil()
    assert done.code == 2
    assert says in done.err
    assert not house.out.exists()
    assert sorted(path.name for path in house.folder.iterdir() if path.name.startswith(".")) == []


def test_another_plan_than_that_of_the_devices_is_refused_with_its_digest(house: House) -> None:
    house.sends(sent(house.plan, house.opens("s1"), "s1", [5] * 30))
    house.site.write_text(SITE.replace("epsilon = 8.0", "epsilon = 4.0"))
    loaded = load_site(house.site)
    freeze(loaded, loaded.cloak()).write(house.folder / "site.plan.json")
    done = house.unveil()
    assert done.code == 2
    assert f"made under another plan, {house.plan.digest[:12]}" in done.err
    assert not house.out.exists()
