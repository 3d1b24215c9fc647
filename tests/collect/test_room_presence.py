"""Which rooms are in use: from the noisy bits of binary sensors in a store to the API."""

import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.storage import Reading, Store
from cloakwork.collect.zone_publisher import ZonePublisher
from cloakwork.collect.zones_in_use import in_use, room_presence
from cloakwork.mqtt import BrokerAddress, in_use_state
from cloakwork.recovery import presence
from tests.collect.small_sites import LINE, LONG, give, make, moment, readings, running, values

BITS = """
[privacy.binary]
epsilon = 120.0
shared = 2
[presence]
stay = "10min"
share = 0.5
[[zone]]
id = "left"
label = "Left half"
between = [0.0, 0.5]
[[sensor]]
id = "door"
kind = "binary"
zone = "left"
[[sensor]]
id = "seat"
kind = "binary"
zone = "left"
"""
SLOTS = 60


@pytest.fixture
def mixed(tmp_path: Path) -> CollectedSite:
    return make(tmp_path, LINE + BITS)


def add_bits(store: Store, watched: CollectedSite, sensor: str, reports: list[int]) -> list[Reading]:
    rows = [Reading("corridor", sensor, k, moment(watched, k), bit, 1) for k, bit in enumerate(reports) if bit >= 0]
    store.readings.add(rows)
    return rows


def test_presence_is_what_the_library_computes_from_the_stored_reports(
    sqlite_store: Store, mixed: CollectedSite
) -> None:
    flip, rng = mixed.site.flip, np.random.default_rng(1)
    assert flip is not None
    there = np.repeat([0, 1, 0], SLOTS // 3)
    reports = flip.simulate(np.stack([there, there], axis=1), rng=rng)
    reports[5, 0] = -1  # one is missing
    for column, sensor in enumerate(mixed.site.binary_ids):
        add_bits(sqlite_store, mixed, sensor, reports[:, column].tolist())
    [room] = room_presence(sqlite_store, mixed, moment(mixed, SLOTS), slots=SLOTS)
    assert (room.id, room.label, room.reports) == ("left", "Left half", 2 * SLOTS - 1)
    stay = np.exp(-mixed.schedule.period_ms / 600_000)
    np.testing.assert_allclose(room.probability, presence(reports, flip, stay=stay, share=0.5))
    assert [round(float(room.probability[part].mean())) for part in (slice(0, 18), slice(22, 38))] == [0, 1]
    now = in_use(sqlite_store, mixed, moment(mixed, SLOTS) - 1)
    assert set(now) == {"left"}
    assert now["left"] < 0.5


def test_a_room_without_reports_says_nothing_and_a_site_without_bits_has_no_rooms(
    sqlite_store: Store, mixed: CollectedSite, watched: CollectedSite
) -> None:
    assert in_use(sqlite_store, mixed, moment(mixed, 9)) == {}
    assert room_presence(sqlite_store, watched, moment(mixed, 9)) == []


def test_bits_belong_to_frames_and_no_frame_is_recovered_again_for_them(
    sqlite_store: Store, mixed: CollectedSite
) -> None:
    when = [moment(mixed, k) for k in range(3)]
    with running(sqlite_store, mixed) as (live, _):
        for k in range(3):
            give(sqlite_store, live, readings(mixed, k, values(mixed, 0.3, seed=k) | {"door": 1, "seat": 0}))
        assert live.settle(LONG)
    results = sqlite_store.results.page("corridor", limit=10).items
    assert [result.time for result in results] == when
    assert {(result.sensors, result.expected) for result in results} == {(14, 14)}
    assert sqlite_store.frames.outgrown("corridor") == []


def test_home_assistant_hears_of_each_watched_zone(mixed: CollectedSite) -> None:
    publisher = ZonePublisher(BrokerAddress(), {"corridor": mixed})
    found = [json.loads(payload) for payload in publisher._discovery.values()]  # noqa: SLF001 - no broker is needed
    [announced] = [body for body in found if body["name"] == "Left half in use"]
    assert announced["state_topic"] == "cloakwork/zones/corridor/left/in-use"
    assert announced["unique_id"] == "cloakwork_corridor_left_in_use"
    assert json.loads(in_use_state(0.93, time_ms=0))["occupied"] is True
