"""Mistakes of the papers, as numbers."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from papers.errata import PARTS
from papers.errata.auditing import _balanced
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, claim, erratum, factor, verdict
from papers.result import Agreement, Result
from papers.rows import Mean, Row
from tests.papers.kit import quick

DOCS = Path(__file__).parents[2] / "docs" / "science"


@pytest.fixture(scope="module")
def result() -> Result:
    return quick("errata")


def named(result: Result, part: str, text: str) -> Row:
    found = [one for one in result.finding.found if one.part == part and text in f"{one.where}: {one.quantity}"]
    [one] = found
    assert isinstance(one, Row)
    return one


def made(promise: str, printed: float, true: float, error: float = 0.0, *, assumed: bool = False) -> Row:
    return erratum("a paper", "says", "a number", (promise, printed, Mean(true, error)), "so what", assumed=assumed)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("promise", "printed", "true", "expected"),
        [
            (EQUAL, 1.0, 1.0, Agreement.AGREES),
            (EQUAL, 1.0, 1.1, Agreement.WRONG),
            (EQUAL, 0.0, 0.0, Agreement.AGREES),
            (AT_MOST, 1.0, 1.1, Agreement.WRONG),
            (AT_MOST, 1.0, 0.99, Agreement.AGREES),
            (AT_MOST, 1.0, 0.5, Agreement.LOOSER),
            (AT_LEAST, 1.0, 0.9, Agreement.WRONG),
            (AT_LEAST, 1.0, 3.0, Agreement.LOOSER),
            (AT_LEAST, -1.0, 1.0, Agreement.LOOSER),
        ],
    )
    def test_they_follow_the_numbers(self, promise: str, printed: float, true: float, expected: Agreement) -> None:
        assert verdict(made(promise, printed, true)) is expected

    def test_chance_is_allowed_for(self) -> None:
        assert verdict(made(AT_MOST, 0.1, 0.12, error=0.02)) is not Agreement.WRONG
        assert verdict(made(AT_MOST, 0.1, 0.15, error=0.02)) is Agreement.WRONG

    def test_what_a_model_assumes_is_no_mistake(self) -> None:
        one = made(AT_MOST, 1.0, 2.0, assumed=True)
        assert verdict(one) is Agreement.NARROW
        assert "assumed <= 1" in claim(one).found
        assert "printed" not in claim(one).found
        assert verdict(made(AT_MOST, 1.0, 1.0, assumed=True)) is Agreement.AGREES

    def test_factors(self) -> None:
        assert factor(made(EQUAL, 2.0, 0.5)) == pytest.approx(4.0)
        assert factor(made(EQUAL, -1.5, -0.75)) == pytest.approx(2.0)
        assert factor(made(EQUAL, 0.0, 2.0)) is None


def test_every_part_has_its_mistakes_and_each_is_shown(result: Result) -> None:
    errata = result.finding.found
    assert {one.part for one in errata} == set(PARTS)
    assert len(errata) >= 55
    assert all(verdict(one) in {Agreement.WRONG, Agreement.LOOSER} for one in errata if not one.assumed)
    assert {verdict(one) for one in errata if one.assumed} == {Agreement.NARROW}
    assert result.finding.goals()[0].met


KNOWN: list[tuple[str, str, float, float]] = [
    ("physics", "0.4 T", 0.295993, 1e-5),
    ("privacy", "delta at epsilon = 50", 0.4199, 1e-3),
    ("privacy", "sigma/Delta that (1, 0.1)", 1.085878, 1e-5),
    ("privacy", "sigma/Delta that (4, 0.1)", 0.485541, 1e-5),
    ("privacy", "sigma/Delta that (10, 0.01)", 0.350097, 1e-5),
    ("privacy", "sigma/Delta that (1, 1e-06)", 4.224679, 1e-5),
    ("privacy", "sigma/Delta that (0.1, 1e-08)", 45.93737, 1e-4),
    ("privacy", "only the first knows", 0.571887, 1e-5),
    ("privacy", "float releases", 0.41, 0.02),
    ("privacy", "Delta of [1 1]", 0.0, 1e-12),
    ("privacy", "3 smooth sensors", 0.000236, 1e-6),
    ("recovery", "total weight of its map", 1.07, 0.03),
    ("measures", "e1 + e5", 0.2, 1e-9),
    ("measures", "C2 at m = 50, T = 0.05", math.exp(-1 / 8) / (4 * math.sqrt(2 * math.pi) * 0.05), 1e-6),
    ("measures", "(radius + ||z||)/sigma", 50 + math.sqrt(50 * 63.1671), 1e-3),
    ("convolution", "without noise", 0.25, 1e-9),
    ("convolution", "between H x and h * x", 0.5 - 2**-7, 1e-9),
    ("convolution", "||h^||_1", 3.663, 1e-3),
    ("convolution", "largest coefficient of running sums", math.sqrt(512), 1e-9),
    ("convolution", "growth of the second", 2.0, 1e-4),
    ("auditing", "TV of 7 throws", 0.248, 1e-3),
    ("auditing", "largest delta within", 0.2, 1e-12),
    ("auditing", "correlation of x_2", math.sqrt(0.9 * 0.52), 1e-9),
    ("auditing", "number of terms", 2.0, 0.0),
    ("auditing", "defined ratios", 2.0, 0.0),
    ("auditing", "reveals input 0", 0.99, 0.02),
    ("auditing", "wrongly reject", 0.4243, 1e-3),
    ("auditing", "multiples of alpha", 12.0, 0.0),
    ("privacy", "with an edge of the clique", 0.571887, 1e-5),
    ("measures", "the same for all six pairs", 0.5, 1e-9),
    ("measures", "what Fano's inequality gives", 0.1025, 1e-4),
    ("measures", "W_ij(x_i)", 4 * 0.01 / (8 * math.pi * 0.05**2) * math.exp(-0.004), 1e-9),
    ("convolution", "mean squared error of sums over 1,024", 758.17 / 55.262, 1e-3),
    ("auditing", "logarithm of the probability of 150", -125.3399, 1e-3),
    ("learning", "regret of 200 rounds of x_t = e_1, N = 10", 12.3, 0.5),
    ("learning", "largest log ratio", 8.9905, 1e-4),
    ("learning", "of the 2 x 2 ensemble", 3.0, 1e-6),
    ("learning", "hazard rate of Weibull", 204.12, 0.01),
    ("learning", "regret over 200", 199.5, 1e-9),
]


@pytest.mark.parametrize(("part", "text", "value", "room"), KNOWN)
def test_known_numbers(result: Result, part: str, text: str, value: float, room: float) -> None:
    one = named(result, part, text)
    assert one.true.value == pytest.approx(value, abs=room + 5 * one.true.error + 1e-12)


class TestPieces:
    def test_a_balanced_test_of_two_coins_is_the_best_of_all_tests(self) -> None:
        """By linear programming over all randomised tests: the larger of the two errors is as small as can be."""
        heads = np.arange(15)
        p, q = stats.binom.pmf(heads, 14, 0.5), stats.binom.pmf(heads, 14, 0.62)
        # variables: the probability to say q after k heads, and the error
        bounds = [(0.0, 1.0)] * 16
        rows = np.array([[*p, -1.0], [*-q, -1.0]])
        found = optimize.linprog([*np.zeros(15), 1.0], A_ub=rows, b_ub=[0.0, -1.0], bounds=bounds)
        assert _balanced(0.5, 0.62, 14) == pytest.approx(1 - float(found.fun or 0.0), abs=1e-9)
        assert _balanced(0.5, 0.62, 14) > 2 / 3
