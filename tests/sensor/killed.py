"""Start a device loop again and again, kill it at random moments, and print what it used: numbers and times."""

import json
import os
import random
import select
import signal
import sys
import time

from cloakwork.sensor.board import read_config
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading


def work(folder: str, pipe: int) -> None:
    """Take readings for ever; report each as soon as it is cloaked, in one write that cannot be torn."""
    store = Folder(folder)
    device = Device(read_config(store), store)
    os.write(pipe, b"+\n")
    while True:
        if device.begin(device.clock.now()) == TAKE:
            taken = time.monotonic_ns()
            number = read_reading(device.cloak((21, 1), 0))[0]
            os.write(pipe, b"%d %d\n" % (number, taken))
        time.sleep(0.0003)


def heard(source: int, seconds: float) -> bytes:
    """What the child has written, once there is something or the time is over."""
    ready, _, _ = select.select([source], [], [], seconds)
    return os.read(source, 1 << 16) if ready else b""


def main(folder: str, kills: int) -> None:
    """Kill, and start again."""
    rng = random.Random(7)
    source, sink = os.pipe()
    lines = b""
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            work(folder, sink)
        if rng.random() < 0.8:  # else it may be killed while it starts
            lines += heard(source, 5.0)
        time.sleep(rng.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines += heard(source, 0.0)
    rows = [line.split() for line in lines.splitlines() if line != b"+"]
    report = {"killed": kills, "numbers": [int(row[0]) for row in rows], "times": [int(row[1]) for row in rows]}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
