"""Every command of docs/installing.md runs as printed, with simulated hardware and a simulated walk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

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
        ["plan"], ["provision"], ["sensor"], ["calibrate"], ["plan", "provision"], ["collect"], ["sensor"],
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in commands[:-2]:
        if "--check" in block:
            (tmp_path / "devices" / "s01" / "measure.py").write_text(MEASURE, encoding="utf-8")
        done = subprocess.run(
            ["/bin/bash", "-euc", block],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "READY" in done.stdout + done.stderr or "--check" not in block
    measured = load_site(site)
    assert abs(measured.spec.sources.strongest / 5.0 - 1) < 0.05
    assert not (tmp_path / "raw.csv").exists()
    (tmp_path / "devices" / "s01" / "measure.py").write_text(MEASURE, encoding="utf-8")
    started([*commands[-2].split(), "--listen", "127.0.0.1:0", "--broker", "none"], "http://", tmp_path)
    started(commands[-1].split(), "before its first reading", tmp_path)


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
    [code] = blocks(PAGE, "py")
    file = tmp_path / "w1_slave"
    made: dict[str, Any] = {}
    exec(code.replace("/sys/bus/w1/devices/28-0123456789ab/w1_slave", str(file)), made)  # noqa: S102
    for raw, value in ("50 05", 85.0), ("91 01", 25.0625), ("5e ff", -10.125):  # from the data sheet of the chip
        file.write_text(f"{raw} 4b 46 7f ff 0c 10 1c : crc=1c YES\n", encoding="ascii")
        numerator, denominator = made["read"]()
        assert numerator / denominator == value
