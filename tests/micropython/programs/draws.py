"""Keyed draws of a device folder, on any interpreter: their digest, their counted steps and the memory of one."""

import gc
import hashlib
import json
import sys

from cloakwork.sensor import noise as device_noise
from cloakwork.sensor.keystream import EPOCH, hmac, ratchet, sequence, stream_key, words
from cloakwork.sensor.noise import FileTable, Noise
from cloakwork.sensor.state import unpack
from cloakwork.sensor.store import Folder

MICRO = sys.implementation.name == "micropython"
COUNT = 1500
CHECKED = 300


class Counting(FileTable):
    """Counts what a look-up reads."""

    reads = 0
    octets = 0

    def __getitem__(self, part: slice) -> bytearray:
        """Count, then read like the original."""
        Counting.reads += 1
        Counting.octets += part.stop - part.start
        return FileTable.__getitem__(self, part)


def main(folder: str) -> None:
    """Draw, and print a report."""
    store = Folder(folder)
    config = json.loads(store.read("device.json") or b"")
    state = unpack(store.read("state.0"))
    if state is None or state.key is None:
        raise SystemExit(1)
    table = store.table("noise.tab")
    plain = Noise(table, config["noise"]["levels"], config["noise"]["digest"])
    device_noise.FileTable = Counting  # type: ignore[misc]
    counted = Noise(table, config["noise"]["levels"], config["noise"]["digest"])
    site, sensor, generation = config["site"], config["sensor"], config["generation"]
    key = state.key
    digest = hashlib.sha256()
    steps = set()
    stream = b""
    for counter in range(COUNT):
        if counter % EPOCH == 0:
            key = key if counter == 0 else ratchet(key)
            stream = stream_key(key, site, sensor, generation, counter // EPOCH)
        drawn = words(stream, sequence(generation, counter), plain.words)
        value = plain.draw(drawn)
        digest.update(b"%d\n" % value)
        if counter < CHECKED:
            Counting.reads = Counting.octets = 0
            assert counted.draw(drawn) == value
            steps.add((Counting.reads, Counting.octets))
    report = {"digest": digest.digest().hex(), "steps": sorted(steps), "memory": memory(plain, stream, generation)}
    table.close()
    print(json.dumps(report))  # noqa: T201 - what the test reads


def memory(noise: Noise, stream: bytes, generation: int) -> int:
    """Bytes that one draw takes from the heap before any collection; 0 where the interpreter cannot tell."""
    if not MICRO:
        return 0
    most = 0
    gc.disable()
    for counter in range(50):
        gc.collect()
        before = gc.mem_alloc()  # type: ignore[attr-defined]
        noise.draw(words(stream, sequence(generation, counter), noise.words))
        most = max(most, gc.mem_alloc() - before)  # type: ignore[attr-defined]
    gc.enable()
    return most


if __name__ == "__main__":
    assert len(hmac(bytes(32), b"")) == 32
    main("." if MICRO else sys.argv[1])
