"""`cloakwork audit mqtt`: a real device over a real broker, in two set-ups."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cloakwork.device import Agent, FileReading
from cloakwork.mqtt import BrokerAddress
from cloakwork.site import load_plan
from tests.broker import Broker, running_broker
from tests.cli.conftest import Outcome, Run
from tests.cli.test_story import SITE
from tests.waiting import PATIENCE

QUICK = SITE.replace("readings_per_window = 10", "readings_per_window = 30\nresolution = 0.01")


@pytest.fixture
def site(tmp_path: Path, run: Run) -> Path:
    file = tmp_path / "hall.toml"
    file.write_text(QUICK, encoding="utf-8")
    assert run("plan", "--no-simulation", file, "--out", tmp_path / "hall.plan.json").code == 0
    return file


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker", quiet=True) as running:
        yield running


@contextmanager
def at_work(folder: Path, value: Path, broker: Broker) -> Iterator[None]:
    stopping = threading.Event()
    agent = Agent(folder, FileReading(value), broker=BrokerAddress(broker.host, broker.port))
    thread = threading.Thread(target=agent.run, args=(stopping.is_set,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(PATIENCE)


@dataclass(frozen=True)
class Person:
    """Standard input of someone who changes the set-up when asked."""

    value: Path
    reading: str

    def readline(self) -> str:
        self.value.write_text(self.reading, encoding="utf-8")
        return "\n"


def audit(run: Run, site: Path, broker: Broker, *words: object) -> Outcome:
    where = ("--id", "s2", "--broker", f"mqtt://localhost:{broker.port}", "--reports", 300)
    return run("audit", "mqtt", site, *where, *words)


def test_an_honest_device_shows_no_violation_and_an_interrupted_audit_resumes(
    run: Run, site: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(run("provision", site, "--id", "s2", "--bench", "--json").values["devices"][0]["folder"])
    planned, value = load_plan(site.parent / "hall.plan.json").sensor("s2"), site.parent / "value"
    value.write_text("20.0\n", encoding="utf-8")
    kept = site.parent / "audits" / "s2"
    kept.mkdir(parents=True)
    drawn = np.random.default_rng(1).normal(20, planned.sigma, 291) / planned.step
    rows = [f"0,s2,{number},{reading:.0f}" for number, reading in enumerate(drawn)]
    (kept / "setup-0.csv").write_text("\n".join(["time,sensor,seq,steps", *rows, ""]), encoding="utf-8")
    shift = ("--shift", f"{2 * planned.sigma:.6f}", "--confidence", 0.999)
    refused = audit(run, site, broker, *shift)
    assert (refused.code, "--resume" in refused.err) == (2, True)
    with at_work(folder, value, broker):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        alone = audit(run, site, broker, *shift, "--resume")
        assert (alone.code, "nobody pressed Enter" in alone.err) == (2, True), alone.err
        assert len((kept / "setup-0.csv").read_text(encoding="utf-8").splitlines()) == 301
        monkeypatch.setattr("sys.stdin", Person(value, f"{20 + 2 * planned.sigma:.6f}"))
        page = site.parent / "page.html"
        done = audit(run, site, broker, *shift, "--resume", "--html", page, "--json")
    assert done.code == 0, done.said
    assert done.values["reports_used"] == 300
    # a busy machine makes readings late, and the device sends constants instead, which differ by less
    assert all("differed by less than stated" in caution for caution in done.values["subject"]["cautions"])
    assert "one reading has at most" in " ".join(done.values["claimed"])
    assert "noise half as large as planned shows in about" in done.err
    assert "The sensor s2 of hall" in page.read_text(encoding="utf-8")
    files = (kept / "setup-0.csv", kept / "setup-1.csv")
    again = run("audit", "readings", *files, "--epsilon", 1.1, "--delta", 0.5)
    assert "300 reports with each" in again.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--id", "s99"], 2, "no sensor 's99'"),
        (["--id", "s2", "--reports", 20], 2, "at least 300"),
        (["--id", "s2", "--shift", 1e9], 2, "--shift"),
        (["--id", "s2", "--html", "/no/page.html"], 2, "--html /no/page.html"),
        (["--id", "s2", "--out", "/dev/null/a"], 2, "--out /dev/null/a"),
        (["--id", "s2"], 1, "cannot be reached"),
    ],
)
def test_an_audit_that_cannot_work_is_refused_first(
    run: Run, site: Path, words: list[object], code: int, said: str
) -> None:
    done = run("audit", "mqtt", site, "--broker", "mqtt://localhost:1", *words)
    assert (done.code, said in done.err) == (code, True), done.err
