"""Faults of the physics in a collector, on a real store: found, kept over a restart, ended, forgotten when erased."""

from collections.abc import Sequence
from dataclasses import replace

from cloakwork.collect.physics_watch import TEXTS, fault_text
from cloakwork.collect.storage import FoundFault, PhysicsCheck, Store
from cloakwork.recovery import FaultKind
from tests.collect.api_kit import bench
from tests.collect.small_sites import FLAT, flat_site, moment, readings, running, values
from tests.waiting import until

SITE = flat_site(FLAT + "speed = 0\n", 30.0)
STUCK = "s03"


def run(store: Store, numbers: Sequence[int], *, broken: bool) -> None:
    """Frames that a collector finds in the store when it starts; a broken sensor reads far too little."""
    sigma, step = SITE.cloak.sigmas[SITE.index[STUCK]], SITE.cloak.steps[SITE.index[STUCK]]
    for number in numbers:
        said = values(SITE, (1.25, 1.25), seed=number)
        said[STUCK] -= round(4 * sigma / step) if broken else 0
        store.readings.add(readings(SITE, number, said))
    with running(store, SITE):
        until(lambda: not store.frames.waiting(SITE.name))


def test_a_fault_is_reported_once_set_aside_kept_over_a_restart_and_ends(sqlite_store: Store) -> None:
    run(sqlite_store, range(10), broken=True)
    (fault,) = sqlite_store.checks.faults(SITE.name)
    assert (fault.sensor, fault.ended) == (STUCK, None)
    assert moment(SITE, 3) <= fault.raised <= moment(SITE, 9)
    assert STUCK in fault_text(fault)
    run(sqlite_store, range(10, 14), broken=True)
    (again,) = sqlite_store.checks.faults(SITE.name)
    assert (again.raised, again.ended) == (fault.raised, None)
    newest = sqlite_store.results.get(SITE.name, moment(SITE, 13))
    assert newest is not None
    assert newest.set_aside == (STUCK,)
    run(sqlite_store, range(14, 40), broken=False)
    (over,) = sqlite_store.checks.faults(SITE.name)
    assert over.raised == fault.raised
    assert over.ended is not None
    assert moment(SITE, 14) < over.ended <= moment(SITE, 39)


def test_erasing_readings_forgets_what_the_tests_know_and_retention_does_not(sqlite_store: Store) -> None:
    run(sqlite_store, range(10), broken=True)
    sqlite_store.erase_older(SITE.name, 1.0)
    assert len(sqlite_store.checks.faults(SITE.name)) == 1
    sqlite_store.erase(SITE.name)
    assert sqlite_store.checks.load(SITE.name) is None


def test_of_two_collectors_the_second_to_save_is_refused(store: Store) -> None:
    check = PhysicsCheck("flat", "model", 5, b"state", (FoundFault("s1", "dead", "", 4),))
    assert store.checks.save(check, after=None)
    assert not store.checks.save(replace(check, time=6), after=None)
    assert store.checks.save(replace(check, time=6), after=5)
    assert not store.checks.save(replace(check, time=7), after=5)
    assert store.checks.load("flat") == replace(check, time=6)


def test_health_and_events_tell_of_a_fault_and_what_to_do(tmp_path: object) -> None:
    assert set(TEXTS) == set(FaultKind)
    with bench(tmp_path) as made:  # type: ignore[arg-type]
        fault = FoundFault("s1", "moved", "s2", 4)
        made.store.checks.save(PhysicsCheck("hall", "model", 5, b"", (fault,)), after=None)
        health = made.client.get("/v1/sites/hall/health", headers=made.bearer("analyst")).json()
    assert health["faults"] == [
        {"sensor": "s1", "kind": "moved", "other": "s2", "text": fault_text(fault), "raised": 4, "ended": None}
    ]
    assert "s1" in fault_text(fault)
    assert "position of s2" in fault_text(fault)
