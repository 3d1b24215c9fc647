"""Attack: one device fills the store with readings that it stamps as it likes."""

import random
import time
from functools import partial
from pathlib import Path

import httpx2

from cloakwork.collect.message_problems import WAITED_MS, BudgetRules, Quota
from cloakwork.collect.service import ListenAddress, Service
from cloakwork.collect.storage import Reading, Role, open_store
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.wire import topic, write_reading
from tests.attacks.conftest import Attack
from tests.broker import Broker, running_broker
from tests.collect.collector_process import SITE, HttpClient
from tests.collect.small_sites import make
from tests.collect.subscriber_kit import publish
from tests.waiting import PATIENCE, until

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
RULES = BudgetRules(window_ms=HOUR_MS, allowed=2, period_ms=1_800_000, aligned=False)
BATCH = 500


def one_hour(count: int, sensor: str) -> list[Reading]:
    """Readings that are all stamped within one hour of yesterday, and few times, so that few maps are computed."""
    start = (int(time.time() * 1000) // HOUR_MS - 24) * HOUR_MS
    return [Reading("hall", sensor, 1000 + k, start + k % 5, 5, 0) for k in range(count)]


def flagged(client: HttpClient, sensor: str) -> bool:
    """Whether the collector's health and its metrics have an alarm about a sensor."""
    reasons = {(problem["sensor"], problem["code"]) for problem in client.health()["problems"]}
    head = {"Authorization": f"Bearer {client.secret}"}
    text = httpx2.get(f"http://127.0.0.1:{client.port}/metrics", headers=head, timeout=PATIENCE).text
    figures = [line for line in text.splitlines() if line.startswith('cloakwork_problems_total{reason="over budget"}')]
    return (sensor, "over budget") in reasons and float(figures[0].split()[-1]) > 0


def send(broker: Broker, rows: list[Reading]) -> None:
    publish(broker, [(topic(row.site, row.sensor, "reading"), write_reading(*row[2:5])) for row in rows])


def test_a_device_that_floods_by_http_or_through_the_broker_is_flagged(attack: Attack, tmp_path: Path) -> None:
    """Two devices send many back-dated readings at once, by HTTP and through a real broker.

    Claim: both are flagged, and another device is none the worse.
    """
    count, watched = attack.size(300, 30_000), make(tmp_path, SITE)
    with running_broker(tmp_path / "broker", quiet=True) as broker, open_store(str(tmp_path / "store.db")) as store:
        address = BrokerAddress(broker.host, broker.port)
        service = Service({"hall": watched}, store, broker=address, listen=ListenAddress(port=0))
        service.start()
        try:
            port = int(service.url.rsplit(":", 1)[1])
            operator = HttpClient(port, store.tokens.create(Role.OPERATOR).secret)
            device = HttpClient(port, store.tokens.create(Role.DEVICE, "hall", "s4").secret)
            until(lambda: operator.health()["broker"]["state"] == "ok")
            send(broker, one_hour(count, "s1"))
            rows = one_hour(count, "s4")
            for start in range(0, count, BATCH):
                until(partial(_answered, device, rows[start : start + BATCH]))
            until(lambda: flagged(operator, "s1") and flagged(operator, "s4"))
            send(broker, [row._replace(sensor="s2") for row in rows[:10]])
            until(lambda: len(store.readings.page("hall", sensor="s2").items) == 10)
            attack.expect(all(flagged(operator, sensor) for sensor in ("s1", "s4")))
        finally:
            service.stop()


def _answered(device: HttpClient, rows: list[Reading]) -> bool:
    """Whether a request is stored or refused for good, rather than put off."""
    answer = device.post(rows)
    done: bool = answer.status == 200 or answer.body["error"]["code"] == "over-quota"
    if not done:
        time.sleep(int(answer.headers["retry-after"]))  # each attempt counts, so hasty ones would never succeed
    return done


def test_no_device_gets_more_than_its_quota_into_the_store(attack: Attack) -> None:
    """One device sends twice as many readings as it may, at random moments of ten days; no stamp counts.

    Claim: the store keeps at most an outbox and what the plan allows in a month, and then what the plan allows.
    """
    outbox, days = attack.size(200, 50_000), 10
    now, rng = 1_794_731_949_000, random.Random(7)
    claimed = outbox + RULES.most(WAITED_MS + days * DAY_MS)
    quota, tried = Quota(RULES, outbox=outbox), 2 * claimed
    moments = sorted(rng.randrange(days * DAY_MS) for _ in range(tried))
    attack.compare(sum(quota.take(now + moment) for moment in moments), claimed, tried=tried)
