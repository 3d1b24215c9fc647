"""The collector is killed repeatedly under load: every acknowledged reading is stored once, and recovered."""

import random
import time
from pathlib import Path

from cloakwork.collect.storage import Result, open_store
from tests.collect.deployment import Deployment, Load, deployment
from tests.waiting import until

KILLS = 6  # two at each of three points: during the start, after new readings, after new results
EARLY = 0.8  # seconds from the start within which it is killed
FRESH = 4  # this life is not forked, but started as a person does it


def live_and_die(parts: Deployment, life: int, lots: random.Random) -> None:
    """One life: killed while it starts, after it has stored some more readings, or some results."""
    parts.collector.start(fresh=life == FRESH)
    if life % 3 == 0:
        time.sleep(lots.uniform(0, EARLY))
    else:
        table, most = ("readings", 60) if life % 3 == 1 else ("results", 12)
        goal = parts.count(table) + lots.randint(1, most)
        until(lambda: parts.count(table) >= goal, f"it does nothing:\n{parts.collector.log}")
        time.sleep(lots.uniform(0, 0.05))
    assert parts.collector.alive, f"it ended on its own:\n{parts.collector.log}"
    parts.collector.kill()


def check_results(parts: Deployment, frames: int) -> None:
    """Every frame has a result from all sensors."""
    with open_store(parts.url) as store:
        found: list[Result] = []
        after = None
        while True:
            page = store.results.page("hall", limit=1000, after=after)
            found += page.items
            after = page.next
            if after is None:
                break
    assert len(found) == frames
    assert {(result.sensors, result.expected) for result in found} == {(4, 4)}
    assert not [result.status for result in found if result.status.startswith("failed")]


def test_a_collector_that_is_killed_repeatedly_loses_nothing_acknowledged_and_resumes_recovery(
    tmp_path: Path, store_url: str
) -> None:
    with deployment(tmp_path, store_url) as parts:
        collector = parts.collector
        collector.start()
        collector.wait_ready()  # from now on the broker keeps what it misses
        collector.kill()
        load = Load(parts, frames=4, every=0.2)
        load.start()
        lots = random.Random(50)
        for life in range(KILLS):
            live_and_die(parts, life, lots)
        collector.start()
        frames = load.end()
        until(lambda: parts.count() == 4 * frames, "readings that were acknowledged are missing")
        collector.kill()
        collector.start()  # it finds the remaining frames in the store
        while left := parts.left():  # a busy machine was slow to kill it, so there are more of them
            until(lambda: parts.left() < left, "frames without a result are left")
        assert parts.stored() == parts.expected(frames)
        check_results(parts, frames)
        health = collector.wait_ready()
        assert health["alarms"] == []
        assert not [line for line in collector.log.splitlines() if "Traceback" in line or "internal error" in line]
