"""`cloakwork audit mqtt`: a real device over a real broker, in two set-ups."""

import math
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from cloakwork.auditing import DeviceClaim
from cloakwork.cli.audit_mqtt import DeviceResult, advice
from cloakwork.cli.audit_options import AuditOptions, audited
from cloakwork.device import Agent, FileReading
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from cloakwork.site import Plan, load_plan
from tests.auditing.conftest import CLAIM
from tests.broker import Broker, running_broker
from tests.cli.conftest import Outcome, Run
from tests.cli.test_story import SITE
from tests.waiting import PATIENCE

QUICK = SITE.replace("readings_per_window = 10", "readings_per_window = 30\nresolution = 0.01")
CHANGE = """
import os, shutil, sys
shutil.copy(*sys.argv[1:])
with open(sys.argv[2] + ".to", "w") as told:
    told.write("standard error" if os.path.sameopenfile(1, 2) else "elsewhere")
"""


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


def audit_bench(run: Run, site: Path, broker: Broker) -> Outcome:
    folder = Path(run("provision", site, "--id", "s2", "--bench", "--json").values["devices"][0]["folder"])
    sigma = load_plan(site.parent / "hall.plan.json").sensor("s2").sigma
    value, other = site.parent / "value", site.parent / "other"
    value.write_text("20.0\n", encoding="utf-8")
    other.write_text(f"{20 + 2 * sigma:.6f}\n", encoding="utf-8")
    (site.parent / "change.py").write_text(CHANGE, encoding="utf-8")
    change = shlex.join([sys.executable, str(site.parent / "change.py"), str(other), str(value)])
    with at_work(folder, value, broker):
        return run(
            *("audit", "mqtt", site, "--id", "s2", "--broker", f"mqtt://localhost:{broker.port}"),
            *("--shift", f"{2 * sigma:.6f}", "--reports", 300, "--between", change),
            *("--html", site.parent / "page.html", "--confidence", 0.999, "--json", "--patience", 20),
        )


def test_an_honest_device_on_the_bench_shows_no_violation(run: Run, site: Path, broker: Broker) -> None:
    done = audit_bench(run, site, broker)
    assert done.code == 0, done.said
    assert done.values["reports_used"] == 300
    # a busy machine makes readings late, and the device sends constants instead, which differ by less
    assert all("differed by less than stated" in caution for caution in done.values["subject"]["cautions"])
    assert (site.parent / "value.to").read_text(encoding="utf-8") == "standard error"
    assert "one reading has at most" in " ".join(done.values["claimed"])
    assert "all sensors together" in " ".join(done.values["never_proved"])
    page = (site.parent / "page.html").read_text(encoding="utf-8")
    assert "The sensor s2 of hall" in page
    kept = site.parent / "audits" / "s2"
    again = run("audit", "readings", kept / "setup-0.csv", kept / "setup-1.csv", "--epsilon", 1.1, "--delta", 0.5)
    assert "300 reports with each" in again.out
    refused = audit_bench_again(run, site, broker)
    assert refused.code == 2
    assert f"cloakwork audit readings {kept / 'setup-0.csv'} {kept / 'setup-1.csv'} --epsilon 0." in refused.err


def audit_bench_again(run: Run, site: Path, broker: Broker) -> Outcome:
    where = ["--broker", f"mqtt://localhost:{broker.port}", "--between", "true"]
    return run("audit", "mqtt", site, "--id", "s2", *where)


