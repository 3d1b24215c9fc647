"""`cloakwork audit`: a real program, two recordings, and a real device over a real broker."""

import json
import math
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.broker import Broker, running_broker
from tests.cli.conftest import Outcome, Run
from tests.cli.test_story import SITE

from cloakwork.agent import Agent, FileSource
from cloakwork.auditing import Witness
from cloakwork.auditing.sources import BenchClaim
from cloakwork.cli.audit_mqtt import advice, lost, steps
from cloakwork.cli.audit_pace import Pace
from cloakwork.errors import InputError
from cloakwork.privacy.table import noise_table
from cloakwork.site import load_plan
from cloakwork.site.broker import Broker as Reached

QUICK = SITE.replace("readings_per_window = 10", "readings_per_window = 50")
PROGRAM = """
import random, sys
value, spread = int(sys.argv[2]), int(sys.argv[1])
rng = random.Random(value)
while True:
    print(value * 10 + rng.randrange(spread))
"""
FAILS = """
import random, sys
for k in range(500):
    print(random.random())
sys.exit(int(sys.argv[1]))
"""
CHANGE = """
import os, shutil, sys
shutil.copy(*sys.argv[1:])
with open(sys.argv[2] + ".to", "w") as told:
    told.write("standard error" if os.path.sameopenfile(1, 2) else "elsewhere")
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "device.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return shlex.join([sys.executable, str(file)])


def test_an_honest_program_ends_with_0_and_a_cheating_one_with_3(run: Run, program: str, tmp_path: Path) -> None:
    # values differ by a tenth of the spread: delta is 0.1 at every epsilon
    words = ["--epsilon", 0.5, "--delta", 0.101, "--reports", 4000, "--confidence", 0.999]
    honest = run("audit", "command", f"{program} 100", *words)
    assert (honest.code, "No violation was found." in honest.out) == (0, True)
    assert "What an audit can never prove:" in honest.out
    page = tmp_path / "page.html"
    cheat = run("audit", "command", f"{program} 50", *words, "--html", page)
    assert (cheat.code, "The claim does not hold." in cheat.out) == (3, True)
    assert "The claim does not hold" in page.read_text(encoding="utf-8")


def test_json_is_one_object_and_the_exit_code_stays(run: Run, program: str) -> None:
    done = run("audit", "command", f"{program} 20", "--epsilon", 0.1, "--json", "--seed", 1)
    assert done.code == 3
    assert done.values["verdict"] == "violation"
    assert done.values["made"].endswith("UTC")


def test_dependent_reports_end_with_4(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "stuck.py"
    file.write_text(
        "import random\nwhile True:\n    k = random.random()\n    print(k)\n    print(k)\n", encoding="utf-8"
    )
    done = run("audit", "command", f"{sys.executable} {file}", "--epsilon", 1)
    assert (done.code, "Nothing can be concluded." in done.out) == (4, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["command", "false", "--epsilon", 1], "exit code 1"),
        (["command", "sleep 60", "--epsilon", 1, "--timeout", 0.2], "no line within 0.2 s"),
        (["command", "yes", "--epsilon", 1, "--reports", 10], "at least 300"),
        (["command", "yes", "--epsilon", 1, "--confidence", 1], "confidence"),
        (["command", "yes", "--epsilon", 1, "--as", "letters"], "--as"),
        (["readings", "/no/a.csv", "/no/b.csv", "--epsilon", 1], "No such file"),
    ],
)
def test_what_cannot_be_audited_ends_with_2(run: Run, words: list[object], said: str) -> None:
    done = run("audit", *words)
    assert (done.code, said in done.err) == (2, True), done.err


def test_words_are_shown_and_never_act(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "evil.py"
    text = """
import random, sys
while True:
    print("<script>\\x1b[2J" if sys.argv[1] == "1" and random.random() < 0.5 else "ok")
