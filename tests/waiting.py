"""Waiting for a state, however busy the machine is."""

import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds


def until(condition: Callable[[], object], why: str = "waited in vain") -> None:
    """Return when a condition holds; fail if it never does.

    It pauses for longer than a look takes: what it waits for needs the processor more.
    """
    deadline = time.monotonic() + PATIENCE
    began = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now < deadline, why
        time.sleep(max(0.01, min(2 * (now - began), 1.0)))
        began = time.monotonic()
