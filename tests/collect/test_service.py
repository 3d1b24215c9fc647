"""The collector as one object: what starts ends, and what fails to start leaves nothing behind."""

import socket
import threading
from pathlib import Path

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.service import ListenAddress, Service
from cloakwork.collect.storage import DeviceReport, Role, Store
from cloakwork.collect.zone_publisher import AWAY_MS, alarm_reasons
from cloakwork.errors import InputError
from cloakwork.mqtt import AWAY, BrokerAddress
from tests.collect.collector_process import SITE, HttpClient
from tests.collect.small_sites import make, readings
from tests.ports import free_port
from tests.waiting import until


@pytest.fixture
def watched(tmp_path: Path) -> CollectedSite:
    return make(tmp_path, SITE)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cloakwork")]


def test_a_reading_by_http_becomes_a_result_and_all_ends_with_stop(watched: CollectedSite, store: Store) -> None:
    service = Service({"hall": watched}, store, broker=None, listen=ListenAddress(port=0), keep_days=1e6)
    with pytest.raises(RuntimeError, match="not started"):
        assert service.url
    service.start()
    port = int(service.url.rsplit(":", 1)[1])
    assert not service.failed
    for row in readings(watched, 0):
        device = HttpClient(port, store.tokens.create(Role.DEVICE, "hall", row.sensor).secret)
        assert device.post([row]).body == {"accepted": 1, "again": 0, "alarms": 0}
    until(lambda: store.results.latest("hall"))
    service.stop()
    assert ours() == []
    with pytest.raises(OSError, match="refused"):
        HttpClient(port, "").ask("GET", "/healthz")
    service.stop()  # harmless
    assert store.results.latest("hall") is not None, "the store is still the caller's"


def test_a_service_that_fails_to_start_leaves_nothing_running_and_can_start_later(
    watched: CollectedSite, store: Store
) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        service = Service(
            {"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=ListenAddress(port=port)
        )
        with pytest.raises(InputError, match=str(port)):
            service.start()
        assert ours() == []
    service = Service({"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=ListenAddress(port=port))
    service.start()
    assert HttpClient(port, "").ask("GET", "/healthz").body == {"status": "ok"}
    until(lambda: service.subscriber and "cannot be reached" in service.subscriber.state.reason)
    service.stop()
    assert ours() == []


def test_a_sensor_that_is_away_for_a_moment_is_no_alarm(watched: CollectedSite, store: Store) -> None:
    now = 1_700_000_000_000
    states = {"s1": ("offline", now - AWAY_MS + 1), "s2": ("offline", now - AWAY_MS), "s3": ("failing", now)}
    store.reports.add([DeviceReport("hall", name, state, 0, 30, when) for name, (state, when) in states.items()])
    assert alarm_reasons(store, watched, now)[AWAY] == ["s2: offline", "s3: failing"]
