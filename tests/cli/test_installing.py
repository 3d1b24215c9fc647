"""Every command of docs/guides/install-sensors.md runs as printed, with simulated hardware and a simulated walk."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.installing import SWING
from benchmarks.installing import followed as followed_quality
from cloakwork.readings import TableFile, column_numbers, column_texts, column_times
from cloakwork.site import load_plan, load_site
from tests.cli.conftest import Run
from tests.fitting.walks import SPOTS, true_plan, true_readings, write_walk
from tests.test_docs import ROOT, blocks
from tests.waiting import until

WALKED = [None, *SPOTS, None]
PAGE = ROOT / "docs" / "guides" / "install-sensors.md"
MEASURE = blocks(PAGE, "py")[1]


def test_the_page_leads_from_a_site_file_to_a_map_that_names_the_right_rooms(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [text] = blocks(PAGE, "toml")
    site = Path("site.toml")
    site.write_text(text, encoding="utf-8")
    stated = load_site(site)
    readings = true_readings(true_plan(stated), np.ones(12), np.linspace(19.0, 21.2, 12), WALKED)
    readings += SWING / 12 * np.linspace(-1, 1, len(WALKED))[:, None]  # half an hour of a day that gets warmer
    write_walk(tmp_path, stated, readings, WALKED, noise=0.04, reads=30, step=0.0625)
    commands = blocks(PAGE, "sh")
    assert [re.findall(r"(?:^|do )cloakwork (\w+)", block, flags=re.MULTILINE) for block in commands] == [
        ["plan"], ["provision"], ["sensor"], ["sensor"], ["calibrate"], ["plan", "provision"], ["collect"], ["token"],
        ["sensor"],
    ]  # fmt: skip
    steps = ["", "s01 hangs at", "READY", "s02 READY", "the model fits", "s12 hangs at"]
    for block, expected in zip(commands[:-3], steps, strict=True):
        if "READY" in expected:
            for folder in Path("devices").iterdir():
                (folder / "measure.py").write_text(MEASURE, encoding="utf-8")
        assert expected in (run(two(block), tmp_path) if "wait" in block else followed(block, succeed))
    measured = load_site(site)
    assert abs(measured.spec.sources.strongest / 5.0 - 1) < 0.05
    assert not Path("raw.csv").exists()
    assert Path("devices/s01/measure.py").read_text(encoding="utf-8") == MEASURE
    started([*commands[-3].split(), "--listen", "127.0.0.1:0", "--broker", "none"], "http://", tmp_path)
    followed(commands[-2], succeed)
    started(["bash", "-c", two(commands[-1])], "s02 before its first reading", tmp_path)
    printed = re.search(r"names\s+the right room of (\d+) % of people at once and of (\d+) %", PAGE.read_text("utf-8"))
    assert printed is not None
    cloak = load_plan("site.plan.json").cloak(measured)
    found = followed_quality(measured, cloak, true_plan(measured), frames=100, seed=1)[1]
    assert found.room.value > float(printed[2]) / 100 - 0.1
    assert found.rooms.value > 0.8  # every room has the right number of people; 0.11 if the site states no drift


def followed(block: str, succeed: Run) -> str:
    """Return the output of a block's commands; ours run in this process, and those of a loop once for each sensor."""
    said = ""
    loop = re.compile(r"^for id in .*?; do (.*); done$", flags=re.MULTILINE)
    ids = [f"s{number:02}" for number in range(1, 13)]
    for line in loop.sub(lambda found: "\n".join(found[1].replace("$id", each) for each in ids), block).splitlines():
        for part in line.split("; "):
            words = shlex.split(part, comments=True)
            if words[:1] == ["cloakwork"]:
                simulated = ["--no-simulation"] if words[1] == "plan" else []  # which takes a minute
                said += succeed(*words[1:], *simulated).said
            elif words:
                subprocess.run(words, check=True)
    return said


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
    code = blocks(PAGE, "py")[2]
    (tmp_path / "record.py").write_text(code, encoding="utf-8")
    for name in ("s01", "s02"):
        (tmp_path / "devices" / name).mkdir(parents=True)
        (tmp_path / "devices" / name / "measure.py").write_text(MEASURE, encoding="utf-8")
    run("python record.py 2", tmp_path)
    table = TableFile(tmp_path / "raw.csv").read(["time", "sensor", "value"])
    assert list(column_texts(table["sensor"], "sensor").labels) == ["s01", "s02"]
    assert len(column_times(table["time"], "time")) == 4
    assert abs(column_numbers(table["value"], "value") - 20.0).max() < 1


def two(block: str) -> str:
    """A block for the first two sensors of the site only."""
    assert block.count("seq -f s%02g 12") == 1
    return block.replace("seq -f s%02g 12", "seq -f s%02g 2")


def started(command: list[str], expected: str, folder: Path) -> None:
    """Run a command until it says what is expected, and stop it as Ctrl-C does."""
    said = folder / "said"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background of a shell ignore it
    try:
        with said.open("w", encoding="utf-8") as out:
            work = subprocess.Popen(
                command, cwd=folder, env=os.environ | {"PATH": path}, stdout=out, stderr=out, start_new_session=True
            )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        until(lambda: expected in said.read_text(encoding="utf-8") or work.poll() is not None)
    finally:
        os.killpg(work.pid, signal.SIGINT)
    code = work.wait(60)
    assert expected in said.read_text(encoding="utf-8"), code


def test_the_measure_py_of_the_page_returns_the_sixteenths_of_the_chip(tmp_path: Path) -> None:
    code = blocks(PAGE, "py")[0]
    file = tmp_path / "w1_slave"
    made: dict[str, Any] = {}
    exec(code.replace("/sys/bus/w1/devices/28-0123456789ab/w1_slave", str(file)), made)  # noqa: S102
    for raw, value in ("50 05", 85.0), ("91 01", 25.0625), ("5e ff", -10.125):  # from the data sheet of the chip
        file.write_text(f"{raw} 4b 46 7f ff 0c 10 1c : crc=1c YES\n", encoding="ascii")
        numerator, denominator = made["read"]()
        assert numerator / denominator == value
