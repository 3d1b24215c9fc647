"""A site of bits in the collector: from noisy bits in a store to results, the API and Home Assistant."""

from pathlib import Path

import numpy as np
import pytest

from cloakwork.collect.collected_site import CollectedBits, load_collected_site
from cloakwork.collect.storage import Reading, Store
from cloakwork.recovery import presence
from cloakwork.site import BitSite, freeze_bits, load_any_site, plan_beside
from tests.collect.small_sites import FIRST, LONG, give, running

BITS = """name = "office"
[bits]
epsilon = 120.0
window = "1min"
readings_per_window = 6
[presence]
stay = "10min"
share = 0.5
[[zone]]
id = "left"
label = "Left half"
[[zone]]
id = "right"
[[sensor]]
id = "door"
zone = "left"
[[sensor]]
id = "seat"
zone = "left"
[[sensor]]
id = "desk"
zone = "right"
"""
SLOTS = 30


@pytest.fixture
def office(tmp_path: Path) -> CollectedBits:
    path = tmp_path / "office.toml"
    path.write_text(BITS)
    site = load_any_site(path)
    assert isinstance(site, BitSite)
    freeze_bits(site).write(plan_beside(path))
    watched = load_collected_site(path)
    assert isinstance(watched, CollectedBits)
    return watched


def rows(watched: CollectedBits, number: int, reports: np.ndarray) -> list[Reading]:
    """The reports of one slot; -1 is a missing one."""
    when = (FIRST + number) * watched.schedule.period_ms
    pairs = zip(watched.ids, reports.tolist(), strict=True)
    return [Reading("office", sensor, number, when, bit, when) for sensor, bit in pairs if bit >= 0]


def test_results_are_what_the_library_computes_from_the_stored_reports(
    sqlite_store: Store, office: CollectedBits
) -> None:
    flip, lag = office.site.flip, office.lag
    there = np.repeat([0, 1, 0], SLOTS // 3)
    reports = flip.simulate(np.stack([there, there, 1 - there], axis=1), rng=np.random.default_rng(1))
    reports[5, 0] = -1
    with running(sqlite_store, office) as (live, _):
        for k in range(SLOTS):
            give(sqlite_store, live, rows(office, k, reports[k]))
            assert live.settle(LONG)
    results = sqlite_store.results.page("office", limit=SLOTS).items
    assert [result.time for result in results] == [(FIRST + k) * office.schedule.period_ms for k in range(SLOTS)]
    assert [result.settled for result in results] == [k < SLOTS - lag for k in range(SLOTS)]
    assert {(result.sensors, result.expected) for result in results} == {(2, 3), (3, 3)}
    stay = np.exp(-office.schedule.period_ms / 600_000)
    for k, result in enumerate(results):
        assert result.zones is not None
        until = k + 1 + (lag if result.settled else 0)
        for zone, columns in zip(result.zones, ([0, 1], [2]), strict=True):
            expected = presence(reports[:until, columns], flip, stay=stay, share=0.5)[k]
            assert zone.probability == pytest.approx(expected)
            assert zone.occupied == (expected >= 0.5)
    assert sqlite_store.frames.waiting("office") == []
