"""Results over HTTP: which is the latest."""

from pathlib import Path

from cloakwork.collect.storage import Reading, unix_ms
from tests.collect.api_kit import bench, result, watched


def test_results_from_when_the_clock_was_ahead_do_not_hide_the_latest(tmp_path: Path, store_url: str) -> None:
    now, period = unix_ms(), watched().schedule.period_ms
    times = [now - period, now + period, now + 3_600_000]
    with bench(tmp_path, url=store_url) as made:
        made.store.readings.add([Reading("hall", "s1", k, when, 5, now) for k, when in enumerate(times)])
        assert made.store.results.save([result(times[2])]) == 1
        ask = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
        assert ask.status_code == 404
        for when in times[:2]:  # a device may be ahead by a little
            assert made.store.results.save([result(when)]) == 1
            ask = made.client.get("/v1/sites/hall/latest", headers=made.bearer("analyst"))
            assert ask.json()["time"] == when
