"""Unveiling: exactly what was there before the noise, or a reason why not."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import KeyFileError, ReadingError
from cloakwork.keys import (
    FIRST_SECOND,
    DeviceKind,
    Generation,
    KeyRing,
    TrueRows,
    Unveiling,
    load_keys,
    new_keys,
    open_generation,
    revoke,
    save_keys,
    wire_site,
)
from cloakwork.privacy import noise_table
from cloakwork.sensor import keystream
from cloakwork.sensor.table import look_up
from cloakwork.site import Plan, PlannedSensor, PlannedTable, SiteClaim, make_schedule
from tests.keystreams import keyed_noise

NOW = FIRST_SECOND + 60 * 400_000
SENSORS = {"s1": 2.5, "s2": 129.0, "s3": 3017.0, "s4": 129.0}
HEADER = "time,sensor,seq,steps\n"
LARGEST = 2**53 - 1


def planned(site: str = "flat") -> Plan:
    """A plan with one table of one level, one larger, and one of two levels."""
    tables = {ratio: noise_table(ratio) for ratio in SENSORS.values()}
    return Plan(
        site=site,
        site_digest="0" * 64,
        claim=SiteClaim(1.0, 1e-6, 0.3, "network", 3600.0, 60),
        mu=0.3,
        schedule=make_schedule(window=3600.0, allowed=60),
        sensors=tuple(
            PlannedSensor(name, 0.25 * ratio, 0.25, ratio, tables[ratio].digest, 20.0, 0.0)
            for name, ratio in SENSORS.items()
        ),
        tables={table.digest: PlannedTable.of(table) for table in tables.values()},
    )


PLAN = planned()


class Sent(NamedTuple):
    """A reading, as its device sent it."""

    time: int
    sensor: str
    seq: int
    value: int


def cloaked(
    opened: Generation,
    sensor: str,
    true: Sequence[int],
    *,
    site: str = "flat",
    first: int = 0,
    time: int = 1000 * NOW,
) -> list[Sent]:
    """What a device sends, worked out with the device's own code."""
    table = noise_table(SENSORS[sensor])
    sent = []
    key, epoch = opened.key, 0
    for counter, value in enumerate(true, start=first):
        while epoch < counter // keystream.EPOCH:
            key, epoch = keystream.ratchet(key), epoch + 1
        seq = keystream.sequence(opened.number, counter)
        stream = keystream.stream_key(key, site, sensor, opened.number, epoch)
        words = keystream.words(stream, seq, len(table.levels))
        noise = sum(level.factor * look_up(level.cuts, word) for level, word in zip(table.levels, words, strict=True))
        sent.append(Sent(time + counter, sensor, seq, value + noise))
    return sent


