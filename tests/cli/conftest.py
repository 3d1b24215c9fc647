"""What tests of the commands share: a command run in this process, as the installed script would."""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from cloakwork.cli import main


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


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command, however it ends."""

    def call(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["cloakwork", *map(str, words)])
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        assert isinstance(code, int)
        return Outcome(code, said.out, said.err)

    return call


@pytest.fixture
def succeed(run: Run) -> Run:
    """Run one command, which must succeed."""

    def call(*words: object) -> Outcome:
        done = run(*words)
        assert done.code == 0, done.err
        return done

    return call
