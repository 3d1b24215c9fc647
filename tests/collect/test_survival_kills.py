"""The collector is killed again and again under load: what was acknowledged is in the store, once, and recovered."""

import random
import time
from pathlib import Path

from cloakwork.collect.storage import Result, open_store
from tests.collect.process_kit import until
from tests.collect.survival_kit import Ground, Load, ground

KILLS = 50
EARLY = 0.8  # seconds from the start, at any of which it is killed
FRESH = 10  # every so many lives the process is not forked, but started as a person does it


def live_and_die(parts: Ground, life: int, lots: random.Random) -> None:
    """One life: ended while it starts, after it has stored some readings more, or some results."""
    parts.collector.start(fresh=life % FRESH == FRESH - 1)
    if life % 3 == 0:
        time.sleep(lots.uniform(0, EARLY))
    else:
        table, most = ("readings", 200) if life % 3 == 1 else ("results", 50)
        goal = parts.count(table) + lots.randint(1, most)
        until(lambda: parts.count(table) >= goal, 60, f"no work is done:\n{parts.collector.log}")
        time.sleep(lots.uniform(0, 0.05))
    assert parts.collector.alive, f"it ended by itself:\n{parts.collector.log}"
    parts.collector.kill()


def check_results(parts: Ground, frames: int) -> None:
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


def test_killed_fifty_times_under_load_nothing_acknowledged_is_lost_and_results_resume(
    tmp_path: Path, store_url: str
) -> None:
    with ground(tmp_path, store_url) as parts:
        collector = parts.collector
        collector.start()
        collector.wait_ready()  # the broker knows it from now on, and keeps what it misses
        collector.kill()
        load = Load(parts, frames=10, every=0.12)
        load.start()
        lots = random.Random(50)
        for life in range(KILLS):
            live_and_die(parts, life, lots)
        collector.start()
        frames = load.end()
        until(lambda: parts.count() == 4 * frames, 120, "readings that were acknowledged are missing")
        collector.kill()
        collector.start()  # finds in the store what is left to recover
        until(lambda: parts.left() == 0, 120, "frames without a result are left")
        assert parts.stored() == parts.expected(frames)
        check_results(parts, frames)
        health = collector.wait_ready()
        assert health["alarms"] == []
        assert not [line for line in collector.log.splitlines() if "Traceback" in line or "internal error" in line]
