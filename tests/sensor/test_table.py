"""The device's look-up: exact, in a fixed number of steps, and the same as the host's in bulk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.privacy import noise_from_words, noise_table, simulated_words
from cloakwork.sensor import TableError, look_up


@pytest.mark.parametrize("ratio", [0.4, 1.0, 3.7, 129.0, 300.0, 3017.0, 9000.0, 2.0**24])
def test_device_and_host_draw_the_same_from_the_same_words(ratio: float, rng: np.random.Generator) -> None:
    table = noise_table(ratio)
    words = simulated_words(rng)(500 * len(table.levels)).reshape(500, -1, 2)
    words[0], words[1], words[2:4] = 0, 2**63 - 1, 2**64 - 1
    words[3:5, :, 0], words[4, :, 1] = 2**63, 0
    single = [
        sum(
            level.factor * look_up(level.cuts, (int(high) << 64) | int(low))
            for level, (high, low) in zip(table.levels, draw, strict=True)
        )
        for draw in words
    ]
    assert noise_from_words(table, words).tolist() == single


@given(cuts=st.lists(st.integers(0, 2**127 - 1), min_size=1, max_size=40), word=st.integers(0, 2**128 - 1))
def test_magnitude_is_the_number_of_cut_points_not_above_the_word(cuts: list[int], word: int) -> None:
    table = b"".join(cut.to_bytes(16, "big") for cut in sorted(cuts))
    expected = sum(cut <= word % 2**127 for cut in cuts)
    assert abs(look_up(table, word)) == expected
    assert look_up(table, word) <= 0 or word < 2**127


class Counting(bytes):
    """A table that counts how often it is read."""

    reads = 0

    def __getitem__(self, key: object) -> bytes:  # type: ignore[override]
        Counting.reads += 1
        return super().__getitem__(key)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 100])
def test_every_word_takes_the_same_number_of_steps(size: int) -> None:
    cuts = [(k + 1) * 2**127 // (size + 2) for k in range(size)]
    table = Counting(b"".join(cut.to_bytes(16, "big") for cut in cuts))
    counts = set()
    for word in [0, 2**127 - 1, 2**127, 2**128 - 1, *cuts]:
        Counting.reads = 0
        look_up(table, word)
        counts.add(Counting.reads)
    assert len(counts) == 1


@pytest.mark.parametrize(("table", "word"), [(b"", 0), (b"x" * 15, 0), (bytes(16), -1), (bytes(16), 2**128)])
def test_a_broken_table_or_word_is_refused(table: bytes, word: int) -> None:
    with pytest.raises(TableError):
        look_up(table, word)
