"""Ask a time server once, and print own minus known time and its bound, in milliseconds."""

import time

import bridge  # type: ignore[import-not-found]  # the harness's

from cloakwork.sensor import sntp
from cloakwork.sensor.clock import unix_ms

sntp.os = bridge.Entropy  # type: ignore[attr-defined]  # this build has no os.urandom
known = sntp.NetworkTime(bridge.Datagrams(*bridge.args["time"]), 1 << 40, print)


def step() -> "int | None":
    """One round of the loop."""
    wait = known.serve(True)
    if not known.unix():
        return wait
    print(known.unix() - unix_ms(), known.error(), hasattr(time, "ticks_ms"))  # noqa: T201 - what the test reads
    return None
