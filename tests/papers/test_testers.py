"""McMillan's table, measured."""

import numpy as np
import pytest
from scipy import stats

from papers import Agreement, Result
from papers.complexity import EPSILON, Along, Cell, Point, Sweep, hidden_pairs, rare
from papers.experiments.testers import lower_verdict
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("testers")


def made_up(tester: Cell, along: Along, power: float, *, rate: float, limit: float = 0.5) -> Sweep:
    x = (1 / 64, 1 / 16, 1 / 8) if along is not Along.OUTCOMES else (256.0, 1024.0, 4096.0)
    points = [
        Point(
            v,
            needed=1e4 * v**power,
            error=100 * v**power,
            planned=10**6,
            printed=None if tester is Cell.KNOWN else 1e7 * v**rate,
            rate=v**rate,
            limit=round(100 * v**limit),
            audited=2e3 * v**-0.5,
            found=1.0,
        )
        for v in x
    ]
    return Sweep(tester, along, tuple(points))


@pytest.mark.parametrize(
    ("needed", "proved", "verdict"),
    [
        (1.0, 1.0, Agreement.CONSISTENT),
        (1.0, 0.5, Agreement.UNDECIDED),
        (0.5, 0.5, Agreement.WRONG),
        (1.5, 1.0, Agreement.LOOSER),
    ],
)
def test_a_lower_bound_has_to_be_proved_and_not_contradicted(needed: float, proved: float, verdict: Agreement) -> None:
    sweep = made_up(Cell.UNKNOWN, Along.OUTCOMES, needed, rate=1.0, limit=proved)
    assert lower_verdict(sweep, 1.0) is verdict
    known = Agreement.CONSISTENT if verdict is Agreement.UNDECIDED else verdict
    assert lower_verdict(sweep, 1.0, elsewhere=True) is known


class TestUnverifiable:
    @pytest.mark.parametrize("depth", [4.0, 8.0])
    def test_the_pairs_have_the_stated_parameters(self, depth: float) -> None:
        private, far = hidden_pairs(depth)
        assert private.epsilon == pytest.approx(EPSILON)
        assert far.epsilon == pytest.approx(depth - EPSILON)
        assert private.zero.tolist() == far.zero.tolist()

    @pytest.mark.parametrize("depth", [3.0, 5.0])
    def test_the_number_is_what_the_best_test_needs(self, depth: float) -> None:
        """Power at a false alarm of 1/3 of the likelihood ratio test of the counts, over all thresholds."""
        private, far = hidden_pairs(depth)
        r = rare(depth, 1, (1,)).needed

        def power(queries: int) -> float:
            counts = np.arange(queries + 1)
            p, q = (stats.binom.pmf(counts, queries, one.one[0]) for one in (private, far))
            alarm, found = np.r_[0, np.cumsum(q[::-1])], np.r_[0, np.cumsum(p[::-1])]
            return float(np.interp(1 / 3, alarm, found))

        assert power(r) >= 2 / 3
        assert power(r - 1) < 2 / 3
