"""Readings in and out; results, over a long time, and to an attacker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.attack import AttackCache, Span
from cloakwork.collect.collected_site import CollectedBits
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, Role, Store, unix_ms
from cloakwork.sensor.wire import LARGEST
from cloakwork.site import BitSite, freeze_bits, parse_any_site
from tests.collect.api_kit import NOW, Bench, bench, error_code, reading, result, watched
from tests.collect.small_sites import FLAT, flat_result, flat_site, moment, readings, values
from tests.collect.test_presence_solver import BITS

PERIOD = 60_000
STILL = FLAT + "speed = 0\n"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


@contextmanager
def of_flat(folder: Path, text: str = FLAT, epsilon: float = 8.0) -> Iterator[Bench]:
    """The small flat, and an office whose sensors report bits."""
    bits = parse_any_site(BITS)
    assert isinstance(bits, BitSite)
    sites = {"flat": flat_site(text, epsilon), "office": CollectedBits(bits, freeze_bits(bits))}
    with bench(folder, sites=sites) as made:
        yield made


def test_readings_are_stored_once_and_a_contradiction_is_an_alarm(made: Bench) -> None:
    for body, expected in (
        (reading(1), {"accepted": 1, "again": 0, "alarms": 0}),
        ([reading(1), reading(2), reading(3)], {"accepted": 2, "again": 1, "alarms": 0}),
        (reading(2, value=6), {"accepted": 0, "again": 0, "alarms": 1}),
    ):
        assert made.post("/v1/readings", body, "device").json() == expected
    rows = made.store.readings.page("hall").items
    assert [(row.sensor, row.seq, row.value) for row in rows] == [("s1", 1, 5), ("s1", 2, 5), ("s1", 3, 5)]
    assert all(NOW <= row.received <= unix_ms() for row in rows)


@pytest.mark.parametrize("other", [{"sensor": "s2"}, {"site": "yard"}, {"sensor": "s9"}, {"site": "nowhere"}])
def test_a_device_writes_its_own_sensor_only_and_a_batch_is_stored_whole_or_not_at_all(
    made: Bench, other: dict[str, str]
) -> None:
    answer = made.post("/v1/readings", [reading(1), reading(2) | other], "device")
    assert error_code(answer) == (403, "not-your-sensor")
    assert made.store.readings.page("hall").items == made.store.readings.page("yard").items == ()


@pytest.mark.parametrize(
    "change", [{"v": True}, {"value": 21.25}, {"value": 10**400}, {"sensor": "s1\n"}, {"true_value": 4}]
)
def test_an_invalid_reading_is_refused_counted_and_not_repeated(made: Bench, change: dict[str, object]) -> None:
    for body in (reading(1) | change, [reading(2), reading(1) | change]):
        answer = made.post("/v1/readings", body, "device")
        assert answer.status_code == 422
        for key, value in change.items():
            assert (key in answer.text) is (key != "true_value")
            assert len(str(value)) < 3 or str(value) not in answer.text.replace(str(LARGEST), "")
    assert made.store.readings.page("hall").items == ()
    assert made.intake.state.problems == {Reason.MALFORMED: 2}


def test_the_ends_of_the_range_are_accepted_and_a_batch_has_up_to_a_thousand(made: Bench) -> None:
    edges = [reading(0, when=0, value=-LARGEST), reading(LARGEST, when=LARGEST, value=LARGEST)]
    assert made.post("/v1/readings", edges, "device").json()["accepted"] == 2
    assert made.post("/v1/readings", [reading(k) for k in range(1, 1001)], "device").json()["accepted"] == 1000
    assert made.post("/v1/readings", [reading(k) for k in range(1, 1002)], "device").status_code == 422


def test_a_device_whose_sensor_is_no_longer_collected_gets_an_error(made: Bench) -> None:
    secret = made.store.tokens.create(Role.DEVICE, "hall", "gone").secret
    own = {"Authorization": f"Bearer {secret}"}
    answer = made.client.post("/v1/readings", json=reading(1, sensor="gone"), headers=own)
    assert error_code(answer) == (422, "unknown-sensor")
    assert made.intake.state.problems == {Reason.UNKNOWN_SENSOR: 1}


def test_readings_come_back_newest_first_in_steps_and_in_the_unit(made: Bench) -> None:
    made.store.readings.add([Reading("hall", "s1", k, NOW + k, 10 * k, NOW) for k in range(1, 6)])
    made.store.readings.add([Reading("hall", "s2", 1, NOW, 4, NOW), Reading("hall", "old", 1, NOW, 4, NOW)])
    step = watched().plan.sensor("s1").step
    page = made.get("/v1/sites/hall/readings?sensor=s1&limit=2")
    assert [(item["seq"], item["value"]) for item in page["items"]] == [(5, 50), (4, 40)]
    assert page["items"][0]["reading"] == pytest.approx(50 * step)
    rest = made.get(f"/v1/sites/hall/readings?sensor=s1&limit=3&after={page['next']}")
    assert [item["seq"] for item in rest["items"]] == [3, 2, 1]
    period = made.get(f"/v1/sites/hall/readings?since={NOW + 2}&until={NOW + 4}")
    assert [item["seq"] for item in period["items"]] == [3, 2]
    [old] = made.get("/v1/sites/hall/readings?sensor=old")["items"]
    assert old["reading"] is None


def test_pages_of_results_are_complete_and_invalid_cursors_are_refused(made: Bench) -> None:
    made.save(*(result(NOW + k) for k in range(25)))
    found: list[int] = []
    after: str | None = ""
    while after is not None:
        page = made.get(f"/v1/sites/hall/results?limit=10{after and f'&after={after}'}")
        assert all(item["map"] is None for item in page["items"])
        found += [item["time"] for item in page["items"]]
        after = page["next"]
    assert found == [NOW + k for k in reversed(range(25))]
    cursors = ("x", "%00", "!", "Li4uLg", "A" * 199, "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5")
    others = ("limit=0", "limit=1001", "since=-1", "since=x", f"until={LARGEST + 1}", "form=1")
    for wrong in (*(f"after={cursor}" for cursor in cursors), *others):
        assert made.ask(f"/v1/sites/hall/results?{wrong}").status_code == 422, wrong


def test_the_latest_result_has_its_map_its_sources_and_null_where_a_number_is_not_finite(made: Bench) -> None:
    made.save(replace(result(), gap=float("nan"), fit=float("inf")))
    found = made.get("/v1/sites/hall/latest")
    assert found == made.get(f"/v1/sites/hall/results/{NOW}")
    assert (found["map"], found["gap"], found["fit"]) == ([0, 0, 0.97, *[0] * 9], None, None)
    known = {"place": "3", "at": [0.25], "weight": 1.0, "radius": 0.1, "probability": 0.97, "label": None}
    assert (found["sources"], found["counts"]) == ([{**known, "vicinity": []}], [0.03, 0.97])
    assert made.ask(f"/v1/sites/hall/results/{NOW + 1}").status_code == 404


def test_results_from_when_the_clock_was_ahead_do_not_hide_the_latest(tmp_path: Path, store_url: str) -> None:
    now, period = unix_ms(), watched().schedule.period_ms
    with bench(tmp_path, url=store_url) as made:
        made.save(result(now + 3_600_000))
        assert made.ask("/v1/sites/hall/latest").status_code == 404
        for when in (now - period, now + period):  # a device may be ahead by a little
            made.save(result(when))
            assert made.get("/v1/sites/hall/latest")["time"] == when


def test_failures_hide_no_result(made: Bench) -> None:
    failed = [replace(result(NOW + k), status="failed: stamped", map=None, sources=(), counts=None) for k in range(30)]
    made.save(result(NOW - 1), *failed)
    assert made.get("/v1/sites/hall/latest")["time"] == NOW - 1
    assert [one["time"] for one in made.get("/v1/sites/hall/results")["items"]] == [NOW - 1]


def test_a_frame_can_be_recovered_alone_on_demand(tmp_path: Path) -> None:
    one = flat_site(STILL, 30.0)
    with of_flat(tmp_path, STILL, 30.0) as made:
        rows = readings(one, 0, values(one, (1.25, 1.25)))
        made.store.readings.add(rows)
        alone = made.get(f"/v1/sites/flat/results/{rows[0].time}?alone=true")
        assert made.ask(f"/v1/sites/flat/results/{rows[0].time + 1}?alone=true").status_code == 404
    [oracle] = Solver(one).solve([one.frame(rows[0].time, {row.sensor: row.value for row in rows})])
    assert (alone["time"], alone["tracks"], alone["settled"]) == (rows[0].time, [], False)
    assert [source["place"] for source in alone["sources"]] == [source.place for source in oracle.sources]


def test_a_timeline_has_the_last_result_of_each_step(tmp_path: Path) -> None:
    """Ten minutes: someone walks from one room into the other and back, with a gap of two minutes."""
    site, start = flat_site(), NOW - 10 * PERIOD
    given = [flat_result(site, start + k * PERIOD, zone=int(2 < k < 7)) for k in (0, 1, 2, 5, 6, 7, 8, 9)]
    with of_flat(tmp_path) as made:
        assert made.get("/v1/sites/flat/timeline")["counts"] == [None], "there are no results"
        made.save(*given)
        for since, steps in ((start, 10), (start, 3), (start + PERIOD + 7, 1000)):
            told = made.get(f"/v1/sites/flat/timeline?since={since}&until={NOW}&steps={steps}")
            assert (told["since"], told["until"]) == (since, NOW)
            inside = {(one.time - since) // told["step_ms"]: one for one in given if since <= one.time < NOW}
            columns = [inside.get(k) for k in range(-(-(NOW - since) // told["step_ms"]))]
            assert len(columns) <= steps
            assert told["counts"] == [None if one is None else 1 for one in columns]
            for row, zone in enumerate(told["zones"]):
                states = [one and one.zones and one.zones[row] for one in columns]
                assert zone["probability"] == [state and state.probability for state in states]
                assert zone["occupied"] == [state and state.occupied for state in states]
        whole = made.get("/v1/sites/flat/timeline")
        assert (whole["since"], whole["until"] >= NOW, len(whole["counts"]) <= 300) == (start, True, True)
        assert made.ask(f"/v1/sites/flat/timeline?since={NOW}&until={NOW}").status_code == 422


def test_a_site_of_bits_stands_beside_one_of_readings(tmp_path: Path) -> None:
    with of_flat(tmp_path) as made:
        flat, office = made.get("/v1/sites")
        assert (office["kind"], office["alpha"], office["shared"], office["epsilon"]) == ("bits", None, 3, 120.0)
        assert (flat["kind"], flat["shared"], flat["stay"]) == ("floorplan", None, None)
        shape = made.get("/v1/sites/office")
        assert [sensor["zone"] for sensor in shape["sensors"]] == ["left", "left", "right"]
        assert [zone["label"] for zone in shape["zones"]] == ["Left half", "right"]
        assert shape["longer"]["epsilon"] > 120.0
        lanes = made.get("/v1/sites/office/timeline")
        assert (lanes["counts"], [zone["id"] for zone in lanes["zones"]]) == (None, ["left", "right"])
        assert error_code(made.ask("/v1/sites/office/attack")) == (404, "no-map")


def test_an_attack_covers_exactly_one_window_of_the_claim(made: Bench) -> None:
    """A reading one window before the last is of another window: the intervals of the claim are half-open."""
    site = watched()
    window, period, claim = site.window_ms, site.schedule.period_ms, site.plan.claim
    end = NOW // period * period
    slots = [end - k * period for k in range(2 * claim.readings_per_window)]
    times = sorted({*slots, end - window, end - window + 1})
    made.store.readings.add([Reading("hall", "s1", k, when, 5, NOW) for k, when in enumerate(times)])
    for until in (None, end, end - 7 * period, end - 1):
        last = end if until is None else until
        inside = [when for when in times if last - window < when <= last]
        found = made.get("/v1/sites/hall/attack" + ("" if until is None else f"?time={until}"))
        assert (found["frames"], found["readings"], found["since"]) == (len(inside), len(inside), inside[0])
        assert (found["time"], len(found["map"])) == (inside[-1], 12)
        assert sum(when in slots for when in inside) <= claim.readings_per_window
    assert made.ask(f"/v1/sites/hall/attack?time={times[0] - 1}").status_code == 404


def test_an_attacker_follows_sources_that_moved(tmp_path: Path) -> None:
    """The mean of these frames has somebody in both rooms."""
    one = flat_site(STILL, 30.0)
    with of_flat(tmp_path, STILL, 30.0) as made:
        for number in range(8):
            at = (1.25, 1.25) if number < 5 else (4.25, 1.25)
            made.store.readings.add(readings(one, number, values(one, at, seed=number)))
        attack = made.get(f"/v1/sites/flat/attack?time={moment(one, 7)}&span=hour")
        window = made.get(f"/v1/sites/flat/attack?time={moment(one, 7)}")
    assert [zone["occupied"] for zone in attack["zones"]] == [False, True]
    assert (attack["span"], attack["frames"], attack["cut"], attack["doubtful"]) == ("hour", 8, False, False)
    assert (window["span"], window["frames"]) == ("window", 6)
    [source] = attack["sources"]
    assert int(source["place"]) in source["vicinity"]
    assert [track["label"] for track in attack["tracks"]] == [source["label"]]


def test_an_attack_that_would_take_too_long_uses_the_last_frames(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = flat_site(STILL, 30.0)
    times = [moment(one, number) for number in range(6)]
    for number in range(6):
        sqlite_store.readings.add(readings(one, number, values(one, (1.25, 1.25), seed=number)))

    def found() -> Any:
        attack = AttackCache(sqlite_store).attack_until(one, times[-1], Span.DAY)
        assert attack is not None
        return attack.frames, attack.cut, attack.since, attack.time

    assert found() == (6, False, times[0], times[-1])
    monkeypatch.setattr("cloakwork.collect.attack.PATIENCE_S", 0.0)
    assert found() == (1, True, times[-1], times[-1])


def test_an_attack_from_erased_readings_is_not_kept(made: Bench) -> None:
    period = watched().schedule.period_ms
    when = unix_ms() // period * period - period
    made.store.readings.add([Reading("hall", name, 1, when, 5, when) for name in ("s1", "s2", "s3", "s4")])
    attacks = AttackCache(made.store)
    before = attacks.attack_until(watched(), when)
    assert attacks.attack_until(watched(), when) is before
    made.store.erase("hall", "s1")
    made.store.readings.add([Reading("hall", "s1", 2, when, 5, when)])
    after = attacks.attack_until(watched(), when)
    assert after is not before
    assert after is attacks.attack_until(watched(), when)
