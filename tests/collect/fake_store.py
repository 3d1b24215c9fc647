"""An intake at work for tests, on a store that can be made to fail."""

import threading
from collections.abc import Sequence

from cloakwork.collect.intake import Intake
from cloakwork.collect.message_problems import BudgetRules
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading, ReadingStatus, Store
from cloakwork.collect.storage.readings import ReadingTable
from cloakwork.collect.storage.site_tables import ProblemTable, ReportTable
from cloakwork.sensor.wire import write_reading
from tests.waiting import PATIENCE

NOW = 1_794_731_949_000
DAY = 86_400_000
ALLOWED = 1 << 20


def lenient(*sensors: str, period_ms: int = 60_000) -> BudgetRules:
    """Rules that allow everything."""
    return BudgetRules(1, ALLOWED, period_ms, aligned=False, sensors=frozenset(sensors))


SITES = {"flat": lenient("s1", "s2", period_ms=2000), "hall": lenient("h1")}


class FakeStore(Store):
    """A store in memory that can be made to fail, to stall, or to lose its answer."""

    def __init__(self) -> None:
        self.readings = _FakeReadings(self)
        self.reports = _FakeReports(self)
        self.problems = _FakeProblems(self)
        self.rows: dict[tuple[str, str, int], Reading] = {}
        self.stored_reports: list[DeviceReport] = []
        self.stored_problems: list[ProblemCount] = []
        self.batches: list[int] = []
        self.failure: Exception | None = None
        self.answer_lost = False
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self.attempts = 0

    def call(self) -> None:
        self.calls += 1
        self.gate.wait(PATIENCE)
        self.attempts += 1
        if self.failure is not None:
            raise self.failure


class _FakeReadings(ReadingTable):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def add(self, rows: Sequence[Reading]) -> list[ReadingStatus]:
        store = self._store
        store.call()
        store.batches.append(len(rows))
        statuses = [self._add(row) for row in rows]
        if store.answer_lost:
            store.answer_lost = False
            raise ConnectionError
        return statuses

    def _add(self, row: Reading) -> ReadingStatus:
        first = self._store.rows.setdefault((row.site, row.sensor, row.seq), row)
        if first is row:
            return ReadingStatus.NEW
        return ReadingStatus.AGAIN if (first.time, first.value) == (row.time, row.value) else ReadingStatus.ALARM


class _FakeReports(ReportTable):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def add(self, rows: Sequence[DeviceReport]) -> None:
        self._store.call()
        self._store.stored_reports.extend(rows)


class _FakeProblems(ProblemTable):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def add(self, rows: Sequence[ProblemCount]) -> None:
        self._store.call()
        self._store.stored_problems.extend(rows)


class IntakeHarness:
    """An intake at work, with what it said to its listeners."""

    def __init__(self, store: Store, *, capacity: int = 10_000) -> None:
        self.new: list[Reading] = []
        self.done = 0
        self.intake = Intake(store, SITES, on_new=self.new.extend, clock=lambda: NOW, capacity=capacity)
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