def audit_recorded(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, *, wrong_by: float = 1.0, noise: float = 1.0
) -> Outcome:
    """Audit recorded readings whose set-ups differ `wrong_by` times as much as stated, with part of the noise."""

    def recorded(
        plan: Plan, _: object, claim: DeviceClaim, __: object, ___: object, options: AuditOptions, *____: object
    ) -> DeviceResult:
        rng = np.random.default_rng(3)
        sigma, step = plan.sensor("s2").sigma, plan.sensor("s2").step
        first, second = (
            np.rint(rng.normal(20 + shift, noise * sigma, options.reports) / step).astype(np.int64)
            for shift in (0.0, 2 * sigma * wrong_by)
        )
        parts = {0: iter(first), 1: iter(second)}
        source = lambda database, size, _: np.array(list(islice(parts[database], size)))  # noqa: E731
        return DeviceResult(audited(source, claim.epsilon, claim.delta, options, options.reports), (first, second), 0)

    monkeypatch.setattr("cloakwork.cli.audit_mqtt._record", recorded)
    shift = 2 * load_plan(site.parent / "hall.plan.json").sensor("s2").sigma
    return run(
        *("audit", "mqtt", site, "--id", "s2", "--broker", "mqtt://localhost:1", "--between", "true", "--json"),
        *("--shift", f"{shift:.6f}", "--reports", 400, "--confidence", 0.999),
    )


