"""The whole way of a reading: planned, provisioned, cloaked on MicroPython, sent over TLS, unveiled with the key."""

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from cloakwork.sensor.wire import parse_topic, read_reading, read_status
from tests import micropython
from tests.broker import READER, running_broker
from tests.cli.conftest import Run
from tests.clocks import running_time_server
from tests.device.agent_kit import Subscriber, listening
from tests.waiting import until

SITE = """name = "hall"
sensors = 6
baseline = 20.0
unit = "°C"
[physics]
kind = "line"
places = 20
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.05
window = "1s"
readings_per_window = 10
"""


@pytest.fixture
def site(tmp_path: Path, run: Run) -> Path:
    file = tmp_path / "hall.toml"
    file.write_text(SITE, encoding="utf-8")
    assert run("plan", "--no-simulation", file, "--out", tmp_path / "hall.plan.json").code == 0
    assert run("keys", "new", file, "--out", tmp_path / "keys.json").code == 0
    return file


def collected(listener: Subscriber, path: Path) -> int:
    """What a collector would keep, as a file of readings; returns how many."""
    rows: dict[tuple[str, int], tuple[int, str, int, int]] = {}
    for topic, payload, _ in listener.messages:
        _, sensor, kind = parse_topic(topic)
        if kind in ("reading", "bench"):
            seq, stamp, value = read_reading(payload)
            assert rows.setdefault((sensor, seq), (stamp, sensor, seq, value))[3] == value
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("time", "sensor", "seq", "steps"), *rows.values()])
    return len(rows)


def enough(listener: Subscriber, folder: Path, wanted: int) -> bool:
    return collected(listener, folder / "readings.csv") >= wanted


def values(path: Path) -> list[int]:
    with path.open(encoding="utf-8") as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


def test_a_provisioned_folder_works_on_micropython_survives_a_kill_and_is_unveiled_exactly(
    site: Path, tmp_path: Path, run: Run
) -> None:
    sensor = "s3"
    users = {sensor: "correct horse", READER: "battery staple"}
    (tmp_path / "password").write_text(users[sensor], encoding="utf-8")
    with (
        running_broker(tmp_path / "broker", tls=True, users=users, site="hall") as broker,
        listening(broker, READER, users[READER]) as listener,
        running_time_server() as time_port,
    ):
        assert broker.ca is not None
        where = f"mqtts://{sensor}@localhost:{broker.port}"
        options = ["--keys", tmp_path / "keys.json", "--broker", where, "--ca", broker.ca]
        out = run("provision", site, "--id", sensor, *options, "--password-file", tmp_path / "password", "--json")
        assert out.code == 0, out.err
        folder = Path(json.loads(out.out)["devices"][0]["folder"])
        told = json.loads((folder / "device.json").read_text())
        args = {"host": "localhost", "port": broker.port, "tls": True, "ca": (folder / "ca.pem").read_text()}
        args |= {"numerator": 4321, "denominator": 200, "time": ["127.0.0.1", time_port]}
        for wanted in (10, 25):  # the first one is killed in the middle of its work, the second one is its reboot
            board = micropython.start(micropython.PROGRAMS / "device.py", disk=folder, args=args)
            try:
                until(partial(enough, listener, tmp_path, wanted))
            finally:
                board.kill()
                board.communicate()
        until(lambda: read_status(listener.of("status")[-1])[0] == "offline")
        count = collected(listener, tmp_path / "readings.csv")
    files = [tmp_path / "readings.csv", "--keys", tmp_path / "keys.json", "--out", tmp_path / "true.csv"]
    out = run("unveil", site, *files)
    assert out.code == 0, out.err
    a, b = told["step"]
    expected = (2 * 4321 * b + 200 * a) // (2 * 200 * a)
    true = values(tmp_path / "true.csv")
    assert len(true) == count
    # every reading to the step, but for those that a busy machine did not measure in time: they are the constant
    assert expected in true
    assert set(true) <= {expected, told["fallback"]}
    assert len(set(values(tmp_path / "readings.csv"))) > 5
    found = run("recover", site, tmp_path / "readings.csv", "--json")
    assert json.loads(found.out)["plan"] == told["plan"]
