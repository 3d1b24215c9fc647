"""Attack: one device fills the store with readings that it stamps as it likes."""

import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import pytest

from cloakwork.collect.device_quota import DAY_MS, HOUR_MS, WAITED_MS, DeviceQuota
from cloakwork.collect.message_problems import BudgetRules
from cloakwork.collect.storage import Reading, Store, open_store
from tests.attacks.conftest import Attack
from tests.collect.deployment import Deployment, deployment
from tests.waiting import PATIENCE, until

RULES = BudgetRules(window_ms=HOUR_MS, allowed=2, period_ms=1_800_000, aligned=False)
BATCH = 500


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


def one_hour(count: int, sensor: str) -> list[Reading]:
    """Readings that are all stamped within one hour of yesterday, and few times, so that few maps are computed."""
    start = (int(time.time() * 1000) // HOUR_MS - 24) * HOUR_MS
    return [Reading("hall", sensor, 1000 + k, start + k % 5, 5, 0) for k in range(count)]


def flagged(parts: Deployment, sensor: str) -> bool:
    """Whether the collector's health and its metrics have an alarm about a sensor."""
    reasons = {(problem["sensor"], problem["code"]) for problem in parts.collector.client.health()["problems"]}
    head = {"Authorization": f"Bearer {parts.collector.client.secret}"}
    text = httpx2.get(f"http://127.0.0.1:{parts.collector.client.port}/metrics", headers=head, timeout=PATIENCE).text
    figures = [line for line in text.splitlines() if line.startswith('cloakwork_problems_total{reason="flood"}')]
    return (sensor, "flood") in reasons and float(figures[0].split()[-1]) > 0


def test_a_device_cannot_fill_the_store_by_http_or_through_the_broker(attack: Attack, tmp_path: Path) -> None:
    """Two devices send many back-dated readings at once, by HTTP and through a real broker.

    Claim: of an hour, the store keeps at most twice the readings of a sensor that the plan allows; the rest is flagged.
    """
    count = attack.size(4_000, 30_000)
    with deployment(tmp_path, f"sqlite:///{tmp_path / 'store.db'}") as parts:
        parts.collector.start()
        parts.collector.wait_ready()
        allowed = 2 * parts.watched.budget_rules.most(HOUR_MS)
        parts.devices["s1"].publish(one_hour(count, "s1"), 300)
        rows = one_hour(count, "s4")
        for start in range(0, count, BATCH):
            until(partial(_answered, parts, rows[start : start + BATCH]))
        until(lambda: flagged(parts, "s1") and flagged(parts, "s4"))
        parts.devices["s2"].publish(parts.frames(0, 10, "s2"))  # another device is none the worse
        until(lambda: len(kept(parts, "s2")) == 10)
        for sensor in ("s1", "s4"):
            attack.compare(len(kept(parts, sensor)), allowed, tried=count)


def _answered(parts: Deployment, rows: list[Reading]) -> bool:
    """Whether a request is stored or refused for good, rather than put off."""
    answer = parts.device.post(rows)
    done: bool = answer.status == 200 or answer.body["error"]["code"] == "over-quota"
    if not done:
        time.sleep(int(answer.headers["retry-after"]))  # each attempt counts, so hasty ones would never succeed
    return done


def kept(parts: Deployment, sensor: str) -> list[tuple[str, int, int, int]]:
    return [row for row in parts.stored() if row[0] == sensor]


def test_no_stamps_get_more_than_the_quota_into_the_store(attack: Attack, store: Store) -> None:
    """One device sends readings with stamps of all kinds: random, not set, far ahead, long past.

    Claim: the store keeps at most twice what the plan allows in 32 days, and once more a month of it and an outbox. A
    restart of the collector adds nothing to the first part.
    """
    outbox = attack.size(200, 50_000)
    now, rng = 1_794_731_949_000, random.Random(7)
    dated = 2 * RULES.most(WAITED_MS + DAY_MS + 2 * HOUR_MS)
    claimed = dated + RULES.most(WAITED_MS) + outbox
    quota, tried = DeviceQuota(store, {"hall": RULES}, outbox=outbox), 2 * claimed
    stored = []
    floods = 0
    for number in range(tried):
        stamps = (now - rng.randrange(WAITED_MS), 0, now + rng.randrange(DAY_MS), 5 * DAY_MS, 2 * now)
        row = Reading("hall", "s1", number, stamps[number % len(stamps)], 5, now)
        if quota.admit([row]):
            stored.append(row)
            floods += quota.floods(row)
    attack.compare(len(stored), claimed, tried=tried)
    attack.expect(floods > 0)
    store.readings.add(stored)
    again = DeviceQuota(store, {"hall": RULES}, outbox=outbox)
    rows = [Reading("hall", "s1", tried + k, now - rng.randrange(WAITED_MS), 5, now) for k in range(2 * dated)]
    more = sum(again.admit([row]) for row in rows)
    attack.compare(more + sum(now - WAITED_MS <= row.time <= now + DAY_MS for row in stored), dated, tried=len(rows))
