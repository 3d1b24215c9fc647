"""Attacks on the product's claims: each compares what an attacker reaches with what is claimed.

Each test of this folder is one attack. The first line of its docstring says what it tries, the rest which claim it
tests. `make attacks` runs all of them at full size, prints the table and writes it into docs/tables/attacks.txt;
`make test` runs them at a smaller size.
"""

import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import ArrayLike


class Row(NamedTuple):
    """One line of the table; `ratio` is 0 where an attack can only succeed or fail, and failed."""

    title: str
    tried: int
    ratio: float
    seconds: float

    def __str__(self) -> str:
        outcome = "held" if self.tried else "did not run"
        shown = outcome if self.ratio == 0 else f"{self.ratio:.4f}"
        return f"| {self.title} | {self.tried:,} | {shown} | {self.seconds:.0f} |"


ROW = "row of the table of attacks"


class Attack:
    """The record of one attack: how much was tried, and the largest ratio of what is true to what is claimed."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self.tried = 0
        self.ratio = 0.0

    def size(self, quick: int, full: int) -> int:
        """How much to try: `full` under `make attacks`, else `quick`."""
        return full if self.full else quick

    def compare(self, true: ArrayLike, claimed: ArrayLike, *, tried: int | None = None) -> None:
        """Record what an attacker reached, against the claim; arrays are compared entry by entry."""
        ratios = np.asarray(true, dtype=float) / np.asarray(claimed, dtype=float)
        assert not np.isnan(ratios).any(), "a ratio is not a number"
        self.tried += ratios.size if tried is None else tried
        self.ratio = max(self.ratio, float(ratios.max(initial=0.0)))

    def expect(self, holds: bool, *, tried: int = 1) -> None:
        """Record an attack that either succeeds or does not: its ratio is 0 if the claim holds, else infinite."""
        self.compare(0.0 if holds else np.inf, 1.0, tried=tried)


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """The record of this test; the test fails if it tried nothing, or if a ratio exceeds 1."""
    record = Attack(full=request.config.getoption("--full-attacks"))
    began = time.perf_counter()
    yield record
    title = (request.function.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    case = getattr(request.node, "callspec", None)
    title += f" ({case.id})" if title and case else ""
    row = Row(title, record.tried, record.ratio, time.perf_counter() - began)
    request.node.user_properties.append((ROW, tuple(row)))  # reaches the main process with the report of the test
    assert title, "the docstring says what the attack tries"
    assert record.tried, "the attack tried nothing"
    assert record.ratio <= 1, f"the claim is broken: the truth is {record.ratio:.6g} times what is claimed"


def rows(terminalreporter: pytest.TerminalReporter) -> list[Row]:
    """The rows of all attacks that ran, in whichever process."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    done = [report for report in reports if getattr(report, "when", "") == "teardown"]
    return [Row(*value) for report in done for name, value in report.user_properties if name == ROW]


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> Generator[None, None, None]:
    yield
    if not config.getoption("--full-attacks"):
        return
    lines = table(rows(terminalreporter))
    for line in lines:
        terminalreporter.write_line(line)
    file = config.getoption("--attacks-table")
    if file and exitstatus == 0 and not terminalreporter.stats.get("skipped"):
        Path(file).write_text("\n".join([*lines, ""]), encoding="utf-8")
        terminalreporter.write_line(f"{file} has this table now.")
    elif file:
        terminalreporter.write_line(f"{file} keeps its table: an attack failed or was skipped.")


def table(rows: list[Row]) -> list[str]:
    """The lines of the table of attacks, in Markdown: those that came nearest to the claim first."""
    head = ["| attack | tried | largest ratio of true to claimed | seconds |", "|---|---:|---:|---:|"]
    return [*head, *map(str, sorted(rows, key=lambda row: (-row.ratio, row.title)))]
