"""What tests of the commands share: a command run in this process, as the installed script would."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.cli import main
from tests.cli.series_files import HOUR, iso, write

SITE = """name = "corridor"
sensors = 6
[physics]
kind = "line"
places = 20
T = 0.02
[sources]
kind = "pulse"
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.02
"""


def notes(text: str) -> str:
    """What a command said on standard error, without the names of work that takes long on a busy machine."""
    return re.sub(r"(?m)^.* \.\.\.( \d+ %)?\n", "", text)


class Outcome(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def values(self) -> dict[str, Any]:
        """The JSON object on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def said(self) -> str:
        """Both streams."""
        return self.out + self.err


Run = Callable[..., Outcome]


def runner(
    program: str, start: Callable[[], object], patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Make a function that runs one command of a program, however it ends."""

    def call(*words: object) -> Outcome:
        patch.setattr(sys, "argv", [program, *map(str, words)])
        capsys.readouterr()
        code: object = 0
        try:
            start()
        except SystemExit as stop:
            code = stop.code or 0
        assert isinstance(code, int)
        out, said = capsys.readouterr()
        return Outcome(code, out, notes(said))

    return call


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command, however it ends; on a busy machine, too, it names no work that takes a while."""
    monkeypatch.setattr("cloakwork.cli.output.FIRST_S", 600.0)
    return runner("cloakwork", main, monkeypatch, capsys)


@pytest.fixture
def succeed(run: Run) -> Run:
    """Run one command, which must succeed."""

    def call(*words: object) -> Outcome:
        done = run(*words)
        assert done.code == 0, done.err
        return done

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def seconds() -> NDArray[np.int64]:
    """When each of 3,000 events was, after the start, over two days."""
    return np.random.default_rng(7).integers(0, 48 * HOUR, 3000)


@pytest.fixture
def visits(here: Path, seconds: NDArray[np.int64]) -> Path:
    rng = np.random.default_rng(8)
    people, doors = rng.integers(0, 300, 3000), rng.choice(["north", "south"], 3000)
    rows = [
        (iso(t), f"p{p}", d, f"{v:.2f}")
        for t, p, d, v in zip(seconds, people, doors, rng.exponential(20, 3000), strict=True)
    ]
    return write(here / "visits.csv", ("time", "card", "door", "paid"), *rows)
