"""The tables against mpmath, their error bound against the truth, and their size."""

import hashlib
import math
from fractions import Fraction

import mpmath
import pytest

from cloakwork.errors import CalibrationError
from cloakwork.privacy import noise_table
from cloakwork.privacy.noise_table import DEVICE_TABLES, cuts_error, discrete_cuts, rounded_cuts

DIGESTS = {
    2.5: "591241f78bdeed83190f871b6022d2a6a0c72404e9a4396580877ff42d37d6bb",
    300.0: "2ec6a5f81b5cf49f78e896e9f3b8844add04ff571ce2288c1413a406f9cbd8ec",
    3017.25: "949fc8429216a606775e63ce7db5cb7835b32ae6b0e577e34faeb38f903e7465",
    9000.0: "d014f6fed6e3823798e6cb536a178606c29050d193637436ccef6e1c437b55ea",
    2.0**20 + 0.125: "de2feaaf42d5d12252559ec95d0c15db3d1bc3c67e0f0fc259cf8b70e928f725",
    2.0**24: "74dd3c2b0ed0f665c6518cd186d878af7165802c5644b1366edab4cfdd6c9985",
}


def numbers(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[k : k + 16], "big") for k in range(0, len(raw), 16)]


def rounded_oracle(parameter: float, j: int) -> mpmath.mpf:
    """P(|round(N)| <= j)."""
    return mpmath.erf((mpmath.mpf(j) + mpmath.mpf(1) / 2) / (mpmath.mpf(parameter) * mpmath.sqrt(2)))


def discrete_oracle(parameter: float, j: int) -> mpmath.mpf:
    """P(|D| <= j), the sum of all weights by Poisson's formula."""
    s = mpmath.mpf(parameter)
    theta = 1 + 2 * mpmath.fsum(mpmath.exp(-2 * (mpmath.pi * n * s) ** 2) for n in range(1, 9))
    some = 1 + 2 * mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) for k in range(1, j + 1))
    return some / (s * mpmath.sqrt(2 * mpmath.pi) * theta)


def places(size: int) -> list[int]:
    return sorted(j for j in {0, 1, 2, size // 7, size // 3, size // 2, size - 2, size - 1} if 0 <= j < size)


@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0, 2.5, 7.3, 22.6875, 31.9, 32.1, 129.0, 265.0])
def test_rounded_cut_points_are_exact_to_the_last_of_127_bits(ratio: float) -> None:
    cuts = numbers(rounded_cuts(Fraction(ratio)))
    with mpmath.workprec(300):
        for j in places(len(cuts)):
            # the last cut points may not reach 2^127, which no word of 127 bits does
            exact = min(rounded_oracle(ratio, j) * 2**127, 2**127 - 1)
            assert abs(exact - cuts[j]) <= mpmath.mpf("0.5000001")


@pytest.mark.parametrize("parameter", [1.0, 8.25, 24.914776614517905, 79.37584012420848, 131.2337936423719, 265.0])
def test_discrete_cut_points_are_exact_to_the_last_of_127_bits(parameter: float) -> None:
    cuts = numbers(discrete_cuts(Fraction(parameter)))
    with mpmath.workprec(300):
        for j in places(len(cuts)):
            exact = min(discrete_oracle(parameter, j) * 2**127, 2**127 - 1)
            assert abs(exact - cuts[j]) <= mpmath.mpf("0.5000001")


@pytest.mark.parametrize(
    ("law", "parameter"), [*(("rounded", s) for s in (0.3, 1.7, 12.0)), *(("discrete", s) for s in (1.7, 8.25))]
)
def test_the_stated_error_covers_all_probabilities_and_the_tail(law: str, parameter: float) -> None:
    make, oracle = (rounded_cuts, rounded_oracle) if law == "rounded" else (discrete_cuts, discrete_oracle)
    cuts = [0, *numbers(make(Fraction(parameter))), 2**127]
    with mpmath.workprec(300):
        exact = [mpmath.mpf(0)] + [oracle(parameter, j) for j in range(len(cuts) - 2)]
        off = mpmath.mpf(0)
        for j in range(1, len(exact)):
            off += abs((exact[j] - exact[j - 1]) - mpmath.mpf(cuts[j] - cuts[j - 1]) / 2**127)
        tail = 1 - exact[-1]
        off += abs(tail - mpmath.mpf(cuts[-1] - cuts[-2]) / 2**127) + tail
        assert off <= cuts_error(len(cuts) - 2) < 1e-33


@pytest.mark.parametrize("ratio", [1e-300, 1e-9, 0.01])
def test_noise_far_below_a_step_is_always_zero(ratio: float) -> None:
    table = noise_table(ratio)
    assert numbers(table.cuts)[0] == 2**127 - 1
    assert table.ratio == ratio


@pytest.mark.parametrize("ratio", DIGESTS)
def test_every_machine_makes_the_same_tables(ratio: float) -> None:
    assert noise_table(ratio).digest == DIGESTS[ratio]


def test_the_digest_covers_factors_sizes_and_cut_points() -> None:
    table = noise_table(300.0)
    head = "".join(f"{level.factor:016x}{len(level.cuts) // 16:016x}" for level in table.levels)
    assert table.digest == hashlib.sha256(bytes.fromhex(head) + table.cuts).hexdigest()


@pytest.mark.parametrize("ratio", [0, -1, math.nan, math.inf])
def test_a_meaningless_ratio_is_refused(ratio: float) -> None:
    with pytest.raises(CalibrationError, match="sigma/step"):
        noise_table(ratio)


def test_a_ratio_without_a_table_is_refused_with_advice() -> None:
    with pytest.raises(CalibrationError, match="coarser") as refused:
        noise_table(DEVICE_TABLES.ratio * 1.01)
    assert refused.value.values == {"ratio": DEVICE_TABLES.ratio * 1.01, "most": DEVICE_TABLES.ratio}
