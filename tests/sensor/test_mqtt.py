"""The MQTT client alone: split packets, bad bytes, the clock. test_mqtt_broker.py tests it against a real broker."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.sensor.errors import WireError
from cloakwork.sensor.mqtt import LARGEST, Mqtt

ACCEPTED = b"\x20\x02\x00\x00"
KINDS = {"connected": 1, "refused": 2, "subscribed": 3, "published": 2, "message": 4, "dead": 2}


def connected() -> Mqtt:
    link = Mqtt("s07")
    link.connect()
    link.feed(ACCEPTED)
    assert link.events() == [("connected",)]
    link.take()
    return link


def message(topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bytes:
    """What a broker sends: with QoS 1, a client's message has the same form."""
    link = connected()
    link.publish(topic, payload, retain=retain)
    if qos:
        return link.take()
    named = len(topic.encode()).to_bytes(2, "big") + topic.encode()
    length = len(named) + len(payload)
    sizes = [length] if length < 128 else [length % 128 + 128, length // 128]
    return bytes([0x30 | retain, *sizes]) + named + payload


def test_connect_follows_the_standard() -> None:
    link = Mqtt("s07", user="u", password="pw", will=("a/b", b"\x00"), keep_alive=258)  # noqa: S106
    link.connect()
    assert link.take() == (
        b"\x10\x1e\x00\x04MQTT\x04\xee\x01\x02" + b"\x00\x03s07" + b"\x00\x03a/b\x00\x01\x00" + b"\x00\x01u\x00\x02pw"
    )
    assert link.take() == b""
    bare = Mqtt("s07")
    bare.connect()
    assert bare.take() == b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03s07"


@given(
    topic=st.text(st.characters(exclude_characters="+#\0", exclude_categories=["Cs"]), min_size=1, max_size=200),
    payload=st.one_of(st.binary(max_size=200), st.integers(0, 200).map(bytes)),
    qos=st.integers(0, 1),
    retain=st.booleans(),
    cuts=st.lists(st.integers(0, 400)),
)
def test_a_published_message_arrives_however_its_bytes_are_split(
    topic: str, payload: bytes, qos: int, retain: bool, cuts: list[int]
) -> None:
    raw = message(topic, payload, qos=qos, retain=retain) * 2
    hearer = connected()
    at = 0
    for cut in [*sorted(cuts), len(raw)]:
        hearer.feed(raw[at:cut])
        at = max(at, cut)
    assert hearer.events() == [("message", topic, payload, retain)] * 2
    assert hearer.take() == b"\x40\x02\x00\x01" * 2 * qos
    assert hearer.connected


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x40\x03\x00\x01\x00",  # too long
        b"\x41\x02\x00\x01",  # reserved flags
        b"\x90\x03\x00\x01\x02",  # granted a higher QoS than requested
        b"\xb0\x02\x00\x01",  # an answer without a request
        b"\x10\x00",  # a packet that only clients send
        b"\xf0\x00",
        ACCEPTED,  # twice
        b"\x30\x80\x80\x80\x80\x01",  # a length of five bytes
        b"\x34\x05\x00\x01a\x00\x01",  # QoS 2
        b"\x36\x05\x00\x01a\x00\x01",  # QoS 3
        b"\x38\x03\x00\x01a",  # a duplicate of QoS 0
        b"\x30\x00",
        b"\x30\x01\x00",
        b"\x30\x02\x00\x00",  # no topic
        b"\x30\x03\x00\x02a",  # a topic beyond the end
        b"\x32\x04\x00\x01a\x00",  # a truncated id
        b"\x32\x05\x00\x01a\x00\x00",  # no id
        b"\x30\x03\x00\x01#",
        b"\x30\x03\x00\x01\x00",
        b"\x30\x03\x00\x01\xff",
    ],
)
def test_malformed_bytes_end_the_link(raw: bytes) -> None:
    link = connected()
    link.feed(raw + ACCEPTED)
    [(kind, reason)] = link.events()
    assert kind == "dead"
    assert reason
    link.feed(b"\xd0\x00")
    link.tick(10**9)
    assert (link.events(), link.take(), link.connected) == ([], b"", False)


def test_a_packet_that_is_too_large_is_refused_before_it_has_arrived() -> None:
    link = connected()
    link.feed(bytes([0x30, LARGEST % 128 + 1 + 128, LARGEST // 128]))
    assert link.events() == [("dead", f"a packet of more than {LARGEST} bytes")]
    link = connected()
    link.feed(bytes([0x30, LARGEST % 128 + 128, LARGEST // 128]) + b"\x00\x01a" + bytes(LARGEST - 3))
    assert link.events() == [("message", "a", bytes(LARGEST - 3), False)]


def test_no_bytes_crash_the_client() -> None:
    rng = random.Random(3117)
    whole = [ACCEPTED, b"\x40\x02\x00\x01", b"\x90\x03\x00\x02\x01", b"\xd0\x00", message("a/b", b"xyz")]
    whole += [message("cloakwork/v1/flat/s07/reading", bytes(200)), message("é", b"", qos=0, retain=True)]
    counts = dict.fromkeys(KINDS, 0)
    for _ in range(10_000):
        raw = bytearray(b"".join(rng.choices(whole, k=rng.randrange(1, 4)))) if rng.random() < 0.8 else bytearray()
        raw += rng.randbytes(rng.randrange(8))
        for _ in range(rng.randrange(3)):
            if raw:
                raw[rng.randrange(len(raw))] = rng.randrange(256)
        link = Mqtt("s07")
        link.connect()
        if rng.random() < 0.8:
            link.feed(ACCEPTED)
            link.publish("a", b"")
            link.subscribe("b")
        cut = rng.randrange(len(raw) + 1)
        link.feed(bytes(raw[:cut]))
        link.feed(bytes(raw[cut:]))
        link.tick(0)
        for event in link.events():
            assert len(event) == KINDS[event[0]]
            counts[event[0]] += 1
    assert min(counts.values()) > 20, counts


@pytest.mark.parametrize("start", [0, 10**13])
def test_an_idle_link_is_pinged_and_one_that_does_not_answer_is_dead(start: int) -> None:
    def at(ms: int) -> int:
        return start + ms

    link = connected()
    link.tick(at(0))
    link.tick(at(29_999))
    assert link.take() == b""
    link.tick(at(30_000))
    assert link.take() == b"\xc0\x00"
    link.tick(at(31_000))
    assert link.take() == b""
    link.feed(b"\xd0\x00")
    link.tick(at(32_000))
    link.feed(message("a", b"", qos=0))  # a message shows that the broker sends, not that it receives
    link.tick(at(62_000))
    assert link.take() == b"\xc0\x00"
    link.tick(at(121_999))
    assert (link.events()[1:], link.connected) == ([], True)
    link.tick(at(122_000))
    assert (link.events(), link.connected) == ([("dead", "no answer within keep_alive")], False)


@pytest.mark.parametrize(
    "options",
    [
        {"client_id": ""},
        {"client_id": "a\0"},
        {"client_id": "a" * 65536},
        {"password": "x"},
        {"will": ("a/#", b"")},
        {"will": ("a", bytes(65536))},
    ],
)
def test_an_impossible_client_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(WireError):
        Mqtt(**({"client_id": "s07"} | options))  # type: ignore[arg-type]
