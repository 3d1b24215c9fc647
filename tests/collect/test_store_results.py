"""Results, reports and problems in the store: what comes back is what went in, and what is left to solve is known."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from cloakwork.collect.storage import DeviceReport, FrameState, ProblemCount, RecoveredSource, Store
from tests.collect.store_rows import SITE, START, frames, moment, reading, report, result, waiting


def test_a_result_comes_back_as_it_was(store: Store) -> None:
    store.readings.add(frames(2))
    bare = result(1, counts=None, sources=(), set_aside=(), map=None, gap=math.inf, estimator="Bäsis", status="")
    assert len(store.results.save([result(0), bare])) == 2
    assert store.results.get(SITE, moment(0)) == result(0)
    assert store.results.get(SITE, moment(1)) == bare
    assert store.results.latest(SITE) == bare


def test_numbers_of_numpy_are_kept_as_numbers(store: Store) -> None:
    store.readings.add(frames(1))
    half: Any = np.float32(0.5)
    when: Any = np.int64(moment(0))
    spot = RecoveredSource("3", (half, half), half, half, half)
    given = replace(result(), time=when, gap=half, counts=(half,), sources=(spot,))
    assert len(store.results.save([given])) == 1
    assert store.results.get(SITE, when) == result(
        gap=0.5, counts=(0.5,), sources=(RecoveredSource("3", (0.5, 0.5), 0.5, 0.5, 0.5),)
    )
    assert store.frames.values(SITE, [when]) == {moment(0): {"s1": 0, "s2": 0, "s3": 0}}


def test_a_period_is_sampled_by_the_last_good_result_of_each_step(store: Store) -> None:
    store.readings.add(frames(9))
    all_of_them = [result(k, status="failed: why" if k in {4, 5} else "weighed") for k in range(9)]
    store.results.save([one for one in all_of_them if one.time != moment(6)])
    assert store.results.oldest(SITE) == moment(0)
    assert store.results.oldest("elsewhere") is None
    step = 2 * (moment(1) - moment(0))
    found = store.results.sampled(SITE, moment(1), moment(8), step)
    assert [one.time for one in found] == [moment(2), moment(3), moment(7)]
    assert all(one.map is None for one in found)


def test_a_later_result_takes_the_place_of_an_earlier_one(store: Store) -> None:
    store.readings.add(frames(1))
    store.results.save([result(sensors=2)])
    assert len(store.results.save([result(status="old"), result(status="better", map=None)])) == 1
    assert store.results.latest(SITE) == result(status="better", map=None)
    assert len(store.results.page(SITE).items) == 1


def test_a_frame_waits_until_it_has_a_result_from_all_its_readings(store: Store) -> None:
    store.readings.add([*frames(4, 2), reading(site="hall")])
    assert [tuple(frame) for frame in store.frames.waiting(SITE, limit=2)] == [(moment(3), 2, 0), (moment(2), 2, 0)]
    store.results.save([result(3, 2), result(1, 2)])
    assert waiting(store) == [moment(0), moment(2)]
    store.readings.add([reading("s1", 3)])
    assert waiting(store) == [moment(0), moment(2)], "it was there before"
    store.readings.add([reading("s3", 3)])
    assert store.frames.waiting(SITE)[0] == FrameState(moment(3), 3, 2)
    store.results.save([result(3, 3)])
    assert waiting(store) == [moment(0), moment(2)]
    assert waiting(store, "hall") == [START]


def test_a_reading_that_comes_while_its_frame_is_recovered_is_not_overlooked(store: Store) -> None:
    store.readings.add(frames(1, 2))
    [frame] = store.frames.waiting(SITE)
    store.readings.add([reading("s3", 0)])
    store.results.save([result(0, 3)], {frame.time: frame.readings})
    assert waiting(store) == [START]


def test_a_frame_ahead_waits_for_its_time_unless_enough_sensors_share_it(store: Store) -> None:
    store.readings.add([*frames(1, 1), *frames(1, 2, first=5), *frames(1, 3, first=9)])
    assert [frame.time for frame in store.frames.waiting(SITE, moment(0), 3)] == [moment(9), moment(0)]
    assert [frame.time for frame in store.frames.waiting(SITE, moment(5), 3)] == [moment(9), moment(5), moment(0)]


def test_no_result_takes_the_place_of_a_better_one(store: Store) -> None:
    store.readings.add(frames(1))
    ranks = [
        result(status="failed: why"),
        result(status="alone"),
        result(status="followed", labels=1),
        result(status="settled", labels=1, settled=True),
    ]
    for number, better in enumerate(ranks):
        assert store.results.save([better]) == [better]
        for worse in ranks[:number]:
            assert store.results.save([worse]) == []
        assert store.results.get(SITE, START) == better
    assert waiting(store) == []


def test_a_result_without_its_readings_is_dropped(store: Store) -> None:
    assert store.results.save([result(0)]) == []
    store.readings.add(frames(1))
    assert store.results.save([result(0), result(5)]) == [result(0)]


def test_the_latest_report_of_each_sensor_is_kept(store: Store) -> None:
    store.reports.add([])
    rows = [report("s2", used=5, received=START + 5), report("s1", used=2), report("s2", used=4, received=START + 4)]
    store.reports.add([*rows, report(site="hall", used=9)])
    assert store.reports.latest(SITE) == [rows[1], rows[0]]
    store.reports.add([report("s1", used=1, received=START - 1), report("s2", state="offline", received=START + 5)])
    assert store.reports.latest(SITE) == [rows[1], report("s2", state="offline", received=START + 5)]


def test_history_keeps_the_last_report_of_every_ten_seconds(store: Store) -> None:
    def at(second: int, sensor: str = "s1") -> DeviceReport:
        return report(sensor, used=second, received=START + second * 1000)

    store.reports.add([at(second) for second in range(35)])
    store.reports.add([at(3), at(12, "s2")])
    assert store.reports.history(SITE) == [at(9), at(19), at(12, "s2"), at(29), at(34)]
    assert store.reports.history(SITE, limit=2) == [at(29), at(34)]
    assert store.reports.history(SITE, since=at(19).received, until=at(34).received) == [at(19), at(29)]
    assert store.reports.history("hall") == []


def test_problems_are_counted(store: Store) -> None:
    store.problems.add([])
    store.problems.add([ProblemCount(SITE, "s1", "late", 2, 50), ProblemCount(SITE, "s1", "late", 3, 40)])
    store.problems.add([ProblemCount(SITE, "s1", "late", 1, 30), ProblemCount("", "", "malformed", 1, 60)])
    assert store.problems.counts(SITE) == [ProblemCount(SITE, "s1", "late", 6, 50)]
    assert store.problems.counts("hall") == []
