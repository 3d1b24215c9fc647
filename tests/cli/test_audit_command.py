"""`cloakwork audit`: a real program, and two recordings."""

import re
import shlex
import sys
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.forking import cloakwork
from tests.waiting import PATIENCE

PROGRAM = """
import random, sys
value, spread = int(sys.argv[2]), int(sys.argv[1])
rng = random.Random(value)
while True:
    print(value * 10 + rng.randrange(spread))
"""
STOPS = """
import os, random, signal
while True:
    for _ in range(100_000):
        print(random.random())
    os.kill(os.getppid(), signal.SIGINT)
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


def test_dependent_reports_end_with_4(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "stuck.py"
    file.write_text(
        "import random\nwhile True:\n    k = random.random()\n    print(k)\n    print(k)\n", encoding="utf-8"
    )
    done = run("audit", "command", f"{sys.executable} {file}", "--epsilon", 1)
    assert (done.code, "Nothing can be concluded." in done.out) == (4, True)


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


def test_an_audit_that_is_stopped_says_how_far_it_was_and_gives_no_verdict(tmp_path: Path) -> None:
    file = tmp_path / "stops.py"
    file.write_text(STOPS, encoding="utf-8")
    device = shlex.join([sys.executable, str(file)])
    done = cloakwork("audit", "command", device, "--epsilon", 1, stdout=PIPE, stderr=PIPE, text=True)
    out, err = done.communicate(timeout=PATIENCE)
    assert (done.returncode, out) == (130, "")
    assert re.search(r"stopped after [1-9][\d,]* of up to 500,000 reports", " ".join(err.split()))


def recordings(folder: Path, *, shift: int, lengths: tuple[int, int] = (4000, 3000)) -> tuple[Path, Path]:
    rng = np.random.default_rng(7)
    paths = folder / "a.csv", folder / "b.csv"
    for path, at, size, first in zip(paths, (0, shift), lengths, (0, 10_000), strict=True):
        values = np.rint(rng.normal(at, 100, size)).astype(int)
        rows = [f"{10 * k},s1,{k},{value}" for k, value in enumerate(values, start=first)]
        path.write_text("\n".join(["time,sensor,seq,steps", *rows]) + "\n", encoding="utf-8")
    return paths


def test_two_recordings_are_compared_as_far_as_the_shorter_goes(run: Run, tmp_path: Path) -> None:
    # a shift of one standard deviation has delta 0.1269 at epsilon 1
    words = ["--epsilon", 1, "--delta", 0.127, "--sensor", "s1", "--confidence", 0.999]
    honest = run("audit", "readings", *recordings(tmp_path, shift=100), *words)
    assert (honest.code, "3,000 reports with each" in honest.out) == (0, True), honest.err
    assert "the first 3,000 of each are used" in honest.err
    assert run("audit", "readings", *recordings(tmp_path, shift=200), *words).code == 3
    few = run("audit", "readings", *recordings(tmp_path, shift=0, lengths=(299, 400)), *words)
    assert (few.code, "at least 300" in few.err) == (2, True)


def test_noise_that_was_used_for_both_recordings_is_no_violation_but_bad_input(run: Run, tmp_path: Path) -> None:
    first, second = recordings(tmp_path, shift=0)
    rows = [row.split(",") for row in first.read_text(encoding="utf-8").splitlines()]
    moved = [",".join([*row[:3], str(int(row[3]) + 50)]) for row in rows[1:]]
    second.write_text("\n".join([",".join(rows[0]), *moved]), encoding="utf-8")
    reused = run("audit", "readings", first, second, "--epsilon", 1)
    assert (reused.code, "number 0 has another value in" in reused.err) == (2, True), reused.said
    same = run("audit", "readings", first, first, "--epsilon", 1)
    assert (same.code, "is given twice" in same.err) == (2, True), same.said
