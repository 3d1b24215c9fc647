"""Run a provisioned folder on MicroPython with the code of the device, except for the socket."""

import bridge  # type: ignore[import-not-found]  # the harness's

from cloakwork.sensor.board import station
from cloakwork.sensor.store import Folder

args = bridge.args
at_work = station(
    Folder("."),
    lambda: (args["numerator"], args["denominator"]),
    transport=bridge.Transport(args["host"], args["port"], args["tls"], args["ca"]),
    note=print,
)


def step() -> int:
    """One round of the loop."""
    return at_work.step()
