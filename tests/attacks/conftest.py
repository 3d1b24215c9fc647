"""Attacks on the product's claims: each compares what an attacker reaches with what is claimed.

Each test of this folder is one attack. The first line of its docstring says what it tries, the rest which claim it
tests. `make attacks` runs all of them at full size and prints the table; `make test` runs them at a smaller size.
"""

import time
from collections.abc import Generator, Iterator

import numpy as np
import pytest
from numpy.typing import ArrayLike

RESULT = "attack"


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
    row = (title, record.tried, record.ratio, time.perf_counter() - began)
    request.node.user_properties.append((RESULT, row))
    assert title, "the docstring says what the attack tries"
    assert record.tried, "the attack tried nothing"
    assert record.ratio <= 1, f"the claim is broken: the truth is {record.ratio:.6g} times what is claimed"


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    if not terminalreporter.config.getoption("--full-attacks"):
        return
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    kept = [name_and_row for report in reports for name_and_row in getattr(report, "user_properties", ())]
    for line in table([row for name, row in kept if name == RESULT]):
        terminalreporter.write_line(line)


def table(rows: list[tuple[str, int, float, float]]) -> list[str]:
    """The lines of the table of attacks, in Markdown."""
    lines = ["| attack | tried | largest ratio of true to claimed | seconds |", "|---|---:|---:|---:|"]
    for title, tried, ratio, seconds in rows:
        lines.append(f"| {title} | {tried:,} | {'none' if ratio == 0 else f'{ratio:.4f}'} | {seconds:.1f} |")
    return lines