def test_a_device_with_a_quarter_of_the_noise_is_found_out(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = audit_recorded(run, site, monkeypatch, noise=0.25)
    assert done.code == 3, done.said
    assert "noise is missing" in " ".join(done.values["found"])
    assert done.values["subject"]["doubt"] == ""


def test_set_ups_further_apart_than_stated_are_distinguished_from_missing_noise(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = audit_recorded(run, site, monkeypatch, wrong_by=2.0)
    assert done.code == 3, done.said
    assert done.values["subject"]["doubt"]
    assert done.values["subject"]["doubt"] in done.values["summary"]
    assert "noise is missing" not in " ".join(done.values["found"])


def test_a_set_up_that_was_not_changed_is_not_taken_for_privacy(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = audit_recorded(run, site, monkeypatch, wrong_by=0.0)
    assert done.code == 0, done.said
    assert done.values["subject"]["cautions"]
    assert done.values["subject"]["cautions"][0] in done.values["summary"]


def test_an_audit_says_beforehand_what_it_can_find(run: Run, site: Path) -> None:
    done = run("audit", "mqtt", site, "--id", "s2", "--broker", "mqtt://localhost:1", "--between", "true")
    assert done.code == 1
    assert "readings are recorded" not in done.err
    assert "is kept" not in done.err
    assert "noise half as large" in done.err
    assert "with --shift" in done.err
    assert "cannot be reached" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--id", "s99"], "no sensor 's99'"),
        (["--id", "s2", "--reports", 20], "at least 300"),
        (["--id", "s2", "--shift", 1e9], "--shift"),
        (["--id", "s2"], "--between"),
        (
            ["--id", "s2", "--between", "true", "--html", "/no/page.html"],
            "--html /no/page.html",
        ),
        (["--id", "s2", "--between", "true", "--out", "/dev/null/a"], "--out /dev/null/a"),
        (["--id", "s2", "--between", ""], "--between"),
        (["--id", "s2", "--between", "/no/such"], "--between"),
        (["--id", "s2", "--between", "'"], "--between"),
    ],
)
def test_a_bench_audit_that_cannot_work_is_refused_first(run: Run, site: Path, words: list[object], said: str) -> None:
    done = run("audit", "mqtt", site, "--broker", "mqtt://localhost:1", *words)
    assert (done.code, said in done.err) == (2, True), done.err


def test_how_long_it_takes_is_told_by_how_often_the_device_really_reads(
    run: Run, site: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run("provision", site, "--id", "s2", "--bench", "--period", 0.25, "--json")
    (site.parent / "value").write_text("20.0", encoding="utf-8")
    settled = []

    def enough(*_: object, settle: float) -> None:
        settled.append(settle)
        raise InputError("enough")

    monkeypatch.setattr("cloakwork.cli.audit_mqtt.Recording", enough)
    with at_work(Path(told.values["devices"][0]["folder"]), site.parent / "value", broker):
        done = audit_bench_again(run, site, broker)
    seen = re.search(r"a reading every (\S+) s: about (\d+) min in all", done.err)
    assert seen is not None, done.err
    period = float(seen[1])
    assert period / 0.25 == pytest.approx(max(1, round(period / 0.25)), abs=0.1)  # a slot may have stayed empty
    assert settled == pytest.approx([2 * period + 0.5])
    assert int(seen[2]) == pytest.approx(2 * 2000 * period / 60, abs=1)


def test_nobody_there_to_change_the_set_up_is_said_and_the_audit_goes_on_later(
    run: Run, site: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(run("provision", site, "--id", "s2", "--bench", "--json").values["devices"][0]["folder"])
    (site.parent / "value").write_text("20.0", encoding="utf-8")
    asked = []

    def nobody() -> str:
        asked.append(1)
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    where = ["--id", "s2", "--broker", f"mqtt://localhost:{broker.port}", "--reports", 300, "--resume"]
    planned = load_plan(site.parent / "hall.plan.json").sensor("s2")
    kept = site.parent / "audits" / "s2"
    kept.mkdir(parents=True)
    first, second = (kept / f"setup-{k}.csv" for k in (0, 1))

    def write_most(file: Path, seed: int) -> None:
        drawn = np.random.default_rng(seed).normal(20, planned.sigma, 291) / planned.step
        rows = [f"0,s2,{number},{value:.0f}" for number, value in enumerate(drawn)]
        file.write_text("\n".join(["time,sensor,seq,steps", *rows, ""]), encoding="utf-8")

    write_most(first, 1)
    with at_work(folder, site.parent / "value", broker):
        done = run("audit", "mqtt", site, *where)
        assert (done.code, asked, "--between" in done.err) == (2, [1], True), done.err
        assert len(first.read_text(encoding="utf-8").splitlines()) == 301
        write_most(second, 2)
        done = run("audit", "mqtt", site, *where, "--between", "false", "--json")
    assert "going on after 300 and 291 recorded readings: the device must be in set-up 1" in done.err
    assert len(first.read_text(encoding="utf-8").splitlines()) == 301, "set-up 0 is over, and not changed again"
    assert len(second.read_text(encoding="utf-8").splitlines()) >= 301
    assert done.values["reports_used"] == 300


def test_an_audit_that_is_interrupted_says_how_to_go_on(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = [400, 0]

    def interrupted(*words: object) -> None:
        files = words[3]
        assert isinstance(files, tuple)
        for file, size in zip(files, sizes, strict=True):
            file.write_text("time,sensor,seq,steps\n" + "0,s2,1,5\n" * size, encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr("cloakwork.cli.audit_mqtt._record", interrupted)
    where = ["--id", "s2", "--broker", "mqtt://localhost:1", "--between", "true", "--shift", 1, "--epsilon", 0.25]
    done = run("audit", "mqtt", site, *where, "--out", tmp_path / "one")
    assert done.code != 0
    assert "400 and 0 readings are recorded" in done.err
    assert "with --resume to go on" in done.err
    assert "cloakwork audit readings" not in done.err
    sizes[1] = 310
    done = run("audit", "mqtt", site, *where, "--out", tmp_path / "t w o")
    said = next(line for line in done.err.splitlines() if line.startswith("cloakwork audit readings"))
    words = shlex.split(said)[1:]
    assert words[2:6] == [str(tmp_path / "t w o" / f"setup-{k}.csv") for k in (0, 1)] + ["--epsilon", "0.25"]
    assert 0 < float(words[words.index("--delta") + 1]) < 1


def test_a_larger_shift_is_advised_only_where_it_is_larger() -> None:
    claim = replace(CLAIM, shift=1.0, epsilon=0.3, delta=0.1)
    assert advice(claim, 5000) == "feed it readings further apart, such as by 4 °C with --shift 4"
    assert advice(replace(claim, shift=4.0), 5000) == "give --reports 5200"
    assert "--epsilon" in advice(replace(claim, shift=5.0), math.inf)
