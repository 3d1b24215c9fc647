"""Sites: their shape, their health (one device can neither hide others nor distort their figures), and erasing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.site_geometry import longer_window
from cloakwork.collect.api.site_geometry import site_geometry as geometry
from cloakwork.collect.message_problems import CANNOT_MEASURE, CLAIM_BREAKING, Reason
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading
from cloakwork.mqtt import BrokerState
from cloakwork.physics import FloorPlan
from cloakwork.privacy import Profile
from cloakwork.sensor.wire import write_status
from tests.collect.api_kit import NOW, Bench, bench, collected, watched
from tests.collect.fake_store import ALLOWED
from tests.collect.small_sites import FLAT, flat_site
from tests.waiting import until

PERIOD = watched().schedule.period_ms
HERE = NOW // PERIOD * PERIOD  # the present slot
FAR = 4_102_444_800_000 // PERIOD * PERIOD  # in the year 2100


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path, clock=lambda: NOW) as running:
        yield running


def sensors(made: Bench) -> dict[str, Any]:
    return {one["id"]: one for one in made.get("/v1/sites/hall/health")["sensors"]}


def reading(sensor: str, seq: int, slot: int, *, received: int = NOW) -> Reading:
    """A reading so many slots before the present one."""
    return Reading("hall", sensor, seq, HERE - slot * PERIOD, 5, received)


def report(sensor: str, used: int, *, state: str = "online", received: int = NOW) -> DeviceReport:
    return DeviceReport("hall", sensor, state, used, 30, received)


def test_the_higher_of_the_reported_and_the_stored_count_is_used(made: Bench) -> None:
    made.store.reports.add([report("s1", 1), report("s2", 9)])
    made.store.readings.add([reading(name, k, k) for name in ("s1", "s2") for k in range(1, 6)])
    found = sensors(made)
    assert (found["s1"]["used"], found["s2"]["used"], found["s3"]["used"]) == (5, 9, None)


@pytest.mark.parametrize(("state", "age"), [("offline", 0), ("online", 61_000)])
def test_a_last_will_or_an_old_report_does_not_count_for_this_window(made: Bench, state: str, age: int) -> None:
    made.store.reports.add([report("s1", 20, state=state, received=NOW - age)])
    assert sensors(made)["s1"]["used"] is None
    made.store.readings.add([reading("s1", 1, 1)])
    assert sensors(made)["s1"]["used"] == 1, "a reading does not make an old report young"


def test_more_readings_than_allowed_are_counted_whatever_the_device_reports(made: Bench) -> None:
    made.store.reports.add([report("s1", 0)])
    made.store.readings.add([Reading("hall", "s1", k, NOW - 50_000 + 100 * k, 5, NOW) for k in range(31)])
    assert (sensors(made)["s1"]["used"], sensors(made)["s1"]["allowed"]) == (31, 30)


@pytest.mark.parametrize("reason", CANNOT_MEASURE.values())
def test_a_device_that_cannot_measure_is_a_problem_of_its_sensor(made: Bench, reason: Reason) -> None:
    state = reason_code(reason)
    made.intake.offer("cloakwork/v1/hall/s1/status", write_status(state, 3, ALLOWED), lambda: None)
    until(lambda: made.get("/v1/sites/hall/health")["problems"])
    [problem] = made.get("/v1/sites/hall/health")["problems"]
    assert (problem["sensor"], problem["code"], problem["breaks_claim"]) == ("s1", state, False)
    assert [sensors(made)[name]["state"] for name in ("s1", "s2")] == [state, None]


def test_times_far_ahead_and_reports_that_the_broker_kept_are_no_readings(made: Bench) -> None:
    made.store.readings.add([reading("s1", k, -(FAR // PERIOD) + k) for k in range(70)])
    made.store.readings.add([reading("s2", 1, 500)])
    made.store.reports.add([report(name, 3, state="offline") for name in ("s2", "s4")])
    last = {name: one["last_reading"] for name, one in sensors(made).items()}
    assert last == {"s1": None, "s2": HERE - 500 * PERIOD, "s3": None, "s4": None}


def test_health_covers_recovery_broker_store_problems_and_alarms(made: Bench) -> None:
    made.store.readings.add([reading("s1", 1, 2), reading("s2", 1, 2)])
    made.store.readings.add([reading("s2", 1, 1)])
    for slot in (1, 3):  # one sensor's many alarms hide no other's
        made.store.readings.add([reading("s1", k, slot, received=NOW + 10**6) for k in range(300)])
    made.store.problems.add([ProblemCount("hall", "s2", reason.value, 4, NOW) for reason in Reason])
    made.broker.state = BrokerState(False, NOW, "broker.example cannot be reached")
    found = made.get("/v1/sites/hall/health", "operator")
    assert (found["lag"]["lag_ms"], found["lag"]["waiting"]) == (1500, 3)
    assert found["broker"] == {"state": "away", "since": NOW, "reason": "broker.example cannot be reached"}
    assert found["store"]["state"] == "ok"
    link = made.get("/v1/sites/hall/health")["broker"]
    assert (link["state"], "broker.example" in link["reason"]) == ("away", False), "hosts are for operators"
    problems = {one["reason"]: one for one in found["problems"]}
    late = {"site": "hall", "sensor": "s2", "reason": Reason.LATE, "count": 4, "last": NOW, "code": "late"}
    assert problems[Reason.LATE] == late | {"breaks_claim": False}
    assert {reason for reason, one in problems.items() if one["breaks_claim"]} == set(CLAIM_BREAKING)
    assert {one["sensor"] for one in found["alarms"]} == {"s1", "s2"}


def test_erasing_needs_a_part_or_an_explicit_everything(made: Bench) -> None:
    made.store.readings.add([Reading("hall", one, 1, NOW + k, 1, NOW) for k, one in enumerate(("s1", "s2", "s3"))])

    def erase(**body: object) -> tuple[int, Any]:
        answer = made.post("/v1/sites/hall/erase", body, "operator")
        return answer.status_code, answer.json()

    assert [erase()[0], erase(everything=True, sensor="s1")[0], erase(since=5, until=5)[0]] == [422] * 3
    assert erase(sensor="s1") == (200, {"readings": 1, "results": 0, "reports": 0, "in_files": False})
    assert erase(since=NOW, until=NOW + 2)[1]["readings"] == 1
    assert erase(everything=True)[1]["readings"] == 1


FLOOR = """
name = "flat"
sensors = 2
[physics]
kind = "floorplan"
cell = 0.5
regime = "steady"
reach = 1.0
{shape}
[sources]
kind = "lasting"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.5
"""
DRAWING = "drawing = '''\n#######\n#..#..#\n#..+..#\n#######\n'''"
WALLS = "size = [2.0, 1.0]\nwalls = [[[1.0, 0.0], [1.0, 1.0]]]\ndoors = [[[1.0, 0.0], [1.0, 0.5]]]"
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


def test_the_geometry_of_a_floor_of_walls_and_doors() -> None:
    found = geometry("flat", collected(FLOOR.replace("{shape}", WALLS)))
    assert (found.kind, found.width, found.height, found.cell) == ("floorplan", 2.0, 1.0, 0.5)
    assert found.doors == [((1.0, 0.0), (1.0, 0.5))]
    around = [((0.0, 0.0), (0.0, 1.0)), ((2.0, 0.0), (2.0, 1.0)), ((0.0, 0.0), (2.0, 0.0)), ((0.0, 1.0), (2.0, 1.0))]
    assert sorted(found.walls) == sorted([*around, ((1.0, 0.5), (1.0, 1.0))])
    assert len(found.places) == 8


def test_walls_separate_exactly_the_cells_that_the_model_separates() -> None:
    one = collected(FLOOR.replace("{shape}", DRAWING))
    found, physics = geometry("flat", one), one.site.physics
    assert isinstance(physics, FloorPlan)
    places = np.array(found.places)
    open_pairs = {(int(i), int(j)) for i, j in physics.rooms.pairs}
    for i in range(len(places)):
        for j in range(i + 1, len(places)):
            if np.abs(places[i] - places[j]).sum() < 0.51:
                middle = (places[i] + places[j]) / 2
                assert any(_on(middle, wall) for wall in found.walls) is ((i, j) not in open_pairs)
    assert len(found.doors) == 2  # the door is a cell of its own, open at both sides
    assert not any(_on(np.mean(door, axis=0), wall) for door in found.doors for wall in found.walls)


def _on(point: Any, segment: Any) -> bool:
    (a, b), (c, d) = segment
    inside = min(a, c) - 1e-9 <= point[0] <= max(a, c) + 1e-9 and min(b, d) - 1e-9 <= point[1] <= max(b, d) + 1e-9
    return bool(inside)


def test_the_geometry_of_a_network_has_labels_and_edges() -> None:
    found = geometry("pipes", collected(GRAPH))
    assert (found.labels, found.pairs, found.lengths) == (["a", "b", "c"], [(0, 1), (1, 2)], [1.0, 3.0])
    assert {sensor.at for sensor in found.sensors} <= {"a", "b", "c"}
    json.loads(found.model_dump_json())


def test_eight_hours_locate_a_source_that_stays() -> None:
    one = watched()
    longer, claim = longer_window(one), one.plan.claim
    windows = 28_800 / claim.window
    assert longer.seconds == 28_800
    composed = Profile(one.cloak.frame_mu * np.sqrt(claim.readings_per_window * windows)).epsilon(claim.delta)
    assert longer.epsilon == pytest.approx(composed, rel=0.01)
    # along a line, the information about a place is the squared slope of all readings in units of their noise
    steps = np.diff(one.cloak.physics.matrix, axis=1) / np.diff(one.site.physics.space.places, axis=0).T
    information = np.median(((steps.T / one.cloak.sigmas) ** 2).sum(axis=1)) * claim.readings_per_window * windows
    assert longer.radius == pytest.approx(information**-0.5, rel=0.15)


def test_a_site_states_its_claim_for_stays(tmp_path: Path) -> None:
    stay = '[privacy.stay]\nlength = "8h"\nepsilon = 8.0\ndelta = 1e-5\n'
    with bench(tmp_path, sites={"flat": flat_site(FLAT + stay)}) as made:
        [found] = made.get("/v1/sites")
    assert found["stay"] == {"seconds": 28_800.0, "epsilon": 8.0, "delta": 1e-5}
