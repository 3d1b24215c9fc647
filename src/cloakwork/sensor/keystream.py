"""Noise that a key holder can remove: words of 128 bits from HMAC-SHA256.

A sequence number is `generation << COUNTER_BITS | counter`. Each time a device is provisioned it gets a new generation,
with its own key; the counter counts its readings.

    device key      = the key of epoch 0: random, made when the device is provisioned
    next epoch's    = HMAC(this epoch's key, "cloakwork/v1/ratchet" 0)                   after EPOCH counters
    stream key      = HMAC(epoch's key, "cloakwork/v1/noise" 0 site sensor generation epoch)
    block b         = HMAC(stream key, sequence number, b)
    first offset    = the words of sequence number 0 under HMAC(device key, "cloakwork/v1/offset" 0)

Names are one byte of length and ASCII; numbers are big-endian with 8 bytes, and b is one byte. The words of a reading
are the first bytes of its blocks 0, 1, ..., concatenated: those of its noise, and then those that renew an offset.
"""

import hashlib

COUNTER_BITS = 28
LARGEST_COUNTER = (1 << COUNTER_BITS) - 1
LARGEST_GENERATION = (1 << 25) - 1
EPOCH = 64
KEY_BYTES = 32
WORD_BYTES = 16
_INNER = int.from_bytes(64 * b"\x36", "big")
_OUTER = int.from_bytes(64 * b"\x5c", "big")


def hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 (RFC 2104) with a key of 32 bytes."""
    if len(key) != KEY_BYTES:
        raise ValueError("a key has 32 bytes")
    padded = int.from_bytes(key, "big") << 256
    inner = hashlib.sha256((padded ^ _INNER).to_bytes(64, "big"))
    inner.update(message)
    outer = hashlib.sha256((padded ^ _OUTER).to_bytes(64, "big"))
    outer.update(inner.digest())
    return outer.digest()


def ratchet(key: bytes) -> bytes:
    """The key of the next epoch; there is no way back."""
    return hmac(key, b"cloakwork/v1/ratchet\0")


def stream_key(key: bytes, site: str, sensor: str, generation: int, epoch: int) -> bytes:
    """The key of the noise of one epoch."""
    return hmac(key, b"cloakwork/v1/noise\0" + _name(site) + _name(sensor) + _number(generation) + _number(epoch))


def offset_key(key: bytes) -> bytes:
    """The key of the first offset of a device, from its first key."""
    return hmac(key, b"cloakwork/v1/offset\0")


def words(stream: bytes, seq: int, count: int) -> list[int]:
    """The `count` words of 128 bits that belong to one sequence number."""
    result: list[int] = []
    for b in range((count + 1) // 2):
        block = hmac(stream, _number(seq) + bytes([b]))
        result.append(int.from_bytes(block[:WORD_BYTES], "big"))
        result.append(int.from_bytes(block[WORD_BYTES:], "big"))
    return result[:count]


def sequence(generation: int, counter: int) -> int:
    """The sequence number on the wire."""
    if not (0 <= generation <= LARGEST_GENERATION and 0 <= counter <= LARGEST_COUNTER):
        raise ValueError("a generation or a counter is out of range")
    return generation << COUNTER_BITS | counter


def split(seq: int) -> tuple[int, int]:
    """Generation and counter of a sequence number."""
    return seq >> COUNTER_BITS, seq & LARGEST_COUNTER


def _name(text: str) -> bytes:
    raw = text.encode()
    return bytes([len(raw)]) + raw


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
