"""Feed the client damaged packets and print a digest of its events, which is the same on every interpreter."""

import hashlib

from cloakwork.sensor.mqtt import Mqtt

WHOLE = (
    b"\x20\x02\x00\x00",
    b"\x40\x02\x00\x01",
    b"\x90\x03\x00\x02\x01",
    b"\xd0\x00",
    b"\x32\x0a\x00\x03a/b\x00\x07xyz",
    b"\x31\x04\x00\x02\xc3\xa9",
)
seed = 3117


def draw(below: int) -> int:
    global seed  # noqa: PLW0603 - the same numbers on every interpreter
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return (seed >> 8) % below


digest = hashlib.sha256()
for _ in range(3000):
    raw = bytearray()
    for _ in range(1 + draw(3)):
        raw.extend(WHOLE[draw(len(WHOLE))])
    for _ in range(draw(3)):
        raw[draw(len(raw))] = draw(256)
    link = Mqtt("s07")
    link.connect()
    if draw(4):
        link.feed(WHOLE[0])
        link.publish("a", b"")
        link.subscribe("b")
    cut = draw(len(raw))
    link.feed(bytes(raw[:cut]))
    link.feed(bytes(raw[cut:]))
    link.tick(0)
    digest.update(link.take())
    for event in link.events():
        for part in event:
            digest.update(repr(part).encode() if isinstance(part, bytes) else str(part).encode())
print(digest.digest().hex())  # noqa: T201