class Party:
    """The trusted party, with a file of keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "keys.json"
        save_keys(new_keys("flat"), self.path)

    def opens(self, sensor: str, kind: DeviceKind | str = "reading", plan: Plan = PLAN) -> Generation:
        return open_generation(self.path, sensor, plan.digest, kind, NOW)

    @property
    def ring(self) -> KeyRing:
        return load_keys(self.path)

    def file(self, *rows: Iterable[tuple[int, str, int, int]]) -> Path:
        path = self.folder / "readings.csv"
        path.write_text(HEADER + "".join(f"{t},{s},{q},{v}\n" for part in rows for t, s, q, v in part))
        return path

    def unveils(self, *rows: Iterable[tuple[int, str, int, int]], plan: Plan = PLAN) -> tuple[Unveiling, list[Sent]]:
        unveiling = Unveiling(self.file(*rows), plan, self.ring)
        return unveiling, true_rows(unveiling)


def true_rows(unveiling: Iterable[TrueRows]) -> list[Sent]:
    return [
        Sent(*row)
        for batch in unveiling
        for row in zip(batch.time.tolist(), batch.sensor, batch.seq.tolist(), batch.value.tolist(), strict=True)
    ]


@pytest.fixture
def party(tmp_path: Path) -> Party:
    return Party(tmp_path)


def test_unveiling_undoes_the_noise_of_every_sensor(party: Party, rng: np.random.Generator) -> None:
    true = {sensor: rng.integers(-(10**6), 10**6, 200).tolist() for sensor in SENSORS}
    sent = [cloaked(party.opens(sensor), sensor, values) for sensor, values in true.items()]
    rows = [row for frame in zip(*sent, strict=True) for row in frame]
    unveiling, found = party.unveils(rows)
    assert found == [row._replace(value=true[row.sensor][row.seq & keystream.LARGEST_COUNTER]) for row in rows]
    assert [row.value for row in rows] != [row.value for row in found]
    assert unveiling.problems.total == 0
    assert unveiling.rows == 800
    assert unveiling.unveiled == dict.fromkeys(SENSORS, 200)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(-(2**52), 2**52) | st.sampled_from([-(2**52), 0, 2**52]), min_size=1, max_size=20),
    st.sampled_from(sorted(SENSORS)),
    st.integers(0, 300) | st.sampled_from([63, 64, 4095, 10**6]),
    st.integers(0, keystream.LARGEST_GENERATION),
    st.integers(0, LARGEST - 100),
    st.sampled_from(list(DeviceKind)),
)
def test_unveiling_is_exact_for_every_number_that_the_wire_can_carry(
    tmp_path: Path, true: list[int], sensor: str, first: int, generation: int, time: int, kind: DeviceKind
) -> None:
    """Every sensor, generation, counter, time and kind; large counters with the bulk noise, not the device's own."""
    one = Generation(generation, PLAN.digest, kind, NOW, None, bytes(range(32)))
    site = wire_site("flat", kind)
    if first < 5000:
        rows = cloaked(one, sensor, true, site=site, first=first, time=time)
    else:
        seqs = np.array([keystream.sequence(generation, first + k) for k in range(len(true))])
        noise = keyed_noise(noise_table(SENSORS[sensor]), one.key, site, sensor, seqs).tolist()
        rows = [Sent(time + k, sensor, int(seqs[k]), true[k] + noise[k]) for k in range(len(true))]
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "".join(f"{row.time},{row.sensor},{row.seq},{row.value}\n" for row in rows))
    found = true_rows(Unveiling(path, PLAN, KeyRing("flat", {sensor: (one,)})))
    assert [row.value for row in found] == true
    assert [row[:3] for row in found] == [row[:3] for row in rows]


def test_an_export_unveils_its_sensor_and_no_other(party: Party) -> None:
    rows = [cloaked(party.opens(sensor), sensor, [5] * 10) for sensor in ("s1", "s2")]
    unveiling = Unveiling(party.file(*rows), PLAN, party.ring.export("s2"))
    assert {(row.sensor, row.value) for row in true_rows(unveiling)} == {("s2", 5)}
    assert unveiling.problems.counts == {"no key for this sensor": 10}


def test_each_generation_is_unveiled_with_its_own_key(party: Party) -> None:
    kinds = [DeviceKind.READING, DeviceKind.BENCH, DeviceKind.READING]
    rows = [
        cloaked(party.opens("s2", kind), "s2", [k] * 9, site=wire_site("flat", kind)) for k, kind in enumerate(kinds)
    ]
    _, found = party.unveils(*rows)
    assert [row.value for row in found] == [0] * 9 + [1] * 9 + [2] * 9


@pytest.mark.parametrize("mistake", ["key", "counter", "site"])
def test_what_is_wrong_gives_garbage_and_a_warning(party: Party, mistake: str) -> None:
    opened = party.opens("s2")
    used = dataclasses.replace(opened, key=bytes(32)) if mistake == "key" else opened
    rows = cloaked(used, "s2", [777] * 300, site="hall" if mistake == "site" else "flat")
    if mistake == "counter":
        rows = [row._replace(seq=row.seq + 1) for row in rows]
    unveiling, found = party.unveils(rows)
    assert sum(row.value == 777 for row in found) < 150
    assert unveiling.verdict().wrong == (f"s2 (generation {opened.number})",)


