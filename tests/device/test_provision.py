"""The folder of one device: all that it needs, readable by its owner alone, and nothing about the others."""

import json
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from cloakwork.device import provision
from cloakwork.errors import InputError
from cloakwork.keys import DeviceKind, bench_name, load_keys, new_keys, save_keys
from cloakwork.mqtt import BrokerAddress, parse_broker
from cloakwork.privacy import noise_table
from cloakwork.sensor.state import unpack
from cloakwork.site import Plan, Site, parse_site
from tests.broker import Broker as RealBroker
from tests.broker import running_broker
from tests.clocks import running_time_server
from tests.device.agent_kit import listening
from tests.waiting import until

SITE = """name = "two-rooms"
baseline = 20.125
unit = "°C"
[physics]
kind = "line"
places = 20
T = 0.01
[[sensor]]
id = "hall"
at = 0.2
[[sensor]]
id = "bathroom"
at = 0.5
[[sensor]]
id = "attic"
at = 0.9
baseline = 17.5
[sources]
kind = "pulse"
[privacy]
epsilon = 3.25
delta = 1e-4
alpha = 0.0625
window = "10min"
readings_per_window = 5
"""


@pytest.fixture(scope="module")
def site() -> Site:
    return parse_site(SITE)


def told(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "device.json").read_text(encoding="utf-8"))
    return found


def test_the_folder_says_what_the_plan_says(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "attic", tmp_path / "attic", broker=BrokerAddress(), keys=keys, unit="°C")
    found, planned = told(made.folder), plan.sensor("attic")
    assert Fraction(*found["step"]) == Fraction(planned.step)  # type: ignore[misc]
    assert found["fallback"] == round(17.5 / planned.step)
    assert (found["site"], found["sensor"], found["plan"], found["unit"]) == ("two-rooms", "attic", plan.digest, "°C")
    assert found["schedule"] == {
        name: getattr(plan.schedule, name)
        for name in ("period_ms", "offset_ms", "window_slots", "allowed", "block", "late_ms", "clock_ms")
    }
    assert (made.folder / "noise.tab").read_bytes() == noise_table(planned.ratio).cuts
    assert made.configuration < 64 * 1024


def test_it_holds_its_own_key_in_its_state_only_and_nothing_of_the_others_and_only_its_owner_can_read_it(
    plan: Plan, keys: Path, tmp_path: Path
) -> None:
    made = provision(plan, "hall", tmp_path / "hall", broker=BrokerAddress(), keys=keys)
    [known] = load_keys(keys).generations("hall")
    state = unpack((made.folder / "state.0").read_bytes())
    assert state is not None
    assert (state.generation, state.key) == (made.generation, known.key)
    files = [path for path in made.folder.rglob("*") if path.is_file()]
    held = {path.name: path.read_text(encoding="latin-1") for path in files}
    assert {name for name, text in held.items() if known.key.hex() in text} <= {"state.0", "state.1"}
    own = "".join(path.read_text(encoding="latin-1") for path in files if path.parent == made.folder)
    for foreign in ("bathroom", "attic", "3.25", "0.0625", "17.5"):
        assert foreign not in own
    assert {stat.S_IMODE(path.stat().st_mode) for path in (made.folder, *files)} == {0o700, 0o600}


def test_each_provisioning_opens_a_generation_and_a_folder_is_never_written_over(
    plan: Plan, keys: Path, tmp_path: Path
) -> None:
    first = provision(plan, "hall", tmp_path / "a", broker=BrokerAddress(), keys=keys)
    second = provision(plan, "hall", tmp_path / "b", broker=BrokerAddress(), keys=keys)
    assert second.generation > first.generation
    states = [unpack((made.folder / "state.0").read_bytes()) for made in (first, second)]
    # the first device may have used the window that begins now
    assert [state and state.blocked for state in states] == [0, plan.schedule.window_slots + 1]
    before = (tmp_path / "a" / "state.0").read_bytes()
    with pytest.raises(InputError, match="exists"):
        provision(plan, "hall", tmp_path / "a", broker=BrokerAddress(), keys=keys)
    assert (tmp_path / "a" / "state.0").read_bytes() == before
    assert len(load_keys(keys).devices["hall"]) == 2


def test_a_bench_device_has_its_own_key_and_site_name_and_no_budget(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "hall", tmp_path / "bench", broker=BrokerAddress(), keys=keys, bench=True)
    found = told(made.folder)
    assert (found["site"], found["kind"]) == (bench_name("two-rooms"), "bench")
    assert found["schedule"]["allowed"] == 0  # type: ignore[index]
    state = unpack((made.folder / "state.0").read_bytes())
    assert state is not None
    assert [(known.kind, known.key) for known in load_keys(keys).generations("hall")] == [(DeviceKind.BENCH, state.key)]


