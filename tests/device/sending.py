"""What a device sends that reads in slots without end, and a file of it."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from cloakwork.keys import Unveiling, load_keys
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading
from cloakwork.site import BitPlan, Plan


def sent(folder: Path, readings: Iterable[tuple[int, int] | None]) -> list[tuple[int, int, int]]:
    """The messages of a device that reads these fractions, as (seq, time, value), to its end."""
    config = json.loads((folder / "device.json").read_text())
    config["schedule"] |= {"allowed": 0}
    now = [0]
    device = Device(config, Folder(str(folder)), lambda: now[0])
    messages = []
    for reading in readings:
        while True:
            now[0] += config["schedule"]["period_ms"]
            start = device.slot_start(device.clock.now())
            if device.begin(start) == TAKE:
                break
        messages.append(read_reading(device.cloak(reading, start)))
    device.close()
    return messages


def unveiling_of(
    messages: Iterable[tuple[int, int, int]], sensor: str, plan: Plan | BitPlan, keys: Path
) -> tuple[Unveiling, list[int]]:
    """The true values that a key holder finds in a file of these messages."""
    path = keys.with_name("sent.csv")
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "sensor", "seq", "steps"))
        writer.writerows((time, sensor, seq, value) for seq, time, value in messages)
    unveiling = Unveiling(path, plan, load_keys(keys))
    return unveiling, [int(value) for rows in unveiling for value in rows.value]
