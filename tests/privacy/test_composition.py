"""Noise that is a sum: its law against the rounded Gaussian that it stands for."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from cloakwork.privacy import Level, NoiseTable, noise_table
from cloakwork.privacy.noise_table import (
    DEVICE_TABLES,
    SERVER_TABLES,
    Part,
    TableSize,
    composed,
    cut_count,
    fewest_parts,
    parts,
)

Mass = Callable[[int], int]
UNIT = 128  # a probability of one level is a whole number of 2^-128


def scale(terms: tuple[Part, ...]) -> Fraction:
    """S^2 of the normal law that a sum stands for."""
    return Fraction(sum(part.factor**2 * part.parameter**2 for part in terms))


def level_masses(level: Level) -> list[int]:
    """P(K = k) for k = 0, 1, ..., in units of 2^-128."""
    cuts = [int.from_bytes(level.cuts[k : k + 16], "big") for k in range(0, len(level.cuts), 16)] + [2**127]
    return [2 * cuts[0], *(after - before for before, after in pairwise(cuts))]


def mass_of(table: NoiseTable) -> Mass:
    """The exact law of the sum of all levels, in units of 2^-(128 levels)."""
    whole: Mass = lambda k: int(k == 0)  # noqa: E731 - the empty sum
    for place, level in enumerate(table.levels):
        finer = table.levels[place - 1].factor // level.factor if place else 1
        whole = _added(whole, level_masses(level), finer)
    return whole


def _added(coarse: Mass, fine: list[int], factor: int) -> Mass:
    reach = len(fine) - 1

    @cache
    def mass(x: int) -> int:
        near = range(-((reach - x) // factor), (x + reach) // factor + 1)
        return sum(coarse(k) * fine[abs(x - factor * k)] for k in near)

    return mass


def below(square: Fraction, x: int) -> mpmath.mpf:
    """P(|N(0, square)| < x + 1/2)."""
    width = mpmath.sqrt(2 * mpmath.mpf(square.numerator) / square.denominator)
    return mpmath.erf((x + mpmath.mpf(1) / 2) / width)


def rounded(square: Fraction, x: int) -> mpmath.mpf:
    """P(round(N(0, square)) = x)."""
    return (below(square, x) - below(square, x - 1)) / 2


def distance(table: NoiseTable, square: Fraction) -> mpmath.mpf:
    """Sum over all x of the absolute differences between the law of a table and the rounded Gaussian."""
    mass, unit = mass_of(table), mpmath.mpf(2) ** (UNIT * len(table.levels))
    reach = sum(level.factor * level.count for level in table.levels)
    off = abs(mass(0) / unit - rounded(square, 0))
    edges = [below(square, x) for x in range(reach + 1)]
    exact = ((after - before) / 2 for before, after in pairwise(edges))
    return off + 2 * mpmath.fsum(abs(mass(x) / unit - p) for x, p in enumerate(exact, start=1))


@pytest.mark.parametrize(("ratio", "terms"), [(40.0, 1), (100.0, 2), (128.0, 3)])
def test_the_whole_law_is_the_rounded_gaussian_within_the_stated_error(ratio: float, terms: int) -> None:
    chosen = parts(ratio, terms)
    table = composed(ratio, chosen)
    assert len(table.levels) == terms
    with mpmath.workprec(300):
        assert distance(table, scale(chosen)) <= table.error


def test_with_too_little_fine_noise_the_coarse_steps_show() -> None:
    """With fine noise of 1.5 coarse steps the error is 14 orders of magnitude larger, and as large as theory says."""
    rough = (Part(8, Fraction(16)), Part(1, Fraction(12)))
    table = composed(128.6, rough)
    tau_squared = 1 / (1 / 16**2 + 8**2 / 12**2)
    wave = 2 * math.exp(-2 * math.pi**2 * tau_squared)
    with mpmath.workprec(300):
        error = float(distance(table, scale(rough)))
    assert error > 1e14 * table.error
    assert error == pytest.approx(wave * 2 / math.pi, rel=0.01)  # the mean of |cos| is 2/pi


@pytest.mark.parametrize("size", [DEVICE_TABLES, SERVER_TABLES])
@pytest.mark.parametrize("part", [float(part) for part in np.linspace(0.0, 1.0, 11)])
def test_no_table_exceeds_the_error_and_size_of_its_machine(part: float, size: TableSize) -> None:
    table = noise_table(min(0.05 * (size.ratio / 0.05) ** part, size.ratio), size=size)
    assert 0 < table.error < size.error
    assert len(table.cuts) <= size.bytes


@pytest.mark.parametrize("size", [DEVICE_TABLES, SERVER_TABLES])
def test_every_split_is_smooth_enough_and_never_less_noise(rng: np.random.Generator, size: TableSize) -> None:
    ratios = [*rng.uniform(265, 20_000, 250), *np.exp(rng.uniform(math.log(265), math.log(size.ratio), 750))]
    for ratio in [*ratios, size.ratio]:
        chosen = fewest_parts(float(ratio), size.bytes)
        assert sum(cut_count(part.parameter) for part in chosen) * 16 <= size.bytes
        assert len(chosen) <= 5
        square = scale(chosen)
        assert Fraction(float(ratio)) ** 2 <= square <= Fraction(float(ratio)) ** 2 * (1 + Fraction(1, 2**36))
        for place in range(1, len(chosen)):
            coarse, fine = scale(chosen[:place]) / chosen[place - 1].factor ** 2, chosen[place].parameter
            base = Fraction(chosen[place - 1].factor, chosen[place].factor)
            assert base >= 2
            assert base.denominator == 1
            assert 1 / coarse + base**2 / fine**2 <= Fraction(1, 4)  # tau >= 2
