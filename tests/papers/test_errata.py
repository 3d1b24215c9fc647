"""Mistakes of the papers, as numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from papers import Agreement, Result
from papers.errata import Erratum, Part
from papers.errata.auditing import _balanced
from papers.errata.erratum import Promise
from papers.experiments.errata import Errata
from tests.papers.kit import quick

DOCS = Path(__file__).parents[2] / "docs" / "science"


@pytest.fixture(scope="module")
def result() -> Result:
    return quick("errata")


def errata_of(result: Result) -> Errata:
    assert isinstance(result.finding, Errata)
    return result.finding


def named(result: Result, part: Part, text: str) -> Erratum:
    found = [one for one in errata_of(result).found if one.part is part and text in f"{one.where}: {one.quantity}"]
    assert len(found) == 1, [one.quantity for one in found]
    return found[0]


def made(promise: Promise, printed: float, true: float, error: float = 0.0) -> Erratum:
    return Erratum(Part.PRIVACY, "a paper", "says", "a number", promise, printed, true, "so what", error)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("promise", "printed", "true", "verdict"),
        [
            (Promise.EQUAL, 1.0, 1.0, Agreement.AGREES),
            (Promise.EQUAL, 1.0, 1.1, Agreement.WRONG),
            (Promise.EQUAL, 0.0, 0.0, Agreement.AGREES),
            (Promise.AT_MOST, 1.0, 1.1, Agreement.WRONG),
            (Promise.AT_MOST, 1.0, 0.99, Agreement.AGREES),
            (Promise.AT_MOST, 1.0, 0.5, Agreement.LOOSER),
            (Promise.AT_LEAST, 1.0, 0.9, Agreement.WRONG),
            (Promise.AT_LEAST, 1.0, 3.0, Agreement.LOOSER),
            (Promise.AT_LEAST, -1.0, 1.0, Agreement.LOOSER),
        ],
    )
    def test_they_follow_the_numbers(self, promise: Promise, printed: float, true: float, verdict: Agreement) -> None:
        assert made(promise, printed, true).verdict is verdict

    def test_chance_is_allowed_for(self) -> None:
        assert made(Promise.AT_MOST, 0.1, 0.12, error=0.02).verdict is not Agreement.WRONG
        assert made(Promise.AT_MOST, 0.1, 0.15, error=0.02).verdict is Agreement.WRONG

    def test_what_a_model_assumes_is_no_mistake(self) -> None:
        one = replace(made(Promise.AT_MOST, 1.0, 2.0), assumed=True)
        assert one.verdict is Agreement.NARROW
        assert "assumed <= 1" in one.claim().found
        assert "printed" not in one.claim().found
        assert replace(one, true=1.0).verdict is Agreement.AGREES

    def test_factors(self) -> None:
        assert made(Promise.EQUAL, 2.0, 0.5).factor == pytest.approx(4.0)
        assert made(Promise.EQUAL, -1.5, -0.75).factor == pytest.approx(2.0)
        assert made(Promise.EQUAL, 0.0, 2.0).factor is None


def test_every_part_has_its_mistakes_and_each_is_shown(result: Result) -> None:
    errata = errata_of(result).found
    assert {one.part for one in errata} == set(Part)
    assert len(errata) >= 55
    assert all(one.verdict in {Agreement.WRONG, Agreement.LOOSER} for one in errata if not one.assumed)
    assert {one.verdict for one in errata if one.assumed} == {Agreement.NARROW}
    assert result.finding.goals()[0].met


KNOWN: list[tuple[Part, str, float, float]] = [
    (Part.PHYSICS, "0.4 T", 0.295993, 1e-5),
    (Part.PRIVACY, "delta at epsilon = 50", 0.4199, 1e-3),
    (Part.PRIVACY, "sigma/Delta that (1, 0.1)", 1.085878, 1e-5),
    (Part.PRIVACY, "sigma/Delta that (4, 0.1)", 0.485541, 1e-5),
    (Part.PRIVACY, "sigma/Delta that (10, 0.01)", 0.350097, 1e-5),
    (Part.PRIVACY, "sigma/Delta that (1, 1e-06)", 4.224679, 1e-5),
    (Part.PRIVACY, "sigma/Delta that (0.1, 1e-08)", 45.93737, 1e-4),
    (Part.PRIVACY, "only the first knows", 0.571887, 1e-5),
    (Part.PRIVACY, "float releases", 0.41, 0.02),
    (Part.PRIVACY, "Delta of [1 1]", 0.0, 1e-12),
    (Part.PRIVACY, "3 smooth sensors", 0.000236, 1e-6),
    (Part.RECOVERY, "total weight of its map", 1.07, 0.03),
    (Part.MEASURES, "e1 + e5", 0.2, 1e-9),
    (Part.MEASURES, "C2 at m = 50, T = 0.05", math.exp(-1 / 8) / (4 * math.sqrt(2 * math.pi) * 0.05), 1e-6),
    (Part.MEASURES, "(radius + ||z||)/sigma", 50 + math.sqrt(50 * 63.1671), 1e-3),
    (Part.CONVOLUTION, "without noise", 0.25, 1e-9),
    (Part.CONVOLUTION, "between H x and h * x", 0.5 - 2**-7, 1e-9),
    (Part.CONVOLUTION, "||h^||_1", 3.663, 1e-3),
    (Part.CONVOLUTION, "largest coefficient of running sums", math.sqrt(512), 1e-9),
    (Part.CONVOLUTION, "growth of the second", 2.0, 1e-4),
    (Part.AUDITING, "TV of 7 throws", 0.248, 1e-3),
    (Part.AUDITING, "largest delta within", 0.2, 1e-12),
    (Part.AUDITING, "correlation of x_2", math.sqrt(0.9 * 0.52), 1e-9),
    (Part.AUDITING, "number of terms", 2.0, 0.0),
    (Part.AUDITING, "defined ratios", 2.0, 0.0),
    (Part.AUDITING, "reveals input 0", 0.99, 0.02),
    (Part.AUDITING, "wrongly reject", 0.4243, 1e-3),
    (Part.AUDITING, "multiples of alpha", 12.0, 0.0),
    (Part.PRIVACY, "with an edge of the clique", 0.571887, 1e-5),
    (Part.MEASURES, "the same for all six pairs", 0.5, 1e-9),
    (Part.MEASURES, "what Fano's inequality gives", 0.1025, 1e-4),
    (Part.MEASURES, "W_ij(x_i)", 4 * 0.01 / (8 * math.pi * 0.05**2) * math.exp(-0.004), 1e-9),
    (Part.CONVOLUTION, "mean squared error of sums over 1,024", 758.17 / 55.262, 1e-3),
    (Part.AUDITING, "logarithm of the probability of 150", -125.3399, 1e-3),
    (Part.LEARNING, "regret of 200 rounds of x_t = e_1, N = 10", 12.3, 0.5),
    (Part.LEARNING, "largest log ratio", 8.9905, 1e-4),
    (Part.LEARNING, "of the 2 x 2 ensemble", 3.0, 1e-6),
    (Part.LEARNING, "hazard rate of Weibull", 204.12, 0.01),
    (Part.LEARNING, "regret over 200", 199.5, 1e-9),
]


@pytest.mark.parametrize(("part", "text", "value", "room"), KNOWN)
def test_known_numbers(result: Result, part: Part, text: str, value: float, room: float) -> None:
    one = named(result, part, text)
    assert one.true == pytest.approx(value, abs=room + 5 * one.error + 1e-12)


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
