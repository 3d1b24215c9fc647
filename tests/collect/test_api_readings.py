"""Readings in, and everything that can be read back."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx2 import Response

from cloakwork.collect.api.site_geometry import site_geometry as geometry
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading, Role, unix_ms
from cloakwork.errors import BusyError, StoreAwayError
from cloakwork.mqtt import BrokerState
from cloakwork.physics import FloorPlan
from cloakwork.sensor.wire import LARGEST
from cloakwork.site import freeze, parse_site
from tests.collect.api_kit import NOW, Bench, bench, reading, result, watched


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as one:
        yield one


def post(made: Bench, body: Any, who: str = "device") -> Response:
    answer: Response = made.client.post("/v1/readings", json=body, headers=made.bearer(who))
    return answer


def get(made: Bench, path: str, who: str = "analyst") -> Any:
    answer = made.client.get(path, headers=made.bearer(who))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_readings_are_stored_once_and_a_contradiction_is_an_alarm(made: Bench) -> None:
    before = time.time_ns() // 1_000_000
    assert post(made, reading(1)).json() == {"accepted": 1, "again": 0, "alarms": 0}
    assert post(made, [reading(1), reading(2), reading(3)]).json() == {"accepted": 2, "again": 1, "alarms": 0}
    assert post(made, reading(2, value=6)).json() == {"accepted": 0, "again": 0, "alarms": 1}
    rows = made.store.readings.page("hall").items
    assert [(row.sensor, row.seq, row.value) for row in rows] == [("s1", 1, 5), ("s1", 2, 5), ("s1", 3, 5)]
    assert all(before <= row.received <= time.time_ns() // 1_000_000 for row in rows)


@pytest.mark.parametrize("other", [{"sensor": "s2"}, {"site": "yard"}, {"sensor": "s9"}, {"site": "nowhere"}])
def test_a_device_writes_its_own_sensor_only_and_a_batch_is_stored_whole_or_not_at_all(
    made: Bench, other: dict[str, str]
) -> None:
    answer = post(made, [reading(1), reading(2) | other])
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "not-your-sensor"
    assert made.store.readings.page("hall").items == made.store.readings.page("yard").items == ()


@pytest.mark.parametrize(
    "change", [{"v": True}, {"value": 21.25}, {"value": 10**400}, {"sensor": "s1\n"}, {"true_value": 4}]
)
def test_an_invalid_reading_is_refused_counted_and_not_repeated(made: Bench, change: dict[str, object]) -> None:
    for body in (reading(1) | change, [reading(2), reading(1) | change]):
        answer = post(made, body)
        assert answer.status_code == 422
        assert set(answer.json()) == {"error"}
        for key, value in change.items():
            assert key in answer.text or key == "true_value"
            assert "true_value" not in answer.text
            assert len(str(value)) < 3 or str(value) not in answer.text.replace(str(LARGEST), "")
    assert made.store.readings.page("hall").items == ()
    assert made.intake.state.problems == {Reason.MALFORMED: 2}


def test_the_ends_of_the_range_are_accepted_and_a_batch_has_up_to_a_thousand(made: Bench) -> None:
    edges = [reading(0, when=0, value=-LARGEST), reading(LARGEST, when=LARGEST, value=LARGEST)]
    assert post(made, edges).json()["accepted"] == 2
    assert post(made, [reading(k) for k in range(1, 1001)]).json()["accepted"] == 1000
    assert post(made, [reading(k) for k in range(1, 1002)]).status_code == 422


def test_a_device_whose_sensor_is_no_longer_collected_gets_an_error(made: Bench) -> None:
    secret = made.store.tokens.create(Role.DEVICE, "hall", "gone").secret
    answer = made.client.post(
        "/v1/readings", json=reading(1, sensor="gone"), headers={"Authorization": f"Bearer {secret}"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "unknown-sensor")
    assert made.intake.state.problems == {Reason.UNKNOWN_SENSOR: 1}


def test_a_busy_intake_and_an_unavailable_store_ask_to_retry(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_: object) -> None:
        raise BusyError("full")

    def away(*_: object, **__: object) -> None:
        raise StoreAwayError("locked by 4711")

    monkeypatch.setattr(made.intake, "submit", busy)
    answer = post(made, reading())
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    assert int(answer.headers["retry-after"]) > 0
    monkeypatch.setattr(made.store.results, "latest", away)
    answer = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store-away")
    assert "4711" not in answer.text


def test_readings_come_back_newest_first_in_steps_and_in_the_unit(made: Bench) -> None:
    made.store.readings.add([Reading("hall", "s1", k, NOW + k, 10 * k, NOW) for k in range(1, 6)])
    made.store.readings.add([Reading("hall", "s2", 1, NOW, 4, NOW), Reading("hall", "old", 1, NOW, 4, NOW)])
    step = watched().plan.sensor("s1").step
    page = get(made, "/v1/sites/hall/readings?sensor=s1&limit=2")
    assert [(item["seq"], item["value"]) for item in page["items"]] == [(5, 50), (4, 40)]
    assert page["items"][0]["reading"] == pytest.approx(50 * step)
    rest = get(made, f"/v1/sites/hall/readings?sensor=s1&limit=3&after={page['next']}")
    assert [item["seq"] for item in rest["items"]] == [3, 2, 1]
    period = get(made, f"/v1/sites/hall/readings?since={NOW + 2}&until={NOW + 4}")
    assert [item["seq"] for item in period["items"]] == [3, 2]
    [old] = get(made, "/v1/sites/hall/readings?sensor=old")["items"]
    assert old["reading"] is None


def test_pages_of_results_are_complete_and_invalid_cursors_are_refused(made: Bench) -> None:
    made.store.readings.add([Reading("hall", "s1", k, NOW + k, 1, NOW) for k in range(25)])
    made.store.results.save([result(NOW + k) for k in range(25)])
    found: list[int] = []
    after = ""
    while True:
        page = get(made, f"/v1/sites/hall/results?limit=10{after}")
        assert all(item["map"] is None for item in page["items"])
        found += [item["time"] for item in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == [NOW + k for k in reversed(range(25))]
    for wrong in ("x", "%00", "!", "Li4uLg", "A" * 199, "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"):
        answer = made.client.get(f"/v1/sites/hall/results?after={wrong}", headers=made.bearer("analyst"))
        assert answer.status_code == 422, wrong
    for wrong in ("limit=0", "limit=1001", "since=-1", "since=x", f"until={LARGEST + 1}", "form=1"):
        answer = made.client.get(f"/v1/sites/hall/results?{wrong}", headers=made.bearer("analyst"))
        assert answer.status_code == 422, wrong


def test_the_latest_result_has_its_map_and_its_sources(made: Bench) -> None:
    made.store.readings.add([Reading("hall", "s1", 1, NOW, 1, NOW)])
    made.store.results.save([result()])
    found = get(made, "/v1/sites/hall/latest")
    assert found == get(made, f"/v1/sites/hall/results/{NOW}")
    assert found["map"] == [0, 0, 0.97, *[0] * 9]
    [source] = found["sources"]
    known = {"place": "3", "at": [0.25], "weight": 1.0, "radius": 0.1, "probability": 0.97, "label": None}
    assert source == {**known, "vicinity": []}
    assert found["counts"] == [0.03, 0.97]
    assert made.client.get(f"/v1/sites/hall/results/{NOW + 1}", headers=made.bearer("analyst")).status_code == 404


def test_a_failed_result_has_null_for_numbers_that_are_not_finite(made: Bench) -> None:
    made.store.readings.add([Reading("hall", "s1", 1, NOW, 1, NOW)])
    made.store.results.save([replace(result(), status="failed: why", gap=float("nan"), fit=float("inf"), map=None)])
    found = get(made, f"/v1/sites/hall/results/{NOW}")
    assert (found["gap"], found["fit"], found["map"]) == (None, None, None)


def test_an_attack_combines_the_frames_of_a_window(made: Bench) -> None:
    sensors, start = watched().ids, NOW - 10_000
    steps = {sensor.id: round(20.0 / sensor.step) for sensor in watched().plan.sensors}
    rows = [Reading("hall", one, k, start + 2000 * k, steps[one], NOW) for k in range(5) for one in sensors]
    made.store.readings.add([*rows, *(Reading("hall", one, 99, NOW - 3_600_000, 0, NOW) for one in sensors)])
    found = get(made, "/v1/sites/hall/attack")
    assert (found["frames"], found["readings"], found["since"]) == (5, 20, start)
    assert found["time"] == start + 8000
    assert len(found["map"]) == 12
    part = get(made, f"/v1/sites/hall/attack?time={start + 2000}")
    assert (part["frames"], part["time"]) == (2, start + 2000)
    answer = made.client.get(f"/v1/sites/hall/attack?time={NOW - 7_200_000}", headers=made.bearer("analyst"))
    assert answer.status_code == 404


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
        found = get(made, "/v1/sites/hall/attack" + ("" if until is None else f"?time={until}"))
        assert (found["frames"], found["since"]) == (len(inside), inside[0])
        assert sum(when in slots for when in inside) <= claim.readings_per_window


def test_health_covers_sensors_recovery_broker_store_problems_and_alarms(made: Bench) -> None:
    period = watched().schedule.period_ms
    now = unix_ms() // period * period - period // 2  # off the slots, on which times would count before others
    made.store.readings.add([Reading("hall", "s1", k, now + k, 1, now) for k in (1, 2)])
    made.store.readings.add([Reading("hall", "s2", 1, now + 1, 1, now), Reading("hall", "s1", 1, now + 1, 2, now)])
    made.store.reports.add([DeviceReport("hall", "s1", "online", 3, 30, now + 9)])
    made.store.problems.add([ProblemCount("hall", "s2", Reason.LATE, 4, now)])
    made.broker.state = BrokerState(False, now, "broker.example cannot be reached")
    found = get(made, "/v1/sites/hall/health", "operator")
    one, two, three, _ = found["sensors"]
    assert (one["state"], one["used"], one["allowed"], one["last_seen"], one["missing"]) == (
        "online",
        3,
        30,
        now + 2,
        0,
    )
    assert (two["state"], two["used"], two["last_seen"], two["missing"], two["late"]) == (None, 1, now + 1, 1, 4)
    assert (three["last_seen"], three["missing"], three["frames"]) == (None, 2, 2)
    assert one["sigma"] == watched().plan.sensor("s1").sigma
    assert found["lag"]["lag_ms"] == 1500
    assert found["lag"]["waiting"] == 3
    assert found["broker"] == {"state": "away", "since": now, "reason": "broker.example cannot be reached"}
    assert found["store"]["state"] == "ok"
    told = get(made, "/v1/sites/hall/health", "analyst")["broker"]
    assert (told["state"], "broker.example" in told["reason"]) == ("away", False), "hosts are for operators"
    late = {"sensor": "s2", "reason": Reason.LATE, "count": 4, "last": now, "code": "late", "breaks_claim": False}
    assert found["problems"] == [late]
    assert [(alarm["sensor"], alarm["seq"]) for alarm in found["alarms"]] == [("s1", 1)]


def test_erasing_needs_a_part_or_an_explicit_everything(made: Bench) -> None:
    made.store.readings.add([Reading("hall", one, 1, NOW + k, 1, NOW) for k, one in enumerate(("s1", "s2", "s3"))])

    def erase(**asked: object) -> tuple[int, Any]:
        answer = made.client.post("/v1/sites/hall/erase", json=asked, headers=made.bearer("operator"))
        return answer.status_code, answer.json()

    assert erase()[0] == 422
    assert erase(everything=True, sensor="s1")[0] == 422
    assert erase(since=5, until=5)[0] == 422
    assert erase(sensor="s1") == (200, {"readings": 1, "results": 0, "reports": 0, "in_files": False})
    assert erase(since=NOW, until=NOW + 2)[1]["readings"] == 1
    assert erase(everything=True)[1]["readings"] == 1


DRAWING = """
name = "flat"
sensors = 2
[physics]
kind = "floorplan"
cell = 0.5
regime = "steady"
reach = 1.0
drawing = '''
#######
#..#..#
#..+..#
#######
'''
[sources]
kind = "lasting"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.5
"""
WALLS = """
name = "flat"
sensors = 2
[physics]
kind = "floorplan"
cell = 0.5
size = [2.0, 1.0]
walls = [[[1.0, 0.0], [1.0, 1.0]]]
doors = [[[1.0, 0.0], [1.0, 0.5]]]
regime = "steady"
reach = 1.0
[sources]
kind = "lasting"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.5
"""
GRAPH = """
name = "pipes"
sensors = 2
[physics]
kind = "graph"
edges = [["a", "b"], ["b", "c", 1.0, 3.0]]
tau = 0.5
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 1.0
"""


def read_only(text: str) -> CollectedSite:
    site = parse_site(text)
    return CollectedSite(site, freeze(site, site.cloak()))


def test_the_geometry_of_a_floor_of_walls_and_doors() -> None:
    found = geometry("flat", read_only(WALLS))
    assert (found.kind, found.width, found.height, found.cell) == ("floorplan", 2.0, 1.0, 0.5)
    assert found.doors == [((1.0, 0.0), (1.0, 0.5))]
    around = [((0.0, 0.0), (0.0, 1.0)), ((2.0, 0.0), (2.0, 1.0)), ((0.0, 0.0), (2.0, 0.0)), ((0.0, 1.0), (2.0, 1.0))]
    assert sorted(found.walls) == sorted([*around, ((1.0, 0.5), (1.0, 1.0))])
    assert len(found.places) == 8


def test_walls_separate_exactly_the_cells_that_the_model_separates() -> None:
    one = read_only(DRAWING)
    found = geometry("flat", one)
    physics = one.site.physics
    assert isinstance(physics, FloorPlan)
    places = np.array(found.places)
    open_pairs = {(int(i), int(j)) for i, j in physics.rooms.pairs}
    for i in range(len(places)):
        for j in range(i + 1, len(places)):
            if np.abs(places[i] - places[j]).sum() < 0.51:
                middle = (places[i] + places[j]) / 2
                walled = any(_on(middle, wall) for wall in found.walls)
                assert walled is ((i, j) not in open_pairs)
    assert len(found.doors) == 2  # the door is a cell of its own, open at both sides
    assert all(any(_on(np.mean(door, axis=0), wall) for wall in found.walls) is False for door in found.doors)


def _on(point: Any, segment: Any) -> bool:
    (a, b), (c, d) = segment
    inside = min(a, c) - 1e-9 <= point[0] <= max(a, c) + 1e-9 and min(b, d) - 1e-9 <= point[1] <= max(b, d) + 1e-9
    return bool(inside)


def test_the_geometry_of_a_network_has_labels_and_edges() -> None:
    found = geometry("pipes", read_only(GRAPH))
    assert found.labels == ["a", "b", "c"]
    assert found.pairs == [(0, 1), (1, 2)]
    assert found.lengths == [1.0, 3.0]
    assert {sensor.at for sensor in found.sensors} <= {"a", "b", "c"}
    json.loads(found.model_dump_json())
