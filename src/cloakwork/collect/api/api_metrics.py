"""Figures for Prometheus."""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cloakwork.collect.intake import REASONS, Intake
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import ReadingStatus, Store
from cloakwork.errors import StoreError
from cloakwork.mqtt import MqttClient
from cloakwork.sensor.wire import STATES

REQUEST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def reason_code(reason: str) -> str:
    """The stable code of a problem's reason, for programs.

    >>> reason_code("late: stored after its frame was due")
    'late'
    """
    return reason.partition(":")[0]


class ApiMetrics(Collector):
    """Counts for one app, in a registry of its own, and the figures of the other parts, read at each scrape."""

    def __init__(
        self, sites: Sequence[str], store: Store, intake: Intake, live: LiveRecovery, broker: MqttClient | None
    ) -> None:
        self._sites, self._store = sites, store
        self._intake, self._live, self._broker = intake, live, broker
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        labels = ["method", "route", "status"]
        self._requests = Histogram("cloakwork_http_seconds", "One request.", labels, buckets=REQUEST_S, **own)
        self.streams = Gauge("cloakwork_event_streams", "Open event streams.", **own)
        self.registry.register(self)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; event streams, which stay open, count when they end."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def describe(self) -> list[Metric]:
        return []  # nothing in advance: the parts need not have started

    def collect(self) -> Iterator[Metric]:
        state = self._intake.state
        readings = CounterMetricFamily("cloakwork_readings", "Readings by verdict.", labels=["verdict"])
        readings.add_metric([ReadingStatus.NEW], state.stored)
        for verdict, reason in REASONS.items():
            readings.add_metric([verdict], state.problems.get(reason, 0))
        yield readings
        problems = CounterMetricFamily("cloakwork_problems", "Problems by reason.", labels=["reason"])
        for reason in Reason:
            problems.add_metric([reason_code(reason)], state.problems.get(reason, 0))
        yield problems
        yield GaugeMetricFamily("cloakwork_queued_readings", "Readings that wait to be stored.", state.queued)
        yield GaugeMetricFamily("cloakwork_store_writable", "Whether the store accepts readings.", int(state.storing))
        yield from self._recovery()
        with suppress(StoreError):  # `store_writable` shows that
            yield from self._stored()
        if self._broker is not None:
            connected = int(self._broker.state.connected)
            yield GaugeMetricFamily("cloakwork_broker_connected", "Whether the broker sends readings.", connected)

    def _recovery(self) -> list[Metric]:
        lags = GaugeMetricFamily("cloakwork_lag_seconds", "Age of the newest recovered frame.", labels=["site"])
        backlog = GaugeMetricFamily("cloakwork_backlog_frames", "Frames that wait to be recovered.", labels=["site"])
        took = GaugeMetricFamily("cloakwork_solve_seconds", "Recent time to recover one frame.", labels=["site"])
        for site in self._sites:
            state = self._live.state(site)
            if state.lag_ms is not None:
                lags.add_metric([site], state.lag_ms / 1000)
            backlog.add_metric([site], state.waiting)
            took.add_metric([site], state.took_ms / 1000)
        return [lags, backlog, took]

    def _stored(self) -> list[Metric]:
        """The state that each device reported last, and the changes of the physics that have not ended."""
        states = GaugeMetricFamily("cloakwork_sensors", "Sensors by reported state.", labels=["site", "state"])
        faults = GaugeMetricFamily("cloakwork_physics_faults", "Changes of the physics that last.", labels=["site"])
        for site in self._sites:
            found = Tally(report.state for report in self._store.reports.latest(site))
            for state in STATES:
                states.add_metric([site, state], found[state])
            faults.add_metric([site], sum(fault.ended is None for fault in self._store.checks.faults(site)))
        return [states, faults]
