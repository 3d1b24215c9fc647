"""`cloakwork provision` and `cloakwork sensor`: what they write and say, and what they refuse."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cloakwork.cli.sensor import make_source
from cloakwork.errors import InputError
from cloakwork.sensor.store import Folder
from cloakwork.site import load_site
from tests.cli.conftest import Run
from tests.cli.test_story import SITE
from tests.devices import config, make_folder


@pytest.fixture
def site(tmp_path: Path, run: Run) -> Path:
    file = tmp_path / "hall.toml"
    file.write_text(SITE, encoding="utf-8")
    assert run("plan", "--no-simulation", file, "--out", tmp_path / "hall.plan.json").code == 0
    return file


def test_provision_writes_beside_the_site_file_and_says_what_comes_next(site: Path, run: Run) -> None:
    done = run("provision", site, "--id", "s2")
    assert done.code == 0
    assert (site.parent / "devices" / "s2" / "main.py").exists()
    assert re.search(r"[\d,]+ bytes of configuration, [\d,]+ bytes of code", done.out)
    assert "no one can remove it" in done.err
    assert "cloakwork sensor" in done.err
    again = run("provision", site, "--id", "s2")
    assert again.code == 2
    assert "never overwritten" in again.err


def test_a_folder_of_another_plan_is_noted_and_a_damaged_plan_stops_no_device(site: Path, run: Run) -> None:
    assert run("provision", site, "--id", "s2").code == 0
    good = run("sensor", site, "--id", "s2", "--check")
    assert "another plan" not in good.err
    site.write_text(SITE.replace("epsilon = 4.0", "epsilon = 3.0"), encoding="utf-8")
    assert run("plan", "--no-simulation", site, "--out", site.parent / "hall.plan.json").code == 0
    assert "another plan" in run("sensor", site, "--id", "s2", "--check").err
    (site.parent / "hall.plan.json").write_text("{", encoding="utf-8")
    damaged = run("sensor", site, "--id", "s2", "--check")
    assert (damaged.code, damaged.err) == (good.code, good.err)


def test_all_devices_are_provisioned_at_once_each_with_its_own_password(site: Path, run: Run) -> None:
    for sensor in load_site(site).sensor_ids:
        (site.parent / f"{sensor}.password").write_text(f"of {sensor}", encoding="utf-8")
    own = ["--broker", "mqtt://hall.{id}@localhost", "--password-file", site.parent / "{id}.password"]
    done = run("provision", site, "--all", *own, "--json")
    written = {device["sensor"]: Path(device["folder"]) for device in done.values["devices"]}
    assert list(written) == list(load_site(site).sensor_ids)
    for sensor, folder in written.items():
        told = json.loads((folder / "device.json").read_text())["broker"]
        assert (told["user"], told["password"]) == (f"hall.{sensor}", f"of {sensor}")
    again = run("provision", site, "--all")  # these may be of another plan or broker
    assert (again.code, "never overwritten" in again.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--id", "s1", "--all"),
        ("--all", "--out", "x"),
        ("--id", "s1", "--id", "s99"),
        ("--all", "--broker", "mqtt://hall.{sensor}@localhost"),
        ("--all", "--password-file", "{id}.password"),
    ],
)
def test_of_several_devices_none_is_written_if_one_cannot_be(site: Path, run: Run, words: tuple[str, ...]) -> None:
    assert run("provision", site, *words).code == 2
    assert not (site.parent / "devices").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("command:./no-such-program", "No such file"),
        ("command:false", "exit code 1"),
        ("command:sleep 600", "takes longer than the 0.01 s"),
        ("command:echo warm", "one decimal number"),
        ("file:/no/such/file", "No such file"),
    ],
)
def test_a_source_that_cannot_work_is_refused_before_anything_is_sent(
    run: Run, tmp_path: Path, source: str, said: str
) -> None:
    late_ms = 10 if "sleep" in source else 60_000  # a busy machine may need a while to start a program
    make_folder(tmp_path / "s07", schedule={"late_ms": late_ms})
    done = run("sensor", tmp_path / "s07", "--source", source)
    assert (done.code, said in done.err) == (2, True), done.err


def test_hardware_whose_steps_the_plan_does_not_know_is_refused(run: Run, tmp_path: Path) -> None:
    make_folder(tmp_path / "s07", resolution=None)
    done = run("sensor", tmp_path / "s07", "--source", "command:echo 20.5")
    assert (done.code, "Set resolution" in done.err) == (2, True)
    typo = run("sensor", tmp_path / "s07", "--source", "simulate:0.4")
    assert (typo.code, "--source simulate:0.4: give command:PROGRAM" in typo.err) == (2, True)


def test_a_simulated_source_reads_what_the_physics_says(site: Path) -> None:
    told = config(sensor="s3", fallback=80, step=[1, 4])
    assert make_source("simulated", told, None).read() == (20, 1)
    reading: Any = make_source("simulated:0.5", told, site).read()
    assert reading[0] / reading[1] > 20.5
    with pytest.raises(InputError, match="site file"):
        make_source("simulated:0.5", told, None)


MEASURE = """
import random

rng = random.Random(4)
warmth = 21.0

def read():
    global warmth
    warmth += 0.0005  # as of a hand near it
    return round(16 * rng.gauss(warmth, 0.05)), 16
"""


@pytest.fixture
def device(tmp_path: Path) -> Path:
    folder = tmp_path / "s07"
    make_folder(folder, resolution=[1, 16], fallback=84, noise_floor=0.03, schedule={"late_ms": 60_000})
    (folder / "measure.py").write_text(MEASURE)
    return folder


def test_a_check_reads_with_measure_py_or_a_source_and_its_code_is_the_verdict(
    run: Run, device: Path, tmp_path: Path
) -> None:
    done = run("sensor", device, "--check")
    assert (done.code, done.out.splitlines()[-1]) == (0, "READY"), done.out
    assert "Do not publish" in done.out
    (stuck := tmp_path / "stuck.txt").write_text("21.25")
    done = run("sensor", device, "--check", "--source", f"file:{stuck}", "--readings", 60)
    assert (done.code, "all 60 readings are the same" in done.out) == (1, True)
    assert done.out.rstrip().endswith("NOT READY")
    assert run("sensor", device, "--check", "--source", "simulated").code == 2  # it has no noise to check


def test_a_check_says_what_keeps_it_from_reading(run: Run, device: Path) -> None:
    lock = Folder(str(device)).lock()
    done = run("sensor", device, "--check")
    assert (done.code, "another process" in done.said) == (2, True)
    assert lock is not None
    lock.close()
    (device / "measure.py").write_text("import machine_that_only_boards_have\n")
    done = run("sensor", device, "--check")
    assert (done.code, "mpremote" in done.err, "import machine_that" in done.err) == (2, True, True)
    (device / "measure.py").unlink()
    done = run("sensor", device, "--check")
    assert (done.code, "no such file" in done.err) == (2, True)
    done = run("sensor", device)
    assert (done.code, "no such file" in done.err) == (2, True)
    (device / "measure.py").write_text("def read():\n    return 21, 1\n")
    done = run("sensor", device)
    assert (done.code, "coarser steps than the resolution" in done.err) == (2, True)
