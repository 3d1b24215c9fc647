"""All devices of a site, sending at once: a separate program, so that it takes no time from the measured one.

python -m benchmarks.load PORT FRAMES.npz SITE PERIOD_MS SECONDS: publishes frame after frame with QoS 1, each at a
multiple of the period, and prints how many frames were sent and how many readings the broker has acknowledged.
"""

import json
import socket
import struct
import sys
import threading
import time

import numpy as np

from cloakwork.sensor.wire import topic, write_reading

PATIENCE = 30.0
SOON_MS = 600  # until the first frame, at least
CONNECTIONS = 4
PUBACK = 4  # bytes


class Devices:
    """A few connections that share the sensors. They write MQTT packets directly, so sending is cheap."""

    def __init__(self, port: int, topics: list[str]) -> None:
        self._topics = [topic.encode() for topic in topics]
        self._links = [_connected(port, number) for number in range(CONNECTIONS)]
        self._received_bytes = [0] * CONNECTIONS
        for number in range(CONNECTIONS):
            threading.Thread(target=self._listen, args=(number,), daemon=True).start()

    @property
    def acknowledged(self) -> int:
        return sum(self._received_bytes) // PUBACK

    def send(self, seq: int, when: int, steps: list[int]) -> None:
        parts = [bytearray() for _ in self._links]
        for number, (name, value) in enumerate(zip(self._topics, steps, strict=True)):
            parts[number % CONNECTIONS] += _publish(name, number + 1, write_reading(seq, when, value))
        for link, part in zip(self._links, parts, strict=True):
            link.sendall(part)

    def finish(self, expected: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.acknowledged < expected and time.monotonic() < end:
            time.sleep(0.05)
        for link in self._links:
            link.shutdown(socket.SHUT_RDWR)

    def _listen(self, number: int) -> None:
        while received := self._links[number].recv(65536):  # nothing but acknowledgements
            self._received_bytes[number] += len(received)


def _connected(port: int, number: int) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = f"load-{number}".encode()
    link.sendall(_packet(0x10, b"\0\4MQTT\4\2\0\0" + struct.pack(">H", len(name)) + name))
    answer = link.recv(4)
    assert answer == b"\x20\x02\x00\x00", "the broker refuses"
    return link


def _publish(topic: bytes, number: int, payload: bytes) -> bytes:
    """A message with QoS 1."""
    return _packet(0x32, struct.pack(">H", len(topic)) + topic + struct.pack(">H", number) + payload)


def _packet(kind: int, body: bytes) -> bytes:
    size = bytearray()
    left = len(body)
    while True:
        left, low = divmod(left, 128)
        size.append(low | (0x80 if left else 0))
        if not left:
            return bytes([kind]) + bytes(size) + body


def main() -> None:
    port, file, site, period, seconds = sys.argv[1:]
    given = np.load(file)
    steps, names = given["steps"].tolist(), given["names"].tolist()
    width = int(period)
    devices = Devices(int(port), [topic(site, name, "reading") for name in names])
    begin = (int(1000 * time.time()) // width + 1 + -(-SOON_MS // width)) * width
    frames = int(1000 * float(seconds)) // width
    late = 0.0
    for number in range(frames):
        when = begin + number * width
        pause = when / 1000 - time.time()
        if pause > 0:
            time.sleep(pause)
        late = max(late, -pause)
        devices.send(number, when, steps[number % len(steps)])
    devices.finish(frames * len(names))
    report = {"begin": begin, "frames": frames, "acknowledged": devices.acknowledged, "late_s": late}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
