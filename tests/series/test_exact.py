"""Convolution of whole numbers against Python's integers, and a polynomial identity where those are too slow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork._checks import IntArray
from cloakwork.errors import InputError
from cloakwork.series import convolution
from cloakwork.series.convolution import convolve_whole

PRIME = (1 << 31) - 1


def by_integers(weights: list[int], values: list[int]) -> list[int]:
    out = [0] * (len(weights) + len(values) - 1)
    for i, weight in enumerate(weights):
        for j, value in enumerate(values):
            out[i + j] += weight * value
    return out


def at(point: int, values: IntArray) -> int:
    """The polynomial with these coefficients at a point, modulo a prime."""
    powers = np.ones(len(values), dtype=np.int64)
    known = 1
    while known < len(values):
        more = min(known, len(values) - known)
        powers[known : known + more] = powers[:more] * pow(point, known, PRIME) % PRIME
        known += more
    return int(((values % PRIME) * powers % PRIME).sum() % PRIME)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), bits=st.integers(0, 60), share=st.floats(0, 1))
def test_small_ones_are_those_of_integers_up_to_the_limit_of_63_bits(
    data: st.DataObject, bits: int, share: float
) -> None:
    first = int(bits * share)
    length, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    least = min(length, width)
    most_value, most_weight = max((1 << (bits - first)) // least, 1), 1 << first
    values = data.draw(st.lists(st.integers(-most_value, most_value), min_size=length, max_size=length))
    weights = data.draw(st.lists(st.integers(-most_weight, most_weight), min_size=width, max_size=width))
    found = convolve_whole(np.array(weights, dtype=np.int64), np.array([values], dtype=np.int64))[0]
    assert found.tolist() == by_integers(weights, values)


@pytest.mark.parametrize(
    ("log_n", "weight_bits", "value_bits", "pattern"),
    [
        (18, 20, 22, "constant"),
        (18, 20, 22, "alternating"),
        (18, 20, 22, "halves"),
        (17, 10, 33, "random"),
        (19, 15, 25, "random"),
        (16, 44, 0, "constant"),
        (16, 0, 44, "constant"),
    ],
)
def test_long_ones_satisfy_the_polynomial_identity(log_n: int, weight_bits: int, value_bits: int, pattern: str) -> None:
    """W(r) X(r) = Y(r) at random r, modulo a prime: an error in any output is missed once in 10^4 or less."""
    n, rng = 1 << log_n, np.random.default_rng(log_n)
    shapes = {
        "constant": np.ones(n),
        "alternating": (-1.0) ** np.arange(n),
        "halves": np.where(np.arange(n) < n // 2, 1, -1),
        "random": rng.choice([-1.0, 1.0], size=n),
    }
    shape = shapes[pattern].astype(np.int64)
    weights, values = shape * ((1 << weight_bits) - (weight_bits > 0)), shape * ((1 << value_bits) - (value_bits > 0))
    found = convolve_whole(weights, values[None])[0]
    assert len(found) == 2 * n - 1
    for point in rng.integers(2, PRIME - 1, size=3):
        assert at(int(point), weights) * at(int(point), values) % PRIME == at(int(point), found)
    wrong = found.copy()
    wrong[n] += 1
    assert at(12345, weights) * at(12345, values) % PRIME != at(12345, wrong)


def test_a_series_that_is_too_long_is_refused_rather_than_rounded_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "_LARGEST_ERROR", 1e-12)
    with pytest.raises(InputError, match="128 values"):
        convolve_whole(np.ones(64, dtype=np.int64), np.full((1, 64), 1000))
