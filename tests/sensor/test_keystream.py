"""The device's keystream against its published vectors and the standard library; every name has its own words."""

import hmac
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.sensor import keystream
from cloakwork.sensor.keystream import offset_key, ratchet, sequence, split, stream_key, words

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "keystream.json").read_text(encoding="utf-8"))["cases"]
KEYS = st.binary(min_size=32, max_size=32)


def mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()


def label(start: bytes, case: dict[str, Any], *numbers: int) -> bytes:
    site, sensor = str(case["site"]).encode("ascii"), str(case["sensor"]).encode("ascii")
    names = len(site).to_bytes(1, "big") + site + len(sensor).to_bytes(1, "big") + sensor
    return start + b"\x00" + names + b"".join(number.to_bytes(8, "big") for number in numbers)


@pytest.mark.parametrize("case", VECTORS)
def test_the_standard_library_reproduces_the_published_vectors(case: dict[str, Any]) -> None:
    generation = case["generation"]
    epoch_keys = [bytes.fromhex(case["device_key"])]
    for _ in range(2):
        epoch_keys.append(mac(epoch_keys[-1], b"cloakwork/v1/ratchet\x00"))
    streams = [mac(key, label(b"cloakwork/v1/noise", case, generation, e)) for e, key in enumerate(epoch_keys)]
    assert case["epoch_keys"] == [key.hex() for key in epoch_keys]
    assert case["stream_keys"] == [key.hex() for key in streams]
    for reading in case["readings"]:
        counter = reading["seq"] - generation * 2**28
        stream = streams[counter // 64]
        blocks = b"".join(mac(stream, reading["seq"].to_bytes(8, "big") + bytes([b])) for b in range(8))
        assert blocks.hex().startswith("".join(reading["words"]))


@pytest.mark.parametrize("case", VECTORS)
def test_the_device_reproduces_the_published_vectors(case: dict[str, Any]) -> None:
    names = case["site"], case["sensor"], case["generation"]
    key = bytes.fromhex(case["device_key"])
    keys = [key, ratchet(key), ratchet(ratchet(key))]
    streams = [stream_key(keys[epoch], *names, epoch) for epoch in range(3)]
    assert [key.hex() for key in keys] == case["epoch_keys"]
    assert [stream.hex() for stream in streams] == case["stream_keys"]
    for reading in case["readings"]:
        generation, counter = split(reading["seq"])
        assert (generation, sequence(generation, counter)) == (case["generation"], reading["seq"])
        drawn = words(streams[counter // keystream.EPOCH], reading["seq"], len(reading["words"]))
        assert [f"{word:032x}" for word in drawn] == reading["words"]


def test_the_published_vectors_cover_the_borders_of_epochs_and_odd_counts_of_words() -> None:
    counters = {split(reading["seq"])[1] for case in VECTORS for reading in case["readings"]}
    counts = {len(reading["words"]) for case in VECTORS for reading in case["readings"]}
    assert counters >= {0, 63, 64, 127, 128, 191}
    assert counts >= {1, 2, 3, 4, 5}
    assert {case["generation"] for case in VECTORS} >= {0, keystream.LARGEST_GENERATION}


@given(key=KEYS, message=st.binary(max_size=300))
def test_hmac_agrees_with_the_cryptography_library(key: bytes, message: bytes) -> None:
    oracle = HMAC(key, hashes.SHA256())
    oracle.update(message)
    assert keystream.hmac(key, message) == oracle.finalize()


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_key_of_another_size_is_refused_and_not_shown(size: int) -> None:
    with pytest.raises(ValueError, match=r"^a key has 32 bytes$"):
        keystream.hmac(b"k" * size, b"")


def test_every_name_number_epoch_and_counter_has_words_of_its_own() -> None:
    names = [("ab", "c"), ("a", "bc"), ("abc", "d"), ("c", "ab"), ("ab", "cd"), ("a", "b"), ("b", "a"), ("aa", "a")]
    seen = set()
    for (site, sensor), generation in itertools.product(names, (0, 1, 256, 2**24)):
        key = bytes(32)
        for epoch in range(3):
            stream = stream_key(key, site, sensor, generation, epoch)
            for counter in range(64 * epoch, 64 * epoch + 3):
                seen.update(words(stream, sequence(generation, counter), 4))
            key = ratchet(key)
    assert len(seen) == len(names) * 4 * 3 * 3 * 4


@given(key=KEYS)
def test_the_three_uses_of_a_key_never_coincide(key: bytes) -> None:
    assert len({ratchet(key), offset_key(key), stream_key(key, "a", "b", 0, 0)}) == 3


@given(generation=st.integers(0, keystream.LARGEST_GENERATION), counter=st.integers(0, keystream.LARGEST_COUNTER))
def test_a_sequence_number_splits_into_its_parts_and_fits_in_53_bits(generation: int, counter: int) -> None:
    seq = sequence(generation, counter)
    assert split(seq) == (generation, counter)
    assert 0 <= seq < 2**53


@pytest.mark.parametrize(("generation", "counter"), [(-1, 0), (0, -1), (2**25, 0), (0, 2**28)])
def test_a_sequence_number_out_of_range_is_refused(generation: int, counter: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        sequence(generation, counter)