def test_readings_from_after_a_loss_are_left_out(party: Party) -> None:
    opened = party.opens("s2")
    revoke(party.path, "s2", NOW + 100)
    moment = 1000 * (NOW + 100)
    rows = cloaked(opened, "s2", list(range(10)), time=moment - 4)
    again = open_generation(party.path, "s2", PLAN.digest, "reading", NOW + 200)
    unveiling, found = party.unveils(rows, cloaked(again, "s2", [50], time=moment + 5000))
    assert [row.value for row in found] == [0, 1, 2, 3, 4, 50]
    assert unveiling.problems.counts == {"from after the device was revoked": 5}


def test_a_number_that_says_two_things_is_left_out_and_both_with_it(party: Party) -> None:
    rows = cloaked(party.opens("s2"), "s2", list(range(6)))
    forged = rows[2]._replace(value=rows[2].value + 1)
    unveiling, found = party.unveils(rows, [forged, rows[4], rows[4]])
    assert [row.value for row in found] == [0, 1, 3, 4, 5]
    assert unveiling.problems.counts == {"alarm: one seq with two values": 2, "the same reading again": 2}
    assert unveiling.alarms == {"s2": 2}


def test_a_reading_that_is_refused_raises_no_alarm_against_a_good_one(party: Party) -> None:
    """Or whoever stole a device could make its past readings vanish."""
    rows = cloaked(party.opens("s2"), "s2", [7, 8])
    revoke(party.path, "s2", NOW + 100)
    forged = [row._replace(time=1000 * (NOW + 200), value=0) for row in rows]
    unveiling, found = party.unveils(forged, rows)
    assert [row.value for row in found] == [7, 8]
    assert not unveiling.alarms


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((0, "s9", 1, 1), "unknown sensor"),
        ((0, "s3", 1, 1), "no key for this sensor"),
        ((0, "s2", 1, 1), "unknown generation"),
        ((0, "s2", 2**61, 1), "unknown generation"),
        ((0, "s2", 400_000 << 28, 2**53), "value is larger than any that a device sends"),
        ((-1, "s2", 1, 1), "time is neither ISO 8601 nor Unix milliseconds, from 1970 on"),
    ],
)
def test_a_row_that_cannot_be_unveiled_is_left_out_with_its_reason(
    party: Party, row: tuple[int, str, int, int], reason: str
) -> None:
    unveiling, found = party.unveils(cloaked(party.opens("s2"), "s2", [3, 4]), [row])
    assert [one.value for one in found] == [3, 4]
    assert unveiling.problems.counts == {reason: 1}
    assert unveiling.problems.shown[0].startswith(f"row 4: {reason}")


def test_readings_of_another_plan_are_left_out_with_its_digest(party: Party) -> None:
    other = dataclasses.replace(PLAN, mu=0.31)
    rows = cloaked(party.opens("s2", plan=other), "s2", [1, 2])
    unveiling, found = party.unveils(rows, cloaked(party.opens("s2"), "s2", [3]))
    assert [row.value for row in found] == [3]
    assert [other.digest[:12] in reason for reason in unveiling.problems.counts] == [True]
    assert unveiling.problems.total == 2
    with pytest.raises(ReadingError, match=other.digest[:12]):
        party.unveils(rows)


def test_keys_of_another_site_are_refused(party: Party) -> None:
    with pytest.raises(KeyFileError) as problem:
        Unveiling(party.file(), planned("hall"), party.ring)
    assert problem.value.values == {"site": "flat", "expected": "hall"}


def test_no_message_and_no_text_of_an_object_holds_a_true_reading(party: Party) -> None:
    true = 31_415_926
    rows = cloaked(party.opens("s2"), "s2", [true] * 20)
    unveiling = Unveiling(party.file(rows, rows, [rows[0]._replace(value=5)]), PLAN, party.ring)
    batches = list(unveiling)
    shown = f"{batches!r} {batches[0]} {unveiling!r} {unveiling.problems!r} {unveiling.verdict()!r}"
    assert str(true) not in shown
    assert str(rows[1].value) not in shown
