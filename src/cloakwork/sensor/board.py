"""Run a provisioned folder as a device: on a board, or wherever Python runs."""

import json
import sys
import time

from cloakwork.sensor.clock import board_ticks, set_calendar, unix_ms
from cloakwork.sensor.device import Device
from cloakwork.sensor.errors import SensorError, StateError
from cloakwork.sensor.outbox import Outbox
from cloakwork.sensor.sntp import NetworkTime
from cloakwork.sensor.station import Station, silent
from cloakwork.sensor.store import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cloakwork.sensor.measuring import Measured
    from cloakwork.sensor.session import Transport
    from cloakwork.sensor.sntp import DatagramTransport

KEPT = 64  # messages that a board keeps while it cannot reach the broker
ANY_MS = 1 << 40  # for a clock that only serves as a calendar
UNSTATED = (
    "the plan of this device does not account for the step in which its hardware reads, so its noise is too small. "
    "Set resolution under [privacy] in the site file to that step, then plan and provision again."
)
COARSE = (
    "the denominator that read() returns stands for coarser steps than the resolution in the site file, so the noise "
    "of this device is too small. Return every digit of the hardware, or set resolution to the coarser step, then plan "
    "and provision again."
)


def station(
    store: "Folder",
    read: "Callable[[], Measured]",
    *,
    transport: "Transport | None" = None,
    datagrams: "DatagramTransport | None" = None,
    simulated: bool = False,
    unix: "Callable[[], int] | None" = None,
    note: "Callable[[str], None] | None" = None,
    kept: int = KEPT,
    extra: "tuple[tuple[str, bytes], ...]" = (),
    login: "tuple[str | None, str | None] | None" = None,
) -> Station:
    """Open the device of a folder.

    `read` measures. `transport` reaches the broker and `datagrams` the time server, by default through sockets. If the
    readings are `simulated`, the clock of the computer is good enough; `unix` replaces it in a simulation, which has a
    time of its own in Unix milliseconds.
    """
    device = Device(read_config(store), store, unix or board_ticks)
    return Station(
        device,
        Outbox(store, kept),
        transport or _socket(device, store),
        read,
        unix=unix or unix_ms,
        network_time=None if simulated else _network_time(device, datagrams, note or silent),
        note=note,
        extra=extra,
        login=login,
    )


def run(folder: str, read: "Callable[[], Measured]") -> None:
    """Measure, cloak and send until interrupted."""
    store = Folder(folder)
    try:
        check_resolution(read_config(store), read)
        device_loop = station(store, read, note=say)
        try:
            while True:
                _sleep(device_loop.step())
        finally:
            device_loop.stop()
    except KeyboardInterrupt:
        say("stopped")
    except SensorError as problem:
        say(str(problem))
        sys.exit(2)


def check_resolution(config: "dict[str, Any]", read: "Callable[[], Measured]") -> None:
    """Refuse to measure with hardware whose steps the plan does not cover, before the first reading.

    This looks at the denominator of one reading, which is a constant of the program, and never at the reading: while
    a device runs, no reading is refused for its value.
    """
    if config["resolution"] is None:
        raise StateError(UNSTATED)
    try:
        reading: Any = read()
        denominator = reading[1]
    except Exception:  # a device replaces a reading that fails
        return
    numerator_of_step, denominator_of_step = config["resolution"]
    if type(denominator) is int and 0 < denominator * numerator_of_step < denominator_of_step:
        raise StateError(COARSE)


def read_config(store: "Folder") -> "dict[str, Any]":
    """Read the configuration that `provision` wrote for this device."""
    config = json.loads(store.read("device.json") or b"{}")
    if config.get("v") != 1:
        raise StateError("there is no device.json of version 1 here: use a folder that provision wrote.")
    return dict(config)


def _socket(device: Device, store: "Folder") -> "Transport":
    from cloakwork.sensor.link import Link  # noqa: PLC0415 - not every board that brings its own transport has sockets

    broker = device.config["broker"]
    authority = None if broker["ca"] is None else store.path + "/" + broker["ca"]
    return Link(broker["host"], broker["port"], broker["tls"], authority)


def _network_time(
    device: Device, datagrams: "DatagramTransport | None", note: "Callable[[str], None]"
) -> "NetworkTime | None":
    """The time server, if sensors must measure together; elsewhere time stamps come from the clock, if that is set."""
    config = device.config
    together = config["together"] and config["kind"] == "reading"
    if not together and sys.implementation.name == "cpython":
        return None
    if datagrams is None:
        from cloakwork.sensor.link import Datagrams  # noqa: PLC0415 - as above

        datagrams = Datagrams(config["time"]["host"], config["time"]["port"])
    allowed = config["schedule"]["clock_ms"] if together else ANY_MS
    return NetworkTime(datagrams, allowed, note, synchronised=set_calendar)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()


def _sleep(milliseconds: int) -> None:
    if hasattr(time, "sleep_ms"):
        time.sleep_ms(milliseconds)
    else:
        time.sleep(milliseconds / 1000)
