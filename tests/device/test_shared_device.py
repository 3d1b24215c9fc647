"""One device that measures several sensors with shared noise: from the site file to the key holder and the broker."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakwork.collect import Role, open_store
from cloakwork.device import ConstantReading, Target, provision
from cloakwork.errors import CalibrationError, InputError, KeyFileError, PlanError, SiteError
from cloakwork.keys import Unveiling, load_keys, open_generation, revoke
from cloakwork.mqtt import BrokerAddress
from cloakwork.physics import sources
from cloakwork.privacy import Keystream
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.keystream import sequence
from cloakwork.sensor.measuring import FAILING, INVALID, ONLINE, attempt_all
from cloakwork.sensor.state import unpack
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading, read_status
from cloakwork.site import Plan, Site, freeze, load_plan, load_site, parse_site, plan_beside
from tests import micropython
from tests.broker import Broker
from tests.collect.collector_process import Collector, HttpClient, fork_server
from tests.device.agent_kit import QUICK, listening, working
from tests.ports import free_port
from tests.waiting import until

SITE = """name = "studio"
baseline = 20.0
[physics]
kind = "floorplan"
cell = 0.5
size = [3.0, 2.0]
regime = "steady"
reach = 1.0
footprint = 0.5
[sources]
kind = "lasting"
max_count = 1
[privacy]
epsilon = 8.0
delta = 1e-5
alpha = 0.1
design = "shared"
speed = 0
resolution = 0.001
window = "1min"
readings_per_window = 20
[[sensor]]
id = "a"
at = [0.5, 0.5]
[[sensor]]
id = "b"
at = [1.5, 1.5]
[[sensor]]
id = "c"
at = [2.5, 0.5]
[[sensor]]
id = "d"
at = [2.5, 1.5]
baseline = 21.0
"""
SENSORS = ["a", "b", "c", "d"]
PROGRAM = micropython.PROGRAMS / "shared.py"


@pytest.fixture(scope="module")
def site() -> Site:
    return parse_site(SITE)


def made_at(plan: Plan, keys: Path | None, folder: Path, **options: Any) -> Any:
    return provision(plan, "a", folder, broker=BrokerAddress(), keys=keys, resolution=0.001, **options)


def sent(folder: Path, frames: int) -> list[list[tuple[int, int, int]]]:
    """The frames of a device that reads 20 everywhere, from a start to its end: (seq, time, value) of each sensor."""
    config = json.loads((folder / "device.json").read_text())
    config["schedule"] |= {"allowed": 0}
    now = [0]
    device = Device(config, Folder(str(folder)), lambda: now[0])
    messages: list[list[tuple[int, int, int]]] = []
    while len(messages) < frames:
        now[0] += config["schedule"]["period_ms"]
        start = device.slot_start(device.clock.now())
        if device.begin(start) == TAKE:
            line = device.cloak([(20, 1), (20, 1), (20, 1), (21, 1)], start)
            messages.append([read_reading(message) for message in line.split(b" ")])
    device.close()
    return messages


def written(path: Path, frames: list[list[tuple[int, int, int]]]) -> Path:
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "sensor", "seq", "steps"))
        for frame in frames:
            writer.writerows((time, name, seq, value) for name, (seq, time, value) in zip(SENSORS, frame, strict=True))
    return path


def drawn_by(plan: Plan, key: bytes, generation: int, frames: int) -> np.ndarray[Any, Any]:
    """The noise of a device in its first frames (frames, sensors), from its key and the plan's tables alone."""
    assert plan.shared is not None
    seqs = [sequence(generation, counter) for counter in range(frames)]
    columns, table = np.array(plan.shared.columns), plan.shared.noise.table
    own, shared = [], []
    for k, name in enumerate(SENSORS):
        stream, mine = Keystream(key, plan.site, name, generation), plan.noise(name).table
        own.append(stream.noise(mine, seqs))
        if k < columns.shape[1]:
            shared.append(stream.noise(table, seqs, after=len(mine.levels)))
    return np.asarray(np.array(own).T + np.array(shared).T @ columns.T)


