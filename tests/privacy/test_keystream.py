"""Keyed noise in bulk: bit for bit the noise of the device, for any sequence numbers in any order."""

import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cloakwork.errors import InputError
from cloakwork.privacy import Keystream, noise_table
from cloakwork.sensor import keystream, look_up
from tests.keystreams import keyed_noise, keyed_words

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "keystream.json").read_text(encoding="utf-8"))["cases"]
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
KEYS = st.binary(min_size=32, max_size=32)


def devices_words(key: bytes, site: str, sensor: str, seqs: list[int], count: int) -> list[list[int]]:
    """The words of the device, one sequence number after the other."""
    epochs = {keystream.split(seq)[1] // keystream.EPOCH for seq in seqs}
    streams = {}
    for epoch in range(max(epochs) + 1):
        if epoch in epochs:
            streams[epoch] = keystream.stream_key(key, site, sensor, keystream.split(seqs[0])[0], epoch)
        key = keystream.ratchet(key)
    return [keystream.words(streams[keystream.split(seq)[1] // keystream.EPOCH], seq, count) for seq in seqs]


def whole(words: NDArray[np.uint64]) -> list[list[int]]:
    return [[int(high) << 64 | int(low) for high, low in row] for row in words]


@pytest.mark.parametrize("case", VECTORS)
def test_the_published_vectors_hold(case: dict[str, Any]) -> None:
    key = bytes.fromhex(case["device_key"])
    seqs = [reading["seq"] for reading in case["readings"]]
    words_in_bulk = keyed_words(key, case["site"], case["sensor"], seqs, 8)
    for words, reading in zip(whole(words_in_bulk), case["readings"], strict=True):
        assert [f"{word:032x}" for word in words][: len(reading["words"])] == reading["words"]


@settings(max_examples=30, deadline=None)
@given(
    key=KEYS,
    site=NAMES,
    sensor=NAMES,
    generation=st.integers(0, keystream.LARGEST_GENERATION),
    counters=st.lists(st.integers(0, 700), min_size=1, max_size=150),
    count=st.integers(1, 9),
)
def test_any_numbers_in_any_order_have_the_devices_words(
    key: bytes, site: str, sensor: str, generation: int, counters: list[int], count: int
) -> None:
    seqs = [keystream.sequence(generation, counter) for counter in counters]
    assert whole(keyed_words(key, site, sensor, seqs, count)) == devices_words(key, site, sensor, seqs, count)


def test_counters_far_out_have_the_words_of_an_independent_ratchet() -> None:
    key, epoch = b"far" + bytes(29), 2**20 // 64 - 1
    for _ in range(epoch):
        key = hmac.digest(key, b"cloakwork/v1/ratchet\0", "sha256")
    stream = keystream.stream_key(key, "flat", "s07", 9, epoch)
    seqs = [keystream.sequence(9, 2**20 - k) for k in (1, 2, 64)]
    words_in_bulk = keyed_words(b"far" + bytes(29), "flat", "s07", seqs, 3)
    assert whole(words_in_bulk) == [keystream.words(stream, seq, 3) for seq in seqs]


def test_a_keystream_gives_the_same_words_again(rng: np.random.Generator) -> None:
    remembering = Keystream(b"x" * 32, "flat", "s07", 3)
    for most in (100, 70_000, 500, 300_000, 20_000, 310_000):
        seqs = (3 << 28) + rng.integers(0, most, size=50)
        fresh = Keystream(b"x" * 32, "flat", "s07", 3)
        assert np.array_equal(remembering.words(seqs, 2), fresh.words(seqs, 2))


def test_threads_may_share_a_keystream(rng: np.random.Generator) -> None:
    stream = Keystream(b"x" * 32, "flat", "s07", 0)
    asked = [np.array([most, most // 3]) for most in rng.integers(0, 300_000, size=40)]
    with ThreadPoolExecutor(4) as pool:
        apart = list(pool.map(lambda seqs: stream.words(seqs, 2), asked))
    together = stream.words(np.concatenate(asked), 2)
    assert np.array_equal(np.concatenate(apart), together)
    assert np.array_equal(together, keyed_words(b"x" * 32, "flat", "s07", np.concatenate(asked), 2))


@pytest.mark.parametrize("ratio", [3.7, 129.0, 3017.0, 200_000.0])
def test_keyed_noise_is_what_the_device_draws(ratio: float) -> None:
    table = noise_table(ratio)
    counters = [*range(0, 200, 3), 4095, 4096]
    noise = keyed_noise(table, b"n" * 32, "flat", "s07", counters)
    drawn = devices_words(b"n" * 32, "flat", "s07", counters, len(table.levels))
    single = [
        sum(level.factor * look_up(level.cuts, word) for level, word in zip(table.levels, words, strict=True))
        for words in drawn
    ]
    assert noise.tolist() == single


def test_keyed_noise_has_the_planned_scale() -> None:
    table = noise_table(100.0)
    noise = keyed_noise(table, b"n" * 32, "flat", "s07", np.arange(50_000))
    far = 5 / np.sqrt(2 * 50_000)  # standard errors of a standard deviation
    deviation = float(np.std(noise))
    assert abs(deviation / 100 - 1) < far
    assert abs(deviation / 80 - 1) > far
    assert abs(deviation / 120 - 1) > far
    assert abs(float(np.mean(noise))) < 5 * 100 / np.sqrt(50_000)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "k" * 32, bytearray(32)])
def test_a_key_of_another_size_or_type_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(InputError, match="32 bytes") as caught:
        keyed_words(key, "flat", "s07", [0], 1)
    assert "kk" not in str(caught.value)
    assert not caught.value.values


def test_numbers_of_two_generations_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        keyed_words(bytes(32), "flat", "s07", [5, 1 << 28], 1)
    assert refused.value.values == {"generation": 1, "key_generation": 0}
    with pytest.raises(InputError) as refused:
        Keystream(bytes(32), "flat", "s07", 1).words([5], 1)
    assert refused.value.values == {"generation": 0, "key_generation": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seqs", wrong) for wrong in ([-1], [2**53], np.array([2**64 - 1], dtype=np.uint64), [0.0], [[1]], 5, ["1"])),
        *(("count", wrong) for wrong in (0, 513, 1.0, True)),
        *(("generation", wrong) for wrong in (-1, 2**25)),
        *(("site", wrong) for wrong in ("", "Büro", "x" * 65)),
    ],
)
def test_what_no_device_can_have_is_refused(name: str, value: Any) -> None:
    wrong: dict[str, Any] = {"site": "flat", "generation": 0, "seqs": [0], "count": 1} | {name: value}
    with pytest.raises(InputError, match=name):
        Keystream(bytes(32), wrong["site"], "s07", wrong["generation"]).words(wrong["seqs"], wrong["count"])


def test_a_keystream_does_not_show_its_key() -> None:
    stream = Keystream(b"secret key of thirty-two bytes..", "flat", "s07", 0)
    assert "secret" not in repr(stream)
