"""Many sources, and how many sensors they need."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from papers import Agreement, Result
from papers.experiments import many_sources
from papers.experiments.many_sources import (
    MANY,
    OURS,
    QUICK_MANY,
    QUICK_OURS,
    QUICK_SENSOR_OURS,
    QUICK_SENSORS,
    SENSOR_OURS,
    SENSORS,
    ManySources,
    Sensors,
    over_guess,
)
from papers.statistics import Mean
from papers.sweeps import Point, Sweep
from papers.trials import Method, Score, Setting
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("many-sources")


@pytest.fixture(scope="module")
def finding(result: Result) -> ManySources:
    assert isinstance(result.finding, ManySources)
    return result.finding


def point(x: float, emd: float, *, guess: float = 1.0, l1: float = 1.5, error: float = 1e-4) -> Point:
    scores = tuple(
        Score(one, 100, 0.1, Mean(emd, error), Mean(l1, error), Mean(1.0, error), 0.0, 0.0) for one in Method
    )
    return Point(x, scores, guess / 2, None, guess)


def made_up(
    emds: Sequence[float] = (0.05, 0.1, 0.06),
    guesses: Sequence[float] = (0.5, 0.25, 0.15),
    l1: float = 1.5,
    needed: Sequence[int] = (4, 4, 4),
) -> ManySources:
    errors = [point(x, emd, guess=guess, l1=l1) for x, emd, guess in zip((1, 4, 20), emds, guesses, strict=True)]
    sensors = [
        Sensors(count, Sweep("m", tuple(point(m, 0.1 if m >= enough else 0.3) for m in SENSORS)))
        for count, enough in zip((1, 2, 8), needed, strict=True)
    ]
    return ManySources(Sweep("k", tuple(errors)), tuple(sensors))


def verdicts(finding: ManySources) -> list[Agreement]:
    return [claim.verdict for claim in finding.claims()]


def test_enough_is_where_the_error_no_longer_falls() -> None:
    finding = made_up(needed=(4, 4, 10))
    assert [one.enough(Method.PAPERS) for one in finding.sensors] == [4, 4, 10]


def test_a_point_above_within_its_error_is_still_enough() -> None:
    errors = {2: 0.01, 10: 0.02, 50: 0.0001}
    sweep = Sweep("m", tuple(point(m, 0.1 if m == 50 else 0.15, error=error) for m, error in errors.items()))
    assert Sensors(1, sweep).enough(Method.PAPERS) == 10


def test_a_dip_before_the_last_rise_is_not_enough() -> None:
    sweep = Sweep("m", tuple(point(m, emd) for m, emd in ((2, 0.1), (4, 0.3), (10, 0.1), (50, 0.1))))
    assert Sensors(1, sweep).enough(Method.PURSUIT) == 10


def test_what_is_no_nearer_than_half_of_a_guess_is_never_enough() -> None:
    sweep = Sweep("m", tuple(point(m, 0.1, guess=0.19) for m in (2, 10, 50)))
    assert Sensors(1, sweep).enough(Method.PAPERS) is None
    finding = replace(made_up(), sensors=(Sensors(1, made_up().sensors[0].sweep), Sensors(8, sweep)))
    assert finding.grows(Method.PAPERS)
    claim = finding.claims()[3]
    assert claim.verdict is Agreement.WRONG
    assert "4, none" in claim.found


def test_one_step_of_the_sensors_tried_is_no_growth() -> None:
    assert [made_up(needed=(4, 4, m)).grows(Method.PAPERS) for m in (3, 4, 5, 7)] == [False, False, False, True]


def test_claims_that_hold_and_one_that_does_not() -> None:
    assert verdicts(made_up()) == [Agreement.AGREES, Agreement.AGREES, Agreement.WRONG, Agreement.AGREES]


def test_verdicts_follow_the_numbers() -> None:
    assert verdicts(made_up(l1=0.5))[0] is Agreement.WRONG
    assert verdicts(made_up(guesses=(0.5, 0.25, 0.11)))[0] is Agreement.WRONG
    assert verdicts(made_up(emds=(0.05, 0.1, 0.12)))[1] is Agreement.WRONG
    assert verdicts(made_up(emds=(0.12, 0.1, 0.06)))[1] is Agreement.WRONG
    assert verdicts(made_up(guesses=(0.5, 0.9, 0.9)))[2] is Agreement.AGREES
    assert verdicts(made_up(needed=(3, 4, 20)))[3] is Agreement.WRONG


def test_for_which_numbers_r_is_near_is_said() -> None:
    found = made_up(guesses=(0.5, 0.25, 0.05)).claims()[0].found
    assert "1, 4 sources, of 1 to 20 tried" in found


def test_where_a_guess_is_better_is_said() -> None:
    far, near = made_up(guesses=(0.5, 0.2, 0.05)), made_up()
    assert far.lost == 20
    assert near.lost is None
    assert "from 20 sources on" in far.claims()[2].found
    assert "sources on" not in near.claims()[2].found


def test_limits_are_below_the_guess_and_grow_into_it(finding: ManySources) -> None:
    shares = [(point.limit or 0) / point.guess for point in finding.errors.points]
    assert shares[0] < 0.1
    assert max(shares) <= 1 + 1e-9
    assert shares[-1] > 0.9


def test_the_posterior_is_tried_with_few_sources_only(finding: ManySources) -> None:
    assert [point.x for point in finding.errors.of(Method.POSTERIOR)] == [1, 4]
    assert [point.x for point in finding.errors.of(Method.PAPERS)] == [1, 4, 20]


def test_a_small_run_measures_what_a_full_one_does() -> None:
    assert set(QUICK_MANY) <= set(MANY)
    assert set(QUICK_OURS) <= set(OURS) <= set(MANY)
    assert set(QUICK_SENSORS) <= set(SENSORS)
    assert set(QUICK_SENSOR_OURS) <= set(SENSOR_OURS)
    assert max(OURS) < many_sources.MOST


def test_the_guess_comes_nearer_as_sources_become_more(finding: ManySources) -> None:
    guesses = [point.guess for point in finding.errors.points]
    assert guesses == sorted(guesses, reverse=True)
    # a lone source at place i of n: the mean distance to all places
    n = Setting().n
    exact = sum(abs(i - j) for i in range(n) for j in range(n)) / n**3
    assert guesses[0] == pytest.approx(exact, abs=0.08)


def test_as_a_share_of_the_guess_the_papers_get_worse(finding: ManySources) -> None:
    shares = [over_guess(point) for point in finding.errors.points]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] > 1
