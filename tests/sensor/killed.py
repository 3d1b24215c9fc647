"""Start a device loop repeatedly, kill it at random moments, and print the numbers and times that it used."""

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
    """Take readings until killed; report each as soon as it is cloaked, in one atomic write."""
    store = Folder(folder)
    device = Device(read_config(store), store)
    os.write(pipe, b"+\n")
    while True:
        if device.begin(device.clock.now()) == TAKE:
            taken = time.monotonic_ns()
            number = read_reading(device.cloak((21, 1), 0))[0]
            os.write(pipe, b"%d %d\n" % (number, taken))
        time.sleep(0.0003)


def read_lines(source: int, count: int) -> bytes:
    """Wait until the child has written `count` lines; returns all that it has written."""
    lines = b""
    while True:
        ready, _, _ = select.select([source], [], [], 60.0 if lines.count(b"\n") < count else 0.0)
        if not ready:
            return lines
        lines += os.read(source, 1 << 16)


def main(folder: str, kills: int) -> None:
    """Kill, and start again."""
    rng = random.Random(7)
    source, sink = os.pipe()
    lines = b""
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            work(folder, sink)
        lines += read_lines(source, rng.choice([0, 1, 2, 3]))  # with 0, the kill may come during the start
        time.sleep(rng.random() * 0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines += read_lines(source, 0)
    rows = [line.split() for line in lines.splitlines() if line != b"+"]
    report = {"killed": kills, "numbers": [int(row[0]) for row in rows], "times": [int(row[1]) for row in rows]}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