def test_what_cannot_be_provisioned_is_refused_and_opens_no_generation(plan: Plan, keys: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sensor 'cellar'"):
        provision(plan, "cellar", tmp_path / "x", broker=BrokerAddress(), keys=keys)
    (tmp_path / "ca.pem").write_text("nonsense")
    with pytest.raises(InputError, match="PEM"):
        provision(plan, "hall", tmp_path / "x", broker=BrokerAddress(authority=tmp_path / "ca.pem"), keys=keys)
    assert load_keys(keys).devices == {}
    save_keys(new_keys("other"), tmp_path / "other.json")
    with pytest.raises(InputError, match="other"):
        provision(plan, "hall", tmp_path / "x", broker=BrokerAddress(), keys=tmp_path / "other.json")
    assert not (tmp_path / "x").exists()


def test_a_broker_by_its_address() -> None:
    for url, found in (
        ("mqtt://box", ("box", 1883, False, None)),
        ("mqtts://a%20b@[::1]:9999/", ("::1", 9999, True, "a b")),
    ):
        broker = parse_broker(url)
        assert (broker.host, broker.port, broker.tls, broker.user) == found
    for url in ("box", "http://box", "mqtt://", "mqtt://box:0", "mqtt://box:x", "mqtt://box/topic"):
        with pytest.raises(InputError) as problem:
            parse_broker(url)
        assert problem.value.values["key"] == "broker"


def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for url, key in (("mqtts://s07:opensesame@box", "password"), ("http://s07:opensesame@box", "broker")):
        with pytest.raises(InputError) as problem:
            parse_broker(url)
        assert problem.value.values == {"key": key}
        assert "opensesame" not in str(problem.value)
    (tmp_path / "password").write_text("opensesame\n")
    broker = parse_broker("mqtts://s07@box", password_file=tmp_path / "password")
    assert [broker.password] == ["opensesame"]
    assert "opensesame" not in repr(broker)
    with pytest.raises(InputError) as problem:
        parse_broker("mqtts://box", password_file=tmp_path / "password")
    assert problem.value.values == {"key": "user"}
    with pytest.raises(InputError) as problem:
        parse_broker("mqtt://box", authority=tmp_path / "ca.pem")
    assert problem.value.values == {"key": "authority"}


def quick(plan: Plan, broker: RealBroker, folder: Path, time_port: int) -> None:
    """A device that reads twenty times a second, so that a test need not wait."""
    where = BrokerAddress(broker.host, broker.port)
    provision(plan, "hall", folder, broker=where, keys=None, time_server=f"127.0.0.1:{time_port}")
    found = told(folder) | {"resolution": [1, 1]}
    found["schedule"] = {
        "period_ms": 50,
        "offset_ms": 25,
        "late_ms": 20,
        "window_slots": 4,
        "allowed": 4,
        "block": 1,
        "clock_ms": 5000,
    }
    (folder / "device.json").write_text(json.dumps(found))


def test_the_folder_runs_on_a_computer_without_cloakwork_installed(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "hall"
    with running_broker(tmp_path / "broker") as broker, running_time_server() as time_port:
        quick(plan, broker, folder, time_port)
        (folder / "measure.py").write_text("def read():\n    return 81, 4\n")
        line = [sys.executable, "-I", "-S", str(folder / "main.py")]

        with listening(broker) as listener, subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            try:
                until(lambda: len(listener.readings()) >= 5)
            finally:
                process.terminate()


def test_a_device_for_audits_may_read_more_often_and_no_other(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "hall", tmp_path / "quick", broker=BrokerAddress(), keys=keys, bench=True, period=0.1)
    schedule = json.loads((made.folder / "device.json").read_text())["schedule"]
    assert (schedule["period_ms"], schedule["allowed"]) == (100, 0)
    for bench, period in ((False, 0.1), (True, 0.001)):
        with pytest.raises(InputError) as problem:
            provision(plan, "hall", tmp_path / "no", broker=BrokerAddress(), keys=keys, bench=bench, period=period)
        assert problem.value.values == {"period": period}


@pytest.mark.parametrize("given", ["", "ntp://host", "host:", "host:port", "host:99999", "user@host", "host/path"])
def test_a_time_server_that_is_no_address_is_refused(plan: Plan, tmp_path: Path, given: str) -> None:
    with pytest.raises(InputError) as problem:
        provision(plan, "hall", tmp_path / "hall", broker=BrokerAddress(), keys=None, time_server=given)
    assert problem.value.values == {"address": given}
