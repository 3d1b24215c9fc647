"""Collectors of a group share the readings on one PostgreSQL store; one is killed in the middle."""

import http.client
import re
import threading
from contextlib import closing
from pathlib import Path

from tests.collect.collector_process import Collector
from tests.collect.deployment import deployment
from tests.waiting import PATIENCE, until

FRAMES = 300
READINGS = 3 * FRAMES
SENSORS = ("s1", "s2", "s3")  # those that send through the broker


def counted(collector: Collector, verdict: str) -> int:
    """How many readings of a kind a collector has had."""
    link = http.client.HTTPConnection("127.0.0.1", collector.client.port, timeout=PATIENCE)
    with closing(link):
        link.request("GET", "/metrics", headers={"Authorization": f"Bearer {collector.client.secret}"})
        text = link.getresponse().read().decode()
    return sum(
        int(float(count)) for count in re.findall(rf'cloakwork_readings_total{{verdict="{verdict}"}} (\S+)', text)
    )


def test_three_collectors_share_the_readings_and_lose_none_when_one_is_killed(
    tmp_path: Path, postgres_url: str
) -> None:
    with deployment(tmp_path, postgres_url, "--group", "three") as parts:
        one = parts.collector
        two, three = one.beside("two"), one.beside("three")
        try:
            for collector in (one, two, three):
                collector.start()
                collector.wait_ready()

            def publish() -> None:
                for start in range(0, FRAMES, 20):
                    parts.publish(start, start + 20)

            load = threading.Thread(target=publish)
            load.start()
            until(lambda: counted(two, "new") > 0, "the second collector gets nothing")
            two.kill()
            load.join(PATIENCE)
            until(lambda: parts.count() > READINGS / 2, "the others have stopped")
            two.start()  # the broker has kept its share
            until(lambda: parts.count() == READINGS, "readings that were acknowledged are missing")
            assert parts.stored() == parts.expected(FRAMES, *SENSORS)
            assert min(counted(collector, "new") for collector in (one, three)) > READINGS / 10
            assert one.wait_ready()["alarms"] == []
            assert counted(one, "again") == counted(three, "again") == 0
        finally:
            two.kill()
            three.kill()
