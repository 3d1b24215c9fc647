"""Waiting for a state, however busy the machine is."""

import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds


def until(condition: Callable[[], object], why: str = "waited in vain") -> None:
    """Return when a condition holds; fail if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, why
        time.sleep(0.01)