"""
    file.write_text(text, encoding="utf-8")
    page = tmp_path / "page.html"
    done = run("audit", "command", f"{sys.executable} {file}", "--epsilon", 1, "--html", page)
    assert done.code == 3
    assert "<script>\\x1b[2J" in done.out
    assert "\x1b" not in done.out
    written = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in written
    assert written.count("<script") == 1


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_drawn(run: Run, tmp_path: Path) -> None:
    started = tmp_path / "started"
    (tmp_path / "a").mkdir()
    for page, said in (
        (tmp_path / "no" / "page.html", "there is no folder"),
        (tmp_path / "a", "that is a folder"),
        (tmp_path / ("x" * 250), "cannot be written (File name too long)"),
    ):
        for words in (["command", f"touch {started}"], ["readings", "/no/a.csv", "/no/b.csv"]):
            done = run("audit", *words, "--epsilon", 1, "--html", page)
            assert (done.code, f"--html {page}: {said}" in done.err) == (2, True), done.err
    assert not started.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_page_that_fails_at_the_end_is_named_and_the_result_is_told(
    run: Run, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device", f"{path}.part")

    monkeypatch.setattr("cloakwork.cli.audit.written", full)
    page = tmp_path / "page.html"
    done = run("audit", "command", f"{program} 20", "--epsilon", 0.1, "--html", page)
    assert (done.code, f"cloakwork: {page}: No space left on device" in done.err) == (1, True)
    assert "The claim does not hold." in done.out


def test_a_program_that_fails_on_one_input_is_told_which_and_when(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fails.py"
    file.write_text(FAILS, encoding="utf-8")
    done = run("audit", "command", f"{sys.executable} {file}", "--epsilon", 1)
    assert done.code == 2
    assert "on input 1, after 500 reports, it ended with exit code 1. A failure can be an outcome too" in done.err


def test_reports_that_are_all_the_same_are_said_to_be(run: Run) -> None:
    done = run("audit", "command", "yes {}5", "--epsilon", 1, "--as", "words", "--reports", 400)
    assert "All reports were the same" not in done.out
    done = run("audit", "command", "sh -c 'yes 5'", "--epsilon", 1, "--reports", 400)
    assert "All reports were the same, with both inputs: 5." in done.out


def test_a_delta_of_1_is_neither_offered_nor_taken(run: Run) -> None:
    assert "<=1.0" not in run("audit", "command", "--help").out
    done = run("audit", "command", "yes", "--epsilon", 1, "--delta", 1)
    assert (done.code, "Give a number below 1" in done.err) == (2, True)


def recordings(folder: Path, *, shift: int, lengths: tuple[int, int] = (4000, 3000)) -> tuple[Path, Path]:
    rng = np.random.default_rng(7)
    paths = folder / "a.csv", folder / "b.csv"
    for path, at, size, first in zip(paths, (0, shift), lengths, (0, 10_000), strict=True):
        values = np.rint(rng.normal(at, 100, size)).astype(int)
        rows = [f"{10 * k},s1,{k},{value}" for k, value in enumerate(values, start=first)]
        path.write_text("\n".join(["time,sensor,seq,value", *rows]) + "\n", encoding="utf-8")
    return paths


def test_two_recordings_are_compared_as_far_as_the_shorter_goes(run: Run, tmp_path: Path) -> None:
    # a shift of one standard deviation has delta 0.1269 at epsilon 1
    words = ["--epsilon", 1, "--delta", 0.127, "--sensor", "s1", "--confidence", 0.999]
    honest = run("audit", "readings", *recordings(tmp_path, shift=100), *words)
    assert (honest.code, "3,000 reports with each" in honest.out) == (0, True), honest.err
    assert "the first 3,000 of each are used" in honest.err
    assert run("audit", "readings", *recordings(tmp_path, shift=200), *words).code == 3
    few = run("audit", "readings", *recordings(tmp_path, shift=0, lengths=(299, 400)), *words)
    assert (few.code, "at least 300 in each" in few.err) == (2, True)


def test_noise_that_was_used_for_both_recordings_is_no_violation_but_bad_input(run: Run, tmp_path: Path) -> None:
    first, second = recordings(tmp_path, shift=0)
    rows = [row.split(",") for row in first.read_text(encoding="utf-8").splitlines()]
    moved = [",".join([*row[:3], str(int(row[3]) + 50)]) for row in rows[1:]]
    second.write_text("\n".join([",".join(rows[0]), *moved]), encoding="utf-8")
    reused = run("audit", "readings", first, second, "--epsilon", 1)
    assert (reused.code, "number 0 has another value in" in reused.err) == (2, True), reused.said
    same = run("audit", "readings", first, first, "--epsilon", 1)
    assert (same.code, "is given twice" in same.err) == (2, True), same.said


def test_two_recordings_that_are_identical_are_said_to_be(run: Run, tmp_path: Path) -> None:
    values = np.random.default_rng(7).integers(0, 1000, 2000)
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in paths:
        path.write_text("v\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")
    done = run("audit", "readings", *paths, "--epsilon", 1)
    assert (done.code, "The two recordings are identical" in done.out) == (4, True), done.out


def test_the_page_is_never_written_over_a_recording(run: Run, tmp_path: Path) -> None:
    first, second = recordings(tmp_path, shift=0)
    done = run("audit", "readings", first, second, "--epsilon", 1, "--html", second)
    assert (done.code, "write to another file" in done.err) == (2, True)
    assert second.read_text(encoding="utf-8").startswith("time,")


@pytest.fixture
def site(tmp_path: Path, run: Run) -> Path:
    file = tmp_path / "hall.toml"
    file.write_text(QUICK, encoding="utf-8")
    assert run("plan", file, "--out", tmp_path / "hall.plan.json").code == 0
    return file


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker", quiet=True) as running:
        yield running


def tamper(folder: Path, scale: float) -> None:
    """Give a device a table of noise that is smaller than the plan's."""
    told = json.loads((folder / "device.json").read_text(encoding="utf-8"))
    plan = load_plan(folder.parent.parent / "hall.plan.json")
    table = noise_table(plan.sensor(told["sensor"]).ratio * scale)
    levels = [[level.factor, len(level.cuts) // 16] for level in table.levels]
    told["noise"] = {"digest": table.digest, "levels": levels}
    (folder / "device.json").write_text(json.dumps(told), encoding="utf-8")
    (folder / "noise.tab").write_bytes(table.cuts)


@contextmanager
def at_work(folder: Path, value: Path, broker: Broker) -> Iterator[None]:
    stopping = threading.Event()
    agent = Agent(folder, FileSource(value), broker=Reached(broker.host, broker.port))
    thread = threading.Thread(target=agent.run, args=(stopping.is_set,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(20)


def audit_bench(
    run: Run, site: Path, broker: Broker, *, scale: float, wrong_by: float = 1.0, reports: int = 400
) -> Outcome:
    folder = Path(run("provision", site, "--id", "s2", "--bench", "--json").values["folder"])
    if scale != 1:
        tamper(folder, scale)
    sigma = load_plan(site.parent / "hall.plan.json").sensor("s2").sigma
    value, other = site.parent / "value", site.parent / "other"
    value.write_text("20.0\n", encoding="utf-8")
    other.write_text(f"{20 + 2 * sigma * wrong_by:.6f}\n", encoding="utf-8")
    (site.parent / "change.py").write_text(CHANGE, encoding="utf-8")
    change = shlex.join([sys.executable, str(site.parent / "change.py"), str(other), str(value)])
    with at_work(folder, value, broker):
        return run(
            *("audit", "mqtt", site, "--id", "s2", "--broker", f"mqtt://localhost:{broker.port}"),
            *("--shift", f"{2 * sigma:.6f}", "--reports", reports, "--between", change),
            *("--html", site.parent / "page.html", "--confidence", 0.999, "--json", "--patience", 20),
        )


def test_an_honest_device_on_the_bench_shows_no_violation(run: Run, site: Path, broker: Broker) -> None:
    done = audit_bench(run, site, broker, scale=1.0)
    assert done.code == 0, done.said
    assert done.values["reports_used"] == 400
    assert done.values["subject"]["cautions"] == []
    assert (site.parent / "value.to").read_text(encoding="utf-8") == "standard error"
    claim = " ".join(done.values["claimed"])
    assert "a single reading of it has at most this epsilon and delta for set-ups whose true readings differ" in claim
    assert "Anything about all sensors together" in " ".join(done.values["never_proved"])
    page = (site.parent / "page.html").read_text(encoding="utf-8")
    assert "The sensor s2 of hall" in page
    kept = site.parent / "audits" / "s2"
    again = run("audit", "readings", kept / "setup-0.csv", kept / "setup-1.csv", "--epsilon", 1.1, "--delta", 0.5)
    assert "400 reports with each" in again.out
    refused = audit_bench_again(run, site, broker)
    assert refused.code == 2
    assert f"cloakwork audit readings {kept / 'setup-0.csv'} {kept / 'setup-1.csv'} --epsilon 0." in refused.err


def audit_bench_again(run: Run, site: Path, broker: Broker) -> Outcome:
    where = ["--broker", f"mqtt://localhost:{broker.port}", "--between", "true"]
    return run("audit", "mqtt", site, "--id", "s2", *where)


def test_a_device_with_half_the_noise_is_found_out(run: Run, site: Path, broker: Broker) -> None:
    done = audit_bench(run, site, broker, scale=0.5)
    assert done.code == 3, done.said
    assert "noise is missing" in " ".join(done.values["found"])
    assert done.values["headline"] == "The claim does not hold"
    assert "We conclude that this one does not keep it." in done.values["summary"]


def test_set_ups_that_differ_by_more_than_was_said_are_told_from_missing_noise(
    run: Run, site: Path, broker: Broker
) -> None:
    done = audit_bench(run, site, broker, scale=1.0, wrong_by=2.0)
    assert done.code == 3, done.said
    assert done.values["headline"] == "The claim does not hold, or the set-ups differ too much"
    assert "Either the device breaks its claim or the set-ups differ by more than they should" in done.values["summary"]
    assert "We conclude" not in done.values["summary"]
    assert "noise is missing" not in " ".join(done.values["found"])


def test_a_set_up_that_was_not_changed_is_not_taken_for_privacy(run: Run, site: Path, broker: Broker) -> None:
    done = audit_bench(run, site, broker, scale=1.0, wrong_by=0.0, reports=300)
    assert done.code == 0, done.said
    # no more than that: on a busy machine a reading can come too late, be replaced by the baseline, and differ
    assert "The set-ups differed by less than was stated" in done.values["summary"]
    assert any("That is less than was stated" in note for note in done.values["found"])


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("the output is above -40", ("Readings are whole steps of 0.5 °C: -40 stands for -20 °C.",)),
        ("the lowest bits are 3", ("Readings are whole steps of 0.5 °C.",)),
        (None, ()),
    ],
)
def test_a_number_of_steps_is_told_in_the_unit_of_the_site(event: str | None, said: tuple[str, ...]) -> None:
    claim = BenchClaim(
        sensor="s2", unit="°C", sigma=2.0, step=0.5, shift=4.0, hidden_shift=1.0, mu=2.25, epsilon=1.0, delta=0.5
    )
    witness = event and Witness(event=event, direction="0->1", counts=(3, 2), reports=9, source="half-lines")
    assert steps(claim, witness or None) == said


def test_readings_that_never_came_are_said() -> None:
    assert lost(0) == ()
    assert lost(1)[0].startswith("By their numbers, 1 reading never came")
    assert lost(1200)[0].startswith("By their numbers, 1,200 readings never came")


def test_an_audit_says_beforehand_what_it_can_find(run: Run, site: Path) -> None:
    done = run("audit", "mqtt", site, "--id", "s2", "--broker", "mqtt://localhost:1", "--between", "true")
    assert done.code == 1
    assert "readings are recorded" not in done.err
    assert "is kept" not in done.err
    assert "noise half as large as planned shows in about" in done.err
    assert "with --shift" in done.err
    assert "cannot be reached" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--id", "s99"], "no sensor 's99'"),
        (["--id", "s2", "--reports", 20], "at least 300"),
        (["--id", "s2", "--shift", 1e9], "does not hide at all"),
        (["--id", "s2"], "give a program that does with --between. Standard input is no terminal."),
        (
            ["--id", "s2", "--between", "true", "--html", "/no/page.html"],
            "--html /no/page.html: there is no folder /no",
        ),
        (["--id", "s2", "--between", "true", "--out", "/dev/null/a"], "--out /dev/null/a: the folder cannot be made"),
        (["--id", "s2", "--between", ""], "no such program"),
        (["--id", "s2", "--between", "/no/such"], "no such program"),
        (["--id", "s2", "--between", "'"], "cannot be read as a command"),
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

    monkeypatch.setattr("cloakwork.cli.audit_mqtt.Setup", enough)
    with at_work(Path(told.values["folder"]), site.parent / "value", broker):
        done = audit_bench_again(run, site, broker)
    seen = re.search(r"a reading every (\S+) s: about (\d+) min in all", done.err)
    assert seen is not None, done.err
    period = float(seen[1])
    assert period / 0.25 == pytest.approx(max(1, round(period / 0.25)), abs=0.1)  # a slot may have stayed empty
    assert settled == pytest.approx([2 * period + 0.5])
    assert int(seen[2]) == pytest.approx(2 * 2000 * period / 60, abs=1)


def test_nobody_there_to_change_the_set_up_is_said(
    run: Run, site: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(run("provision", site, "--id", "s2", "--bench", "--json").values["folder"])
    (site.parent / "value").write_text("20.0", encoding="utf-8")
    asked = []

    def nobody() -> str:
        asked.append(1)
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    where = ["--id", "s2", "--broker", f"mqtt://localhost:{broker.port}", "--reports", 300]
    with at_work(folder, site.parent / "value", broker):
        done = run("audit", "mqtt", site, *where)
    assert (done.code, asked, "--between" in done.err) == (2, [1], True), done.err
    assert len((site.parent / "audits/s2/setup-0.csv").read_text(encoding="utf-8").splitlines()) == 301


def test_an_audit_that_is_interrupted_says_how_to_go_on(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = [400, 0]

    def interrupted(*words: object) -> None:
        files = words[3]
        assert isinstance(files, tuple)
        for file, size in zip(files, sizes, strict=True):
            file.write_text("time,sensor,seq,value\n" + "0,s2,1,5\n" * size, encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr("cloakwork.cli.audit_mqtt._record", interrupted)
    where = ["--id", "s2", "--broker", "mqtt://localhost:1", "--between", "true", "--shift", 1, "--epsilon", 0.25]
    done = run("audit", "mqtt", site, *where, "--out", tmp_path / "one")
    assert done.code != 0
    assert "400 and 0 readings are recorded" in done.err
    assert "cloakwork audit readings" not in done.err
    sizes[1] = 310
    done = run("audit", "mqtt", site, *where, "--out", tmp_path / "t w o")
    said = next(line for line in done.err.splitlines() if line.startswith("cloakwork audit readings"))
    words = shlex.split(said)[1:]
    assert words[2:6] == [str(tmp_path / "t w o" / f"setup-{k}.csv") for k in (0, 1)] + ["--epsilon", "0.25"]
    assert 0 < float(words[words.index("--delta") + 1]) < 1


def test_a_larger_shift_is_advised_only_where_it_is_larger() -> None:
    claim = BenchClaim(
        sensor="s2", unit="°C", sigma=2.0, step=0.5, shift=1.0, hidden_shift=1.0, mu=0.75, epsilon=0.3, delta=0.1
    )
    assert advice(claim, 5000) == "feed it readings further apart, such as by 4 °C with --shift 4"
    assert advice(replace(claim, shift=4.0), 5000) == "give --reports 5200"
    assert advice(replace(claim, shift=5.0), math.inf).startswith("this --epsilon does not show it")


def test_how_long_it_takes_is_corrected_by_the_pace_that_is_seen() -> None:
    now, said = [0.0], list[str]()
    pace = Pace(0.1, 1850, said.append, clock=lambda: now[0])
    for step in (0.1, 0.2, 0.2):  # on time; then half of the slots are missed, which is said once
        told = pace.beside()
        for done in range(1, 1001):
            told(done)
            now[0] += step
    assert len(said) == 1
    assert said[0].startswith("50 readings came of 99 slots of 0.1 s, so this set-up takes about 6 min more.")
