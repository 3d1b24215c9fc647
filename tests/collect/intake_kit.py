"""An intake at work for tests, on a store that can be made to fail."""

import threading
import time
from collections.abc import Callable, Sequence

from cloakwork.collect.intake import Intake
from cloakwork.collect.records import Problem, Reading, Report, Verdict
from cloakwork.collect.store import Store
from cloakwork.sensor.wire import write_reading

SITES = {"flat": {"s1", "s2"}, "hall": {"h1"}}
NOW = 1_794_731_949_000
DAY = 86_400_000


class Shelf:
    """A store in memory that can be made to fail, to stall, or to lose its answer."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, int], Reading] = {}
        self.reports: list[Report] = []
        self.problems: list[Problem] = []
        self.batches: list[int] = []
        self.failure: Exception | None = None
        self.answer_lost = False
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self.attempts = 0

    def _go(self) -> None:
        self.calls += 1
        self.gate.wait(10)
        self.attempts += 1
        if self.failure is not None:
            raise self.failure

    def add_readings(self, rows: Sequence[Reading]) -> list[Verdict]:
        self._go()
        self.batches.append(len(rows))
        said = [self._add(row) for row in rows]
        if self.answer_lost:
            self.answer_lost = False
            raise ConnectionError
        return said

    def _add(self, row: Reading) -> Verdict:
        first = self.rows.setdefault((row.site, row.sensor, row.seq), row)
        if first is row:
            return Verdict.NEW
        return Verdict.AGAIN if (first.time, first.value) == (row.time, row.value) else Verdict.ALARM

    def add_reports(self, rows: Sequence[Report]) -> None:
        self._go()
        self.reports.extend(rows)

    def add_problems(self, rows: Sequence[Problem]) -> None:
        self._go()
        self.problems.extend(rows)


class Desk:
    """An intake at work, with what it said to its listeners."""

    def __init__(self, store: Shelf | Store, *, capacity: int = 10_000) -> None:
        self.new: list[Reading] = []
        self.reports: list[Report] = []
        self.done = 0
        self.intake = Intake(
            store,
            SITES,
            on_new=self.new.extend,
            on_report=self.reports.extend,
            periods={"flat": 2000},
            clock=lambda: NOW,
            capacity=capacity,
        )
        self.intake.start()

    def _done(self) -> None:
        self.done += 1

    def offer(self, topic: str, payload: bytes) -> None:
        self.intake.offer(topic, payload, self._done)

    def reading(self, seq: int, *, stamp: int = NOW, value: int = 5, sensor: str = "s1") -> None:
        self.offer(f"cloakwork/v1/flat/{sensor}/reading", write_reading(seq, stamp, value))

    def send(self, count: int) -> threading.Thread:
        """Readings from another thread, which waits where it has to."""

        def work() -> None:
            for seq in range(count):
                self.reading(seq)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def counted(self) -> dict[str, int]:
        return dict(self.intake.state.problems)


def row(seq: int, *, site: str = "flat", sensor: str = "s1", value: int = 5, stamp: int = NOW) -> Reading:
    return Reading(site, sensor, seq, stamp, value, NOW)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
