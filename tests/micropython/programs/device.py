"""A provisioned folder at work on MicroPython: everything but the socket is the device's own."""

import bridge  # type: ignore[import-not-found]  # the harness's

from cloakwork.sensor.board import station
from cloakwork.sensor.store import Folder

told = bridge.args
at_work = station(
    Folder("."),
    lambda: (told["numerator"], told["denominator"]),
    transport=bridge.Transport(told["host"], told["port"], told["tls"], told["ca"]),
    note=print,
)


def step() -> int:
    """One round of the loop."""
    return at_work.step()
