"""Exact arithmetic for `read`: fractions (numerator, denominator) of whole numbers, which nothing here rounds.

The site file states how much rounding a reading has behind it (`resolution`). These functions add none.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def mean(counts: "Sequence[int]", step: "tuple[int, int]") -> "tuple[int, int]":
    """The mean of values that hardware gives as whole numbers of steps, each of a/b of the unit for `step` = (a, b).

    Each value is off by its own rounding, and their mean by no more than one of them: if all values jump at once, so
    does the mean. So its `resolution` is one step of the hardware, the same as for a single value.

    >>> mean([85, 86], (1, 4))
    (171, 8)
    """
    return sum(counts) * step[0], len(counts) * step[1]


def rescaled(
    reading: "tuple[int, int]", factor: "tuple[int, int]", offset: "tuple[int, int]" = (0, 1)
) -> "tuple[int, int]":
    """The reading times a constant, plus a constant: its `resolution` is that of the reading times the factor's size.

    >>> rescaled((85, 4), (9, 5), (32, 1))  # 21.25 degrees Celsius in Fahrenheit, 70.25
    (1405, 20)
    """
    numerator, denominator = reading[0] * factor[0], reading[1] * factor[1]
    return numerator * offset[1] + offset[0] * denominator, denominator * offset[1]
