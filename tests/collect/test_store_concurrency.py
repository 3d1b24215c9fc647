"""Several threads and several processes on one store: each reading once, each verdict right."""

import json
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cloakwork.collect.storage import ProblemCount, Role, Store, open_store
from tests.collect.store_rows import SITE, START, frames, moment, reading, report, result, waiting
from tests.forking import python
from tests.waiting import PATIENCE

# a process that adds the same readings as others, with its own values, in its own order
WRITER = """
import json, random, sys
from cloakwork.collect.storage import Reading
from cloakwork.collect.storage import open_store
url, own, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lot = random.Random(own)
said = []
with open_store(url, wait_s=60) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(0, count, 50):
        rows = [Reading("flat", f"s{k % 7}", k, k // 7, own, own) for k in range(start, start + 50)]
        lot.shuffle(rows)
        said += [(row.sensor, row.seq, verdict.value) for row, verdict in zip(rows, store.readings.add(rows))]
print(json.dumps(said))
"""


def at_once(*works: Callable[[], object]) -> None:
    """Run all at the same moment, each in its own thread; raises what one raises."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait(PATIENCE)
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result(120)


def test_two_processes_share_a_store(store_url: str) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [python(WRITER, store_url, own, 400, **pipes) for own in (1, 2)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:  # both begin before either is waited for
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in running]
    with open_store(store_url) as store:
        stored = {(row.sensor, row.seq): row.value for row in store.readings.iterate(SITE)}
        assert len(stored) == 400
        for own, verdicts in enumerate(said, start=1):
            for sensor, seq, verdict in verdicts:
                assert verdict == ("new" if stored[sensor, seq] == own else "alarm")
        assert len(store.readings.alarms(SITE, each=1000)) == 400
        assert len(waiting(store)) == len({k // 7 for k in range(400)} - {0}), "a clock that is not set makes no frame"


def test_everything_at_once_is_all_there(store_url: str) -> None:
    """Two stores on one database, as two collectors have: readings, results, reports, problems and tokens together."""
    with open_store(store_url, wait_s=60) as one, open_store(store_url, wait_s=60) as two:

        def readings(store: Store, sensors: range) -> None:
            for frame in range(60):
                store.readings.add([reading(f"s{k}", frame) for k in sensors])

        def solve(store: Store) -> None:
            for _ in range(40):
                times = waiting(store)[:20]
                found = store.frames.values(SITE, times)
                store.results.save([result(0, len(found[time]), time=time) for time in times if found[time]])

        def others(store: Store, own: int) -> None:
            for k in range(40):
                rows = [report(f"s{k % 5}", used=k, received=START + k), report(f"s{(k + own) % 5}", received=START)]
                store.reports.add(rows)
                store.problems.add(
                    [ProblemCount(SITE, f"s{(k * own) % 3}", "late", 1, k), ProblemCount(SITE, "s0", "again", 1, k)]
                )
            store.tokens.create(Role.ANALYST, label=str(own))

        at_once(
            lambda: readings(one, range(5)),
            lambda: readings(two, range(5, 10)),
            lambda: solve(one),
            lambda: solve(two),
            lambda: others(one, 1),
            lambda: others(two, 2),
        )
        assert len(list(one.readings.iterate(SITE))) == 600
        solve(one)
        assert waiting(one) == []
        assert {found.sensors for found in two.results.page(SITE).items} == {10}
        assert sum(problem.count for problem in one.problems.counts(SITE)) == 160
        assert {token.label for token in one.tokens.list_all()} == {"1", "2"}


def test_a_late_reading_is_never_overlooked_by_the_solver(store_url: str) -> None:
    """Whatever the order in which a result and the last reading of its frame arrive, one of the two is noticed."""
    with open_store(store_url, wait_s=60) as one, open_store(store_url, wait_s=60) as two:
        one.readings.add(frames(60, 2))
        at_once(
            lambda: [one.results.save([result(frame, 2)]) for frame in range(60)],
            lambda: [two.readings.add([reading("s3", frame)]) for frame in range(60)],
        )
        assert waiting(one) == [moment(frame) for frame in range(60)]
