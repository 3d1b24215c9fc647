"""Long commands on the cluster of a real scheduler give what they give here."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloakwork.cli.audit import VIOLATION
from tests.cli.conftest import Run
from tests.cluster import Processes, cluster_processes
from tests.site.test_tradeoff import SITE

GEOMETRIC = """
import math, random, sys
rng = random.Random({seed})
draw = lambda: math.floor(math.log(1 - rng.random()) / -1.5)
for _ in range({lines}):
    print(int(sys.argv[1]) + draw() - draw())
"""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with cluster_processes(tmp_path_factory.mktemp("cluster"), 1) as running:
        yield running


def program(folder: Path, **values: object) -> str:
    file = folder / "device.py"
    file.write_text(GEOMETRIC.format(**values), encoding="utf-8")
    return shlex.join([sys.executable, str(file)])


def test_a_sweep_has_the_same_numbers_on_a_cluster(
    succeed: Run, processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    words = ("plan", site, "--sweep", "--epsilon", "8", "--frames", "24", "--json")
    assert succeed(*words, "--scheduler", processes.address).values == succeed(*words).values


def test_an_audit_takes_reports_from_workers_and_refuses_runs_that_are_copies(
    run: Run, processes: Processes, tmp_path: Path
) -> None:
    words = ("--epsilon", "1", "--reports", "3000", "--seed", "2", "--scheduler", processes.address)
    done = run("audit", "command", program(tmp_path, seed="", lines=10_000), *words, "--json")
    assert done.code == VIOLATION
    assert "500 reports" in json.dumps(done.values)
    copies = run("audit", "command", program(tmp_path, seed="sys.argv[1]", lines=10_000), *words)
    assert copies.code == 2
    assert "same random numbers" in copies.err
    failing = run("audit", "command", f"{program(tmp_path, seed='', lines=2)} x --fail {{}}", *words)
    assert failing.code == 2
    assert "worker" in failing.err
