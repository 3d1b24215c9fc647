"""Run a provisioned folder on MicroPython with the code of the device, except for the socket."""

import bridge  # type: ignore[import-not-found]  # the harness's

from cloakwork.sensor import sntp
from cloakwork.sensor.board import station
from cloakwork.sensor.store import Folder

args = bridge.args
sntp.os = bridge.Entropy  # type: ignore[attr-defined]  # this build has no os.urandom
at_work = station(
    Folder("."),
    lambda: (args["numerator"], args["denominator"]),
    transport=bridge.Transport(args["host"], args["port"], args["tls"], args["ca"]),
    datagrams=bridge.Datagrams(*args["time"]),
    note=print,
)


def step() -> int:
    """One round of the loop."""
    return at_work.step()
