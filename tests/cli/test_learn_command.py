"""`learn`: the best schedule from private counts, and played live."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cloakwork.mqtt import BrokerAddress, MqttClient, MqttMessage
from cloakwork.series import Moment, Stream
from tests.broker import running_broker
from tests.cli.conftest import Run
from tests.cli.test_series_store import PERIOD, Case, case  # noqa: F401 - a fixture
from tests.waiting import until

SCHEDULES = 'most = 4\n[schedules]\n"low" = 0.1\n"office" = { "08-18" = 0.75, otherwise = 0 }\n"high" = 1.0\n'
CLEAR = ("--epsilon", "30", "--delta", "1e-3")


@pytest.fixture
def schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "schedules.toml"
    path.write_text(SCHEDULES, encoding="utf-8")
    return path


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Three visits in every hour from 8 to 18, of one card a day, for four days."""
    lines = [
        f"2026-10-{day:02}T{hour:02}:{minute}:00Z,card-{day}"
        for day in range(5, 9)
        for hour in range(8, 18)
        for minute in (10, 20, 30)
    ]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["time,card", *lines]) + "\n", encoding="utf-8")
    return path


def test_the_best_schedule_is_found(succeed: Run, schedules: Path, visits: Path) -> None:
    words = ("learn", schedules, visits, "--from", "2026-10-05", "--to", "2026-10-09", *CLEAR)
    told = succeed(*words, "--json").values
    assert told["best"] == "office"
    excess = {one["name"]: one["excess"] for one in told["schedules"]}
    low = 40 * 0.65 + 56 * 0.05
    high = 40 * 0.125 + 56 * 0.5
    assert excess["low"] == pytest.approx(low, abs=3)
    assert excess["high"] == pytest.approx(high, abs=3)
    assert "office" in succeed(*words).out


def test_a_person_counts_up_to_the_limit(succeed: Run, schedules: Path, visits: Path) -> None:
    period = ("--from", "2026-10-05", "--to", "2026-10-09", "--person", "card", "--most-per-person", "2")
    told = succeed("learn", schedules, visits, *period, *CLEAR, "--json").values
    assert told["contribution"] == 2
    assert told["best"] == "low"  # of the thirty visits of each card, two are left


def test_a_zone_of_a_store_is_learned_from(succeed: Run, schedules: Path, case: Case) -> None:  # noqa: F811
    schedules.write_text(SCHEDULES.replace("most = 4", "most = 1"), encoding="utf-8")
    words = ("learn", schedules, case.site, "--from-store", case.store, "--zone", "room-1", *PERIOD)
    told = succeed(*words, *CLEAR, "--json").values
    assert told["rounds"] == 24
    assert told["contribution"] > 20  # steps of 0.05


def test_live_it_plays_a_level_for_each_count_and_continues(
    succeed: Run, run: Run, schedules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("learn", schedules, "--live", "4", "--state", "learner.json")
    monkeypatch.setattr("sys.stdin", iter(["3\n", "many\n", "0\n"]))
    told = succeed(*words)
    assert [line.split(" ", 2)[2] in ("low", "office", "high") for line in told.out.splitlines()] == [True] * 3
    assert "many" not in told.said
    assert json.loads(Path("learner.json").read_text().splitlines()[0])["spent"] == 2
    monkeypatch.setattr("sys.stdin", iter(["1\n", "1\n", "1\n"]))
    assert len(succeed(*words).out.splitlines()) == 3  # the fourth round is the last
    assert run(*words).code == 2


def test_past_visits_that_a_crash_used_up_are_not_learned_again(
    succeed: Run, run: Run, schedules: Path, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    period = ("--from", "2026-10-05", "--to", "2026-10-09")
    words = ("learn", schedules, visits, *period, "--live", "4", "--state", "learner.json")
    released = 0

    def crash(stream: Stream, value: float) -> Moment:
        nonlocal released
        released += 1
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "push", crash)
        assert run(*words).code != 0
    monkeypatch.setattr("sys.stdin", iter(["1\n"]))
    told = succeed(*words)
    assert released == 1
    assert "continuing after 96 rounds, of which 96 did not count" in told.said
    stored = json.loads(Path("learner.json").read_text().splitlines()[0])
    assert (stored["spent"], stored["learned"]) == (97, 1)


def test_live_it_publishes_the_level(
    succeed: Run, schedules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker(tmp_path / "broker") as broker:
        seen: list[bytes] = []

        def received(message: MqttMessage) -> None:
            seen.append(message.payload)
            message.acknowledge()

        reader = MqttClient(BrokerAddress(broker.host, broker.port), filters=["flat/level"], on_message=received)
        reader.start()

        def lines() -> Iterator[str]:
            until(lambda: len(seen) == 1)
            yield "3\n"
            until(lambda: len(seen) == 2)

        monkeypatch.setattr("sys.stdin", lines())
        address = f"mqtt://{broker.host}:{broker.port}"
        told = succeed("learn", schedules, "--live", "9", "--broker", address, "--topic", "flat/level")
        reader.stop()
    assert [float(level) for level in seen] == [float(line.split(" ", 2)[1]) for line in told.out.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--live", "5", "--json"),
        ("visits.csv", "--state", "s.json", "--from", "2026-10-05", "--to", "2026-10-06"),
        ("visits.csv", "--live", "5", "--most-per-person", "2", "--from", "2026-10-05", "--to", "2026-10-06"),
        ("--live", "5", "--broker", "mqtt://localhost", "--topic", "a/#"),
        ("none.csv", "--from", "2026-10-05", "--to", "2026-10-06"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Run, schedules: Path, visits: Path, words: tuple[str, ...]) -> None:
    del visits
    assert run("learn", schedules, *words).code in (1, 2)


def test_a_file_without_a_period_is_refused_by_the_options_to_give(run: Run, schedules: Path, visits: Path) -> None:
    done = run("learn", schedules, visits, "--from", "2026-10-05")
    assert done.code == 2
    assert "--from, --to: give the period" in done.err


def test_visits_outside_the_period_are_counted_for_the_curator(succeed: Run, schedules: Path, visits: Path) -> None:
    told = succeed("learn", schedules, visits, "--from", "2025-10-05", "--to", "2025-10-09")
    assert "120 of 120 rows left out, because they are outside the period" in " ".join(told.err.split())


def test_labels_of_people_are_limited_live(succeed: Run, schedules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", iter(["ann bob\n", "\n", "ann\n"]))
    succeed("learn", schedules, "--live", "3", "--most-per-person", "1", "--state", "s.json")
    stored = json.loads(Path("s.json").read_text().splitlines()[0])
    assert sorted(stored["used"].values()) == [1, 1]
    assert "ann" not in Path("s.json").read_text()
    assert np.isfinite(stored["totals"]).all()
