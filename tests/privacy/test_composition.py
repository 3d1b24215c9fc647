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
    COMPOSITION_ERROR,
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


@pytest.mark.parametrize("ratio", [300.0, 3017.3, 9000.0, 2e5, 2.0**24])
def test_probabilities_are_those_of_one_large_table(ratio: float) -> None:
    chosen, table = fewest_parts(ratio), noise_table(ratio)
    mass, levels, step = mass_of(table), len(table.levels), table.levels[-2].factor
    near = {0, 1, 2, step // 4, step // 2, step - 1, step, step + 1}
    far = {int(part * ratio) for part in (0.5, 1.0, 1.7, 3.0, 5.0, 8.0)}
    with mpmath.workprec(450 + 128 * levels):
        for x in sorted(near | far):
            exact = rounded(scale(chosen), x)
            off = abs(mass(x) / mpmath.mpf(2) ** (UNIT * levels) - exact)
            assert off <= (levels - 1) * COMPOSITION_ERROR * exact + levels * mpmath.mpf(2) ** -127
            assert mass(-x) == mass(x)


@pytest.mark.parametrize("ratio", [0.7, 100.0, 265.5, 300.0, 3017.3, 9000.0, 2e5, 2.0**24])
def test_the_variance_is_never_below_the_requested_one(ratio: float) -> None:
    table = noise_table(ratio)
    variance = Fraction(0)
    for level in table.levels:
        masses = level_masses(level)
        variance += Fraction(level.factor**2 * 2 * sum(k * k * mass for k, mass in enumerate(masses)), 2**UNIT)
    requested = Fraction(ratio) ** 2
    assert requested < variance
    assert float(variance - requested) == pytest.approx(1 / 12, abs=max(0.05 if ratio < 1 else 1e-9, 2e-11 * ratio**2))


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


@pytest.mark.parametrize("terms", [1, 2, 3, 4])
def test_a_table_has_one_more_level_where_fewer_do_not_fit(terms: int) -> None:
    low, high = 1.0, DEVICE_TABLES.ratio
    while math.nextafter(low, high) < high:
        middle = (low + high) / 2
        low, high = (middle, high) if len(fewest_parts(middle)) <= terms else (low, middle)
    for ratio, expected in ((low, terms), (high, terms + 1)):
        table = noise_table(ratio)
        assert len(table.levels) == expected
        assert table.ratio == ratio
        assert scale(fewest_parts(ratio)) >= Fraction(ratio) ** 2
    if terms == 1:
        assert low == pytest.approx(3583 / 13.5, rel=1e-15)
