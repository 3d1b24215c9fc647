"""What `read` returns: exact arithmetic, and the check of its steps before the first reading."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.sensor.board import check_resolution
from cloakwork.sensor.errors import StateError
from cloakwork.sensor.exact import mean, rescaled

whole = st.integers(-5000, 5000)
fraction = st.tuples(whole, st.integers(1, 1000))


@given(st.lists(whole, min_size=1, max_size=80), fraction, fraction, fraction)
def test_nothing_is_rounded(
    counts: list[int], step: tuple[int, int], factor: tuple[int, int], offset: tuple[int, int]
) -> None:
    reading = mean(counts, step)
    assert Fraction(*reading) == Fraction(*step) * sum(counts) / len(counts)
    assert Fraction(*rescaled(reading, factor, offset)) == Fraction(*factor) * Fraction(*reading) + Fraction(*offset)


@pytest.mark.parametrize(("returned", "refused"), [((85, 4), False), ((21000, 1000), False), ((42, 2), True)])
def test_a_coarser_denominator_than_stated_is_refused_whatever_the_reading(
    returned: tuple[int, int], refused: bool
) -> None:
    for numerator in (returned[0], 0, -3):
        try:
            check_resolution({"resolution": [1, 4]}, [(numerator, returned[1])].pop)
        except StateError:
            assert refused
        else:
            assert not refused
