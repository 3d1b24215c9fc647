"""Every command of docs/installing.md runs as printed, with simulated hardware and a simulated walk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork.readings import TableFile, column_numbers, column_texts, column_times
from cloakwork.site import load_site
from tests.fitting.walks import SPOTS, true_plan, true_readings, write_walk
from tests.test_docs import ROOT, blocks
from tests.waiting import until

PAGE = ROOT / "docs" / "installing.md"
MEASURE = """\
import random

def read():
    return round((20.0 + random.gauss(0, 0.04)) * 16), 16
"""


def test_the_page_leads_from_a_site_file_to_a_collector(tmp_path: Path) -> None:
    [text] = blocks(PAGE, "toml")
    site = tmp_path / "site.toml"
    site.write_text(text, encoding="utf-8")
    stated = load_site(site)
    readings = true_readings(true_plan(stated), np.ones(12), np.linspace(19.0, 21.2, 12), [*SPOTS, None])
    write_walk(tmp_path, stated, readings, [*SPOTS, None], noise=0.04, reads=30, step=0.0625)
    commands = blocks(PAGE, "sh")
    assert [re.findall(r"^cloakwork (\w+)", block, flags=re.MULTILINE) for block in commands] == [
        ["plan"], ["provision"], ["sensor"], ["calibrate"], ["plan", "provision"], ["collect"], ["token"], ["sensor"],
    ]  # fmt: skip
    for block in commands[:-3]:
        if "--check" in block:
            (tmp_path / "devices" / "s01" / "measure.py").write_text(MEASURE, encoding="utf-8")
        said = run(block, tmp_path)
        assert "READY" in said or "--check" not in block
    measured = load_site(site)
    assert abs(measured.spec.sources.strongest / 5.0 - 1) < 0.05
    assert not (tmp_path / "raw.csv").exists()
    (tmp_path / "devices" / "s01" / "measure.py").write_text(MEASURE, encoding="utf-8")
    started([*commands[-3].split(), "--listen", "127.0.0.1:0", "--broker", "none"], "http://", tmp_path)
    run(commands[-2], tmp_path)
    started(commands[-1].split(), "before its first reading", tmp_path)


def run(block: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-euc", block],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_recorder_of_the_page_writes_readings_that_calibrate_takes(tmp_path: Path) -> None:
    code = blocks(PAGE, "py")[1]
    (tmp_path / "record.py").write_text(code, encoding="utf-8")
    for name in ("s01", "s02"):
        (tmp_path / "devices" / name).mkdir(parents=True)
        (tmp_path / "devices" / name / "measure.py").write_text(MEASURE, encoding="utf-8")
    run("python record.py 2", tmp_path)
    table = TableFile(tmp_path / "raw.csv").read(["time", "sensor", "value"])
    assert list(column_texts(table["sensor"], "sensor").labels) == ["s01", "s02"]
    assert len(column_times(table["time"], "time")) == 4
    assert abs(column_numbers(table["value"], "value") - 20.0).max() < 1


def started(command: list[str], expected: str, folder: Path) -> None:
    """Run a command until it says what is expected, and stop it."""
    said = folder / "said"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with said.open("w", encoding="utf-8") as out:
        work = subprocess.Popen(command, cwd=folder, env=os.environ | {"PATH": path}, stdout=out, stderr=out)
    try:
        until(lambda: expected in said.read_text(encoding="utf-8") or work.poll() is not None)
    finally:
        work.send_signal(signal.SIGTERM)
    assert work.wait(60) == 0, said.read_text(encoding="utf-8")


def test_the_measure_py_of_the_page_returns_the_sixteenths_of_the_chip(tmp_path: Path) -> None:
    code = blocks(PAGE, "py")[0]
    file = tmp_path / "w1_slave"
    made: dict[str, Any] = {}
    exec(code.replace("/sys/bus/w1/devices/28-0123456789ab/w1_slave", str(file)), made)  # noqa: S102
    for raw, value in ("50 05", 85.0), ("91 01", 25.0625), ("5e ff", -10.125):  # from the data sheet of the chip
        file.write_text(f"{raw} 4b 46 7f ff 0c 10 1c : crc=1c YES\n", encoding="ascii")
        numerator, denominator = made["read"]()
        assert numerator / denominator == value
