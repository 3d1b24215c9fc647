"""The noise table against mpmath, and its error bound against the truth."""

import mpmath
import pytest

from cloakwork.errors import CalibrationError
from cloakwork.privacy import noise_table
from cloakwork.privacy.table import LARGEST_RATIO


def cuts(ratio: float) -> list[int]:
    raw = noise_table(ratio).cuts
    return [int.from_bytes(raw[k : k + 16], "big") for k in range(0, len(raw), 16)]


@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0, 2.5, 7.3, 31.9, 32.1, 129.0, 3017.12, 16384.0])
def test_cut_points_are_the_error_function_to_127_bits(ratio: float) -> None:
    found = cuts(ratio)
    with mpmath.workprec(300):
        scale = mpmath.mpf(ratio) * mpmath.sqrt(2)
        for j in sorted({0, 1, 2, len(found) // 3, len(found) // 2, len(found) - 2}):
            if 0 <= j < len(found):
                exact = mpmath.erf((mpmath.mpf(j) + mpmath.mpf(1) / 2) / scale) * 2**127
                # the last cut points may not reach 2^127, which no word of 127 bits does
                assert abs(min(exact, 2**127 - 1) - found[j]) <= mpmath.mpf("0.5000001")


@pytest.mark.parametrize("ratio", [0.3, 1.7, 40.0])
def test_the_stated_error_covers_all_probabilities_and_the_tail(ratio: float) -> None:
    found = [0, *cuts(ratio), 2**127]
    with mpmath.workprec(300):
        scale = mpmath.mpf(ratio) * mpmath.sqrt(2)
        exact = [mpmath.mpf(0)] + [mpmath.erf((j + mpmath.mpf(1) / 2) / scale) for j in range(len(found) - 2)]
        off = mpmath.mpf(0)
        for j in range(1, len(exact)):
            off += abs((exact[j] - exact[j - 1]) - mpmath.mpf(found[j] - found[j - 1]) / 2**127)
        tail = 1 - exact[-1]
        off += abs(tail - mpmath.mpf(found[-1] - found[-2]) / 2**127) + tail
        assert off <= noise_table(ratio).error
        assert noise_table(ratio).error < 1e-33


def test_cut_points_never_decrease() -> None:
    found = cuts(129.0)
    assert found == sorted(found)
    assert max(found) < 2**127


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf")])
def test_a_meaningless_ratio_is_refused(ratio: float) -> None:
    with pytest.raises(CalibrationError, match="sigma/step"):
        noise_table(ratio)


def test_a_table_too_large_is_refused_with_advice() -> None:
    with pytest.raises(CalibrationError, match="Give a coarser resolution"):
        noise_table(LARGEST_RATIO * 1.01)
