"""Sweeps: points, limits, slopes, and what is said of claimed rates."""

import numpy as np
import pytest

from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine
from papers.result import Agreement
from papers.rows import Mean
from papers.statistics import judge_lower, judge_upper
from papers.sweeps import floor_of, le_cam, limit_of
from papers.trials import Setting


def test_limits_are_those_of_the_measures() -> None:
    setting = Setting(n=12, m=8, T=0.1, at=(0.5,))
    line, none = HeatLine(n=12, m=8, T=0.1), np.zeros((0, 12))
    assert limit_of(setting, 0.1, none) == cramer_rao(line, [0.5], 0.1).expected_emd
    assert floor_of(setting, 0.1) is None
    anywhere = Setting(n=12, m=8, T=0.1)
    places = [cramer_rao(line, [i / 12], 0.1).expected_emd for i in range(1, 13)]
    assert limit_of(anywhere, 0.1, none) == pytest.approx(np.mean(places), rel=1e-9)
    assert floor_of(anywhere, 0.1) == le_cam(HeatLine(n=12, m=8, T=0.1, placement="anywhere"), 0.1)


@pytest.mark.parametrize(
    ("slope", "claimed", "growing", "verdict"),
    [
        (Mean(0.03, 0.02), 0.0, True, Agreement.AGREES),
        (Mean(0.03, 0.11), 0.0, True, Agreement.UNDECIDED),
        (Mean(0.0, 0.2), 0.5, True, Agreement.UNDECIDED),
        (Mean(0.13, 0.02), 0.0, True, Agreement.UNDECIDED),
        (Mean(0.15, 0.02), 0.0, True, Agreement.WRONG),
        (Mean(-0.4, 0.02), 0.0, True, Agreement.LOOSER),
        (Mean(0.4, 0.02), 0.0, True, Agreement.WRONG),
        (Mean(0.5, 0.02), 1.0, False, Agreement.WRONG),
        (Mean(1.5, 0.02), 1.0, False, Agreement.LOOSER),
        (Mean(0.5, 0.15), 1.0, False, Agreement.WRONG),
        (Mean(0.5, 0.3), 1.0, False, Agreement.UNDECIDED),
        (Mean(0.5, float("nan")), 1.0, False, Agreement.UNDECIDED),
    ],
)
def test_an_upper_bound_is_judged_by_the_side_on_which_the_slope_is(
    slope: Mean, claimed: float, growing: bool, verdict: Agreement
) -> None:
    assert judge_upper(slope, claimed, growing=growing) is verdict


@pytest.mark.parametrize("value", [-0.4, 0.0, 0.13, 0.4])
def test_a_lower_bound_is_judged_the_other_way_round(value: float) -> None:
    swapped = {
        Agreement.LOOSER: Agreement.WRONG,
        Agreement.WRONG: Agreement.LOOSER,
        Agreement.AGREES: Agreement.CONSISTENT,
    }
    upper = judge_upper(Mean(value, 0.02), 0.0, growing=True)
    assert judge_lower(Mean(value, 0.02), 0.0, growing=True) is swapped.get(upper, upper)
