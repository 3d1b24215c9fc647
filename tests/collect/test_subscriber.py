"""From a real broker into a real store: nothing acknowledged is lost, nothing is stored twice, whatever happens."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloakwork.collect.intake import Intake
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.service import make_subscriber
from cloakwork.collect.storage import open_store
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from cloakwork.mqtt.client import HELD_BACK
from tests.broker import Broker, running_broker
from tests.collect.subscriber_kit import Collector, publish, reading, stored
from tests.waiting import until


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker", quiet=True) as found:
        yield found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_readings_published_while_the_collector_is_away_arrive_when_it_is_back(broker: Broker, path: Path) -> None:
    with Collector(broker, path) as collector:
        until(collector.connected)
        assert collector.subscriber.state.reason == ""
    assert (collector.subscriber.state.connected, collector.subscriber.state.reason) == (False, "stopped")
    publish(broker, map(reading, range(1000)))
    with Collector(broker, path) as collector:
        until(lambda: len(collector.new) == 1000)
    assert stored(path) == dict.fromkeys(range(1000), 1)
    with Collector(broker, path) as collector:
        publish(broker, [reading(1000)])
        until(lambda: collector.new)
        assert collector.counted(Reason.DUPLICATE) == 0, "everything had been acknowledged before"


def test_a_store_that_fails_for_seconds_holds_the_broker_back(broker: Broker, path: Path) -> None:
    """It fails for longer than two keep-alives, so that the connection is lost and made again meanwhile."""
    with Collector(broker, path, capacity=100, keep_alive=1) as collector:
        until(collector.connected)
        publish(broker, map(reading, range(100)))
        until(lambda: len(collector.new) == 100)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        publish(broker, map(reading, range(100, 2000)))
        queued = []

        def held_back() -> bool:
            queued.append(collector.intake.state.queued)
            return collector.subscriber.state.reason == HELD_BACK

        until(held_back)
        until(lambda: not collector.intake.state.storing)
        state = collector.intake.state
        assert "locked" in state.reason
        assert max(queued) == 100
        assert len(collector.new) == 100
        other.execute("COMMIT")
        other.close()
        until(lambda: len(collector.new) == 2000)
        until(collector.connected)
        assert collector.intake.state.storing
    assert stored(path) == dict.fromkeys(range(2000), 1)


def test_it_can_subscribe_to_its_own_sites_only(broker: Broker, path: Path) -> None:
    with Collector(broker, path, sites=["flat"]) as collector:
        until(collector.connected)
        publish(broker, [("cloakwork/v1/barn/s01/reading", reading(0)[1]), reading(5)])
        until(lambda: collector.new)
        assert collector.intake.state.problems == {}


@pytest.mark.parametrize("group", ["", "a/b", "+", "#"])
def test_a_group_is_a_name(group: str, path: Path) -> None:
    with open_store(str(path)) as store:
        intake = Intake(store, {}, on_new=lambda _: None)
        with pytest.raises(InputError) as problem:
            make_subscriber(BrokerAddress(), intake, group=group)
        assert problem.value.values == {"group": group}


def test_settings_that_cannot_work_are_refused(path: Path, tmp_path: Path) -> None:
    with open_store(str(path)) as store:
        intake = Intake(store, {}, on_new=lambda _: None)
        with pytest.raises(InputError) as problem:
            make_subscriber(BrokerAddress(), intake, client_id="")
        assert problem.value.values == {"client_id": ""}
        for content in (None, "no certificate"):
            file = tmp_path / "ca.pem"
            if content is not None:
                file.write_text(content)
            with pytest.raises(InputError) as problem:
                make_subscriber(BrokerAddress(tls=True, authority=file), intake)
            assert problem.value.values == {"path": str(file)}
