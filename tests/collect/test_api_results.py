"""Results and zones over HTTP."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloakwork.collect.api import ApiContext, make_app
from cloakwork.collect.attack import AttackCache, Span
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.intake import Intake
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, Result, Role, Store, open_store, unix_ms
from tests.collect import api_kit
from tests.collect.api_kit import NOW, Still
from tests.collect.fake_store import lenient
from tests.collect.small_sites import FLAT, flat_result, flat_site, moment, readings, values

NAMED = FLAT + '[[zone]]\nid = "living"\nlabel = "Living room"\nroom = [1.0, 1.0]\n'


@contextmanager
def client(
    folder: Path, one: CollectedSite, *results: Result, beside: Sequence[CollectedBits] = ()
) -> Iterator[tuple[TestClient, Store]]:
    sites: dict[str, CollectedSite | CollectedBits] = {one.name: one} | {site.name: site for site in beside}
    with open_store(str(folder / "store.db")) as store:
        rules = {name: lenient(*site.ids) for name, site in sites.items()}
        intake = Intake(store, rules, on_new=lambda _: None)
        intake.start()
        try:
            for k, result in enumerate(results):  # a result is kept only with the readings that it is from
                store.readings.add([Reading(one.name, name, k, result.time, 0, NOW) for name in one.ids])
            store.results.save(results)
            app = make_app(ApiContext(store, sites, intake, Still()))
            headers = {"Authorization": f"Bearer {store.tokens.create(Role.ANALYST).secret}"}
            with TestClient(app, headers=headers) as made:
                yield made, store
        finally:
            intake.stop()


def get(made: TestClient, path: str) -> Any:
    answer = made.get(f"/v1/sites/flat{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_map_includes_the_occupancy_of_each_zone(tmp_path: Path) -> None:
    one = flat_site()
    with client(tmp_path, one, flat_result(one, NOW - 1000, zone=1), flat_result(one, NOW, zone=0)) as (made, _):
        here = {"id": "room-1", "expected": 0.9, "probability": 0.9, "occupied": True, "since": NOW}
        there = {"id": "room-2", "expected": 0.0, "probability": 0.0, "occupied": False, "since": NOW}
        assert get(made, "/latest")["zones"] == [here, there]
        assert [zone["occupied"] for zone in get(made, f"/results/{NOW - 1000}")["zones"]] == [False, True]
        listed = get(made, "/results")["items"]
        assert [[zone["occupied"] for zone in result["zones"]] for result in listed] == [[True, False], [False, True]]
        assert [(result["settled"], result["tracks"]) for result in listed] == [(False, [])] * 2


def test_an_attacker_follows_sources_that_moved(tmp_path: Path) -> None:
    """The mean of these frames has somebody in both rooms."""
    one = flat_site(FLAT + "speed = 0\n", 30.0)
    with client(tmp_path, one) as (made, store):
        for number in range(8):
            at = (1.25, 1.25) if number < 5 else (4.25, 1.25)
            store.readings.add(readings(one, number, values(one, at, seed=number)))
        attack = get(made, f"/attack?time={moment(one, 7)}&span=hour")
        window = get(made, f"/attack?time={moment(one, 7)}")
    assert [zone["occupied"] for zone in attack["zones"]] == [False, True]
    assert (attack["span"], attack["frames"], attack["cut"], attack["doubtful"]) == ("hour", 8, False, False)
    assert (window["span"], window["frames"]) == ("window", 6)
    [source] = attack["sources"]
    assert int(source["place"]) in source["vicinity"]
    assert [track["label"] for track in attack["tracks"]] == [source["label"]]


def test_an_attack_that_would_take_too_long_uses_the_last_frames(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = flat_site(FLAT + "speed = 0\n", 30.0)
    times = [moment(one, number) for number in range(6)]
    for number in range(6):
        sqlite_store.readings.add(readings(one, number, values(one, (1.25, 1.25), seed=number)))
    whole = AttackCache(sqlite_store).attack_until(one, times[-1], Span.DAY)
    assert whole is not None
    assert (whole.frames, whole.cut, whole.since) == (6, False, times[0])
    monkeypatch.setattr("cloakwork.collect.attack.PATIENCE_S", 0.0)
    short = AttackCache(sqlite_store).attack_until(one, times[-1], Span.DAY)
    assert short is not None
    assert (short.frames, short.cut, short.since, short.time) == (1, True, times[-1], times[-1])


def test_a_frame_can_be_recovered_alone_on_demand(tmp_path: Path) -> None:
    one = flat_site(FLAT + "speed = 0\n", 30.0)
    with client(tmp_path, one) as (made, store):
        rows = readings(one, 0, values(one, (1.25, 1.25)))
        store.readings.add(rows)
        alone = get(made, f"/results/{rows[0].time}?alone=true")
        missing = made.get(f"/v1/sites/flat/results/{rows[0].time + 1}?alone=true")
    [oracle] = Solver(one).solve([one.frame(rows[0].time, {row.sensor: row.value for row in rows})])
    assert (alone["time"], alone["tracks"], alone["settled"]) == (rows[0].time, [], False)
    assert [source["place"] for source in alone["sources"]] == [source.place for source in oracle.sources]
    assert missing.status_code == 404


def test_results_from_when_the_clock_was_ahead_do_not_hide_the_latest(tmp_path: Path, store_url: str) -> None:
    now, period = unix_ms(), api_kit.watched().schedule.period_ms
    times = [now - period, now + period, now + 3_600_000]
    with api_kit.bench(tmp_path, url=store_url) as made:
        made.store.readings.add([Reading("hall", "s1", k, when, 5, now) for k, when in enumerate(times)])
        assert len(made.store.results.save([api_kit.result(times[2])])) == 1
        ask = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
        assert ask.status_code == 404
        for when in times[:2]:  # a device may be ahead by a little
            assert len(made.store.results.save([api_kit.result(when)])) == 1
            ask = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
            assert ask.json()["time"] == when
