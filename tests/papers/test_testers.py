"""McMillan's table, measured."""

import numpy as np
import pytest
from scipy import stats

from papers.complexity import EPSILON, Along, hidden_pairs, rare
from papers.experiments.testers import lower_verdict
from papers.result import Agreement
from papers.rows import Mean, Row


def made_up(power: float, limit: float) -> Row:
    points = [Row(x=x, needed=Mean(1e4 * x**power, 100 * x**power), limit=100 * x**limit) for x in (256, 1024, 4096)]
    return Row(along=Along.OUTCOMES, points=points)


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
    sweep = made_up(needed, proved)
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
