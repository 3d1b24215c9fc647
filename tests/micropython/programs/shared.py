"""What a device with several sensors sends for its first frames, on any interpreter: the values, in steps."""

import json
import sys

from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading

MICRO = sys.implementation.name == "micropython"
COUNT = 70


class Memory(Folder):
    """The folder of a device, whose writes are not kept."""

    def write(self, name: str, data: bytes) -> None:
        """Keep nothing."""


def main(folder: str) -> None:
    """Take frames, and print what is sent."""
    store = Memory(folder)
    config = json.loads(store.read("device.json") or b"")
    config["schedule"]["allowed"] = 0
    period = config["schedule"]["period_ms"]
    device = Device(config, store, lambda: 0)
    values = []
    for slot in range(1, COUNT + 1):
        assert device.begin(slot * period) == TAKE
        sent = device.cloak([(20, 1), None, (85, 4), (41, 2)], slot * period)
        values.append([read_reading(message)[2] for message in sent.split(b" ")])
    device.close()
    print(json.dumps(values))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main("." if MICRO else sys.argv[1])
