"""Every command of docs/installing.md runs as printed, with simulated hardware and a simulated walk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

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
        ["plan"], ["provision"], ["sensor"], ["calibrate"], ["plan", "provision"], ["collect"],
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in commands[:-1]:
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
    said = tmp_path / "said"
    with said.open("w", encoding="utf-8") as out:
        words = [*commands[-1].split(), "--listen", "127.0.0.1:0", "--broker", "none"]
        collector = subprocess.Popen(words, cwd=tmp_path, env=os.environ | {"PATH": path}, stdout=out, stderr=out)
    try:
        until(lambda: "http://" in said.read_text(encoding="utf-8") or collector.poll() is not None)
    finally:
        collector.send_signal(signal.SIGTERM)
    assert collector.wait(60) == 0, said.read_text(encoding="utf-8")