def test_the_frozen_noise_meets_the_claim_and_is_refused_for_another(site: Site, plan: Plan, tmp_path: Path) -> None:
    plan.write(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    designed, frozen = site.cloak(), plan.cloak(site)
    assert frozen.frame_mu <= designed.frame_mu
    np.testing.assert_allclose(frozen.covariance, designed.covariance, rtol=1e-8)
    assert (np.diagonal(frozen.covariance) >= np.diagonal(designed.covariance)).all()
    for old, new in (("epsilon = 8.0", "epsilon = 7.9"), ('design = "shared"', 'design = "equal"')):
        with pytest.raises(PlanError):
            plan.cloak(parse_site(SITE.replace(old, new)))
    assert frozen.shared is not None
    with pytest.raises(CalibrationError, match="mu="):
        site.cloak_with(0.999 * designed.sigmas, designed.steps, shared=designed.shared)
    with pytest.raises(CalibrationError, match="own"):
        site.cloak_with(0.2 * designed.sigmas, designed.steps, shared=designed.shared)


def test_the_keyed_noise_has_the_covariance_of_the_cloak(site: Site, plan: Plan) -> None:
    steps, frames = plan.cloak(site).steps, 40_000
    values = drawn_by(plan, bytes(range(32)), 3, frames) * steps
    whitened = np.linalg.solve(np.linalg.cholesky(plan.cloak(site).covariance), values.T)
    found = whitened @ whitened.T / frames
    assert np.abs(found - np.eye(4)).max() < 0.035, "five standard errors; noise of 0.8 or 1.2 times fails"
    assert np.abs(values.mean(axis=0) / np.sqrt(np.diagonal(plan.cloak(site).covariance))).max() < 0.025
    together = values[:-1].T @ values[1:] / frames / np.outer(values.std(axis=0), values.std(axis=0))
    assert np.abs(together).max() < 0.025, "fresh in each frame"


def test_a_key_holder_gets_true_readings_back_also_after_power_cuts(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = made_at(plan, keys, tmp_path / "a")
    frames = [frame for count in (90, 1, 70) for frame in sent(made.folder, count)]
    counters = [{seq for seq, *_ in frame} for frame in frames]
    assert all(len(numbers) == 1 for numbers in counters), "one number for a frame"
    assert len(set.union(*counters)) == len(frames), "which is never used again"
    unveiling = Unveiling(written(tmp_path / "sent.csv", frames), plan, load_keys(keys))
    rows = [(name, int(value)) for found in unveiling for name, value in zip(found.sensor, found.value, strict=True)]
    assert set(rows) == {(name, plan.noise(name).fallback) for name in SENSORS}
    assert len(rows) == 4 * len(frames)
    assert unveiling.verdict().wrong == ()
    values = np.array([[value for *_, value in frame] for frame in frames])
    key = load_keys(keys).device_key("a", made.generation)
    first = drawn_by(plan, key, made.generation, 90)
    true = np.array([plan.noise(name).fallback for name in SENSORS])
    assert (values[:90] - true == first).all()


def test_a_board_sends_what_a_computer_sends(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = made_at(plan, keys, tmp_path / "a")
    micropython.copy_sensor(made.folder)
    board = micropython.run(PROGRAM, folder=made.folder, timeout=600)
    assert board.returncode == 0, board.stdout + board.stderr
    ours = subprocess.run(
        [sys.executable, str(PROGRAM), str(made.folder)], check=True, capture_output=True, text=True
    ).stdout
    values = np.array(json.loads(ours))
    assert values.tolist() == json.loads(board.stdout)
    noise = drawn_by(plan, load_keys(keys).device_key("a", made.generation), made.generation, len(values))
    step = plan.sensors[0].step
    assert (
        values - noise == [round(20 / step), plan.noise("b").fallback, round(21.25 / step), round(20.5 / step)]
    ).all()


def test_without_a_key_two_devices_draw_different_noise(plan: Plan, tmp_path: Path) -> None:
    one, two = (sent(made_at(plan, None, tmp_path / name).folder, 3) for name in ("one", "two"))
    assert [value for *_, value in one[0]] != [value for *_, value in two[0]]
    assert [value for *_, value in one[0]] != [value for *_, value in one[1]]


def test_all_sensors_have_one_generation_and_one_key(plan: Plan, keys: Path, tmp_path: Path) -> None:
    before = open_generation(keys, "c", "0" * 64, "reading", site="studio")
    made = made_at(plan, keys, tmp_path / "a")
    ring = load_keys(keys)
    assert made.generation > before.number
    assert {ring.keyed(name)[-1].number for name in SENSORS} == {made.generation}
    assert len({ring.keyed(name)[-1].key for name in SENSORS}) == 1
    state = unpack((made.folder / "state.0").read_bytes())
    assert state is not None
    assert state.blocked == plan.schedule.window_slots + 1, "the device of c may have used this window"
    with pytest.raises(KeyFileError):
        ring.export("b")
    revoke(keys, "d")
    ring = load_keys(keys)
    assert all(ring.generations(name)[-1].revoked is not None for name in SENSORS), "the device is gone for all"
    assert ring.generations("c")[0].revoked is None, "but not an earlier one"


def test_what_a_device_with_several_sensors_is_not_made_for_is_refused(plan: Plan, keys: Path, tmp_path: Path) -> None:
    for options in ({"target": Target.C}, {"target": Target.ESPHOME}, {"bench": True}):
        with pytest.raises(InputError):
            made_at(plan, keys, tmp_path / "a", **options)
    with pytest.raises(InputError) as refused:
        provision(plan, "b", tmp_path / "b", broker=BrokerAddress(), keys=keys, resolution=0.001)
    assert refused.value.values["first"] == "a"
    assert load_keys(keys).sensors == ()


@pytest.mark.parametrize(
    ("old", "new"), [("speed = 0\n", ""), ("speed = 0", "speed = 1.5"), ("speed = 0", 'speed = "any"')]
)
def test_a_site_must_state_that_sources_stay_within_a_frame(old: str, new: str) -> None:
    with pytest.raises(SiteError, match="speed = 0"):
        parse_site(SITE.replace(old, new))


@pytest.mark.parametrize(
    "more",
    ['own_noise = 0.01\nwindow = "1min"', 'window = "1min"\nscope = "sensor"', 'window = "1min"\nnoise = "laplace"'],
)
def test_a_site_with_what_shared_noise_does_not_cover_has_no_cloak(more: str) -> None:
    with pytest.raises((CalibrationError, SiteError)):
        parse_site(SITE.replace('window = "1min"', more)).cloak()


def test_a_stay_does_not_go_with_shared_noise() -> None:
    stay = '[privacy.stay]\nlength = "2h"\nepsilon = 20.0\ndelta = 1e-5\n[[sensor]]\nid = "a"'
    with pytest.raises((CalibrationError, SiteError)):
        parse_site(SITE.replace('[[sensor]]\nid = "a"', stay)).cloak()


def test_a_sensor_that_fails_does_not_stop_the_others() -> None:
    assert attempt_all(lambda: [(1, 2), None, (3, 0)], 3) == ([(1, 2), None, None], [ONLINE, FAILING, INVALID])
    assert attempt_all(lambda: [(1, 2)], 2) == ([None, None], [INVALID, INVALID])
    assert attempt_all(lambda: (1, 2), 2)[1] == [INVALID, INVALID], "one fraction is no list of two readings"
    assert attempt_all(lambda: 1 / 0, 2) == ([None, None], [FAILING, FAILING])


def test_each_sensor_is_published_on_its_own_topic(
    plan: Plan, keys: Path, tmp_path: Path, broker: Broker, time_server: dict[str, Any]
) -> None:
    made = made_at(plan, keys, tmp_path / "a")
    file = made.folder / "device.json"
    config = json.loads(file.read_text())
    config["schedule"] = QUICK
    file.write_text(json.dumps(config))
    source = ConstantReading(20.0, (20.0, 20.0, 21.0))
    with listening(broker) as subscriber:
        with working(made.folder, broker, source, time_server=time_server, home_assistant=True):
            until(lambda: len(subscriber.of("reading")) >= 40)
        until(lambda: subscriber.goodbyes() == 4)
        with working(made.folder, broker, source, time_server=time_server) as notes:
            until(lambda: subscriber.goodbyes() == 4 and len(subscriber.of("reading")) >= 60)
    assert not [text for text in notes if "stopped" in text or "copy" in text]
    found: dict[int, dict[str, tuple[int, int, int]]] = {}
    for topic, payload, _ in subscriber.messages:
        if topic.endswith("/reading"):
            name, message = topic.split("/")[3], read_reading(payload)
            assert found.setdefault(message[0], {}).setdefault(name, message) == message
    whole = [[frame[name] for name in SENSORS] for frame in found.values() if len(frame) == 4]
    assert len(whole) >= len(found) - 1
    unveiling = Unveiling(written(tmp_path / "sent.csv", whole), plan, load_keys(keys))
    assert {int(value) for rows in unveiling for value in rows.value} == {plan.noise(name).fallback for name in SENSORS}
    states = {topic.split("/")[3] for topic, payload, _ in subscriber.messages if topic.endswith("/status")}
    assert states == set(SENSORS)
    assert {read_status(payload)[0] for payload in subscriber.of("status")} >= {"online", "offline"}
    announced = {topic for topic, *_ in subscriber.messages if topic.startswith("homeassistant/sensor")}
    assert len(announced) == 4


def test_the_collector_finds_a_source_from_shared_noise(
    tmp_path: Path, broker: Broker, time_server: dict[str, Any]
) -> None:
    file, at = tmp_path / "studio.toml", (0.75, 1.25)
    file.write_text(SITE.replace('window = "1min"', 'window = "4s"').replace("epsilon = 8.0", "epsilon = 30.0"))
    site = load_site(file)
    plan = freeze(site, site.cloak())
    plan.write(plan_beside(file))
    made, store = made_at(plan, None, tmp_path / "a"), str(tmp_path / "store.db")
    with open_store(store) as opened:
        client = HttpClient(free_port(), opened.tokens.create(Role.OPERATOR).secret)
    words = [str(file), "--broker", f"mqtt://localhost:{broker.port}", "--listen", f"127.0.0.1:{client.port}"]
    collector = Collector(fork_server(), words, tmp_path / "log", client, store)
    first, *others = (site.physics.apply(sources(site.physics, [at])) + site.baselines).tolist()

    def located() -> bool:
        """Whether a frame of all sensors finds the source; the noise of the first frames may put it elsewhere."""
        answer = client.ask("GET", "/v1/sites/studio/latest")
        found: dict[str, Any] = answer.body if answer.status == 200 else {"sensors": 0, "sources": ()}
        near = (np.hypot(*np.subtract(source["at"], at)) < 0.6 for source in found["sources"])
        return found["sensors"] == 4 and any(near)

    collector.start()
    try:
        until(lambda: client.health("studio") is not None)
        with working(made.folder, broker, ConstantReading(first, tuple(others)), time_server=time_server):
            until(located)
    finally:
        collector.kill()


def test_a_backup_that_is_restored_moves_on_past_what_the_broker_knows(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = made_at(plan, keys, tmp_path / "a")
    copies = {name: (made.folder / name).read_bytes() for name in ("state.0", "state.1")}
    frames = sent(made.folder, 5)
    for name, data in copies.items():
        (made.folder / name).write_bytes(data)
    device = Device(json.loads((made.folder / "device.json").read_text()), Folder(str(made.folder)), lambda: 0)
    last = frames[-1][0]
    line = f'{{"v":1,"seq":{last[0]},"time":{last[1]},"value":{last[2]}}}'.encode()
    assert device.heard(line, retained=True, now=0)
    device.close()
    again = {frame[0][0] for frame in sent(made.folder, 5)}
    assert not again & {frame[0][0] for frame in frames}


def test_freezing_keeps_the_steps_of_shared_noise_hidden(site: Site) -> None:
    cloak = site.cloak()
    planned = freeze(site, cloak).shared
    assert planned is not None
    assert cloak.shared is not None
    assert planned.noise.is_smooth(cloak.ratios)
    assert planned.ratio > cloak.shared.ratio
