"""The wire form: each message has exactly one valid form."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.sensor.errors import WireError
from cloakwork.sensor.wire import (
    LARGEST,
    LONGEST,
    STATES,
    ReplayCheck,
    parse_topic,
    read_reading,
    read_status,
    topic,
    write_reading,
    write_status,
)

WHOLE = rb"(0|[1-9][0-9]{0,15})"
READING = re.compile(rb'\{"v":1,"seq":%b,"time":%b,"value":(0|-?[1-9][0-9]{0,15})\}' % (WHOLE, WHOLE))
STATUS = re.compile(rb'\{"v":1,"state":"(online|spent|bench|offline)","used":%b,"allowed":%b\}' % (WHOLE, WHOLE))
numbers = st.integers(0, LARGEST)


@given(seq=numbers, time=numbers, value=st.integers(-LARGEST, LARGEST))
def test_a_reading_comes_back_as_it_was_written_and_is_json(seq: int, time: int, value: int) -> None:
    payload = write_reading(seq, time, value)
    assert read_reading(payload) == (seq, time, value)
    assert json.loads(payload) == {"v": 1, "seq": seq, "time": time, "value": value}
    assert len(payload) <= LONGEST


@given(state=st.sampled_from(STATES), used=numbers, allowed=numbers)
def test_a_status_comes_back_as_it_was_written_and_is_json(state: str, used: int, allowed: int) -> None:
    payload = write_status(state, used, allowed)
    assert read_status(payload) == (state, used, allowed)
    assert json.loads(payload) == {"v": 1, "state": state, "used": used, "allowed": allowed}
    assert len(payload) <= LONGEST


def accepted(payload: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether an independent parser accepts the message."""
    match = pattern.fullmatch(payload)
    return match is not None and all(abs(int(group)) <= LARGEST for group in match.groups() if group[-1:].isdigit())


def mutated(rng: random.Random, payload: bytes, pieces: list[bytes]) -> bytes:
    raw = bytearray(payload)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(raw) + 1)
        action = rng.randrange(6)
        if action == 0 and at < len(raw):
            raw[at] = rng.randrange(256)
        elif action == 1:
            del raw[at : at + rng.randrange(1, 9)]
        elif action == 2:
            raw[at:at] = rng.choice(pieces)
        elif action == 3 and at < len(raw):
            raw[at] ^= 1 << rng.randrange(8)
        elif action == 4:
            raw[at:at] = b"%d" % rng.randrange(100)
        else:
            raw = raw[:at]
    return bytes(raw)


@pytest.mark.parametrize("kind", ["reading", "status"])
def test_no_mutated_message_crashes_the_parser_and_no_malformed_one_is_accepted(kind: str) -> None:
    rng = random.Random(11)
    read, pattern = (read_reading, READING) if kind == "reading" else (read_status, STATUS)
    pieces = [b" ", b"0", b"-", b"+", b'"', b"1e3", b".0", b"null", b"true", b",", b"{", b"}", b'"v":1,', b"\xff"]
    pieces += [b'"value":3', b"\x00", b"\n", "\u0663".encode(), b"NaN", b"_", b'","used":', b',"time":', b',"x":1']
    taken = 0
    for turn in range(30_000):
        if turn % 200 == 0:
            a, b, c = rng.randrange(1 << 53), rng.randrange(1 << 41), rng.randrange(-(1 << 40), 1 << 40)
            whole = write_reading(a, b, c) if kind == "reading" else write_status(STATES[a % 4], b, abs(c))
        payload = mutated(rng, whole, pieces)
        try:
            read(payload)
            ours = True
        except WireError:
            ours = False
        assert ours == accepted(payload, pattern), payload
        taken += ours
    assert 60 < taken < 24_000  # some mutants are well-formed, so a parser that refuses everything fails


@pytest.mark.parametrize(
    "payload",
    [
        b'{"v":1,"seq":1,"time":2,"value":3} ',
        b'{"v": 1,"seq":1,"time":2,"value":3}',
        b'{"v":2,"seq":1,"time":2,"value":3}',
        b'{"v":1,"time":2,"seq":1,"value":3}',
        b'{"v":1,"seq":1,"time":2,"value":3,"value":4}',
        b'{"v":1,"seq":1,"time":2,"value":3,"truth":4}',
        b'{"v":1,"seq":01,"time":2,"value":3}',
        b'{"v":1,"seq":1,"time":2,"value":-0}',
        b'{"v":1,"seq":1,"time":2,"value":3.0}',
        b'{"v":1,"seq":-1,"time":2,"value":3}',
        b'{"v":1,"seq":9007199254740992,"time":2,"value":3}',
        b'{"v":1,"seq":true,"time":2,"value":3}',
        '{"v":1,"seq":\u0661,"time":2,"value":3}'.encode(),
        b"",
        b"{}",
        b"x" * 97,
    ],
)
def test_every_other_form_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        read_reading(payload)


@pytest.mark.parametrize("number", [-1, LARGEST + 1])
def test_numbers_that_do_not_fit_are_refused(number: int) -> None:
    with pytest.raises(WireError):
        write_reading(number, 0, 0)
    with pytest.raises(WireError):
        write_reading(0, number, 0)
    with pytest.raises(WireError):
        write_status("online", number, 0)
    with pytest.raises(WireError):
        write_status("tired", 0, 0)


def test_a_topic_has_plain_names_only() -> None:
    assert parse_topic(topic("flat", "s07", "reading")) == ("flat", "s07", "reading")
    for site, sensor, kind in [
        ("fl/at", "s", "reading"),
        ("", "s", "reading"),
        ("a", "s" * 65, "reading"),
        ("a", "+", "status"),
    ]:
        with pytest.raises(WireError):
            topic(site, sensor, kind)
    for text in (
        "cloakwork/v2/a/b/reading",
        "cloakwork/v1/a/b",
        "cloakwork/v1/a/b/reading/x",
        "cloakwork/v1/a/b/truth",
        "cloakwork/v1//b/status",
    ):
        with pytest.raises(WireError):
            parse_topic(text)


def test_two_values_under_one_number_raise_an_alarm() -> None:
    replays = ReplayCheck(most=3)
    assert [replays.check(1, 5), replays.check(1, 5), replays.check(1, 6)] == ["new", "again", "alarm"]
    assert [replays.check(seq, 0) for seq in (2, 3, 4)] == ["new", "new", "new"]
    assert replays.check(1, 6) == "new"  # forgotten by now
