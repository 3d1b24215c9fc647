"""The gallery of estimators."""

from dataclasses import replace

import pytest

from cloakwork.accuracy import cramer_rao
from papers import Result, find
from papers.calibration import Calibration
from papers.experiments import estimators
from papers.experiments.estimators import (
    COUNTS,
    CRAMER_RAO,
    ENOUGH,
    FULL,
    Case,
    Gallery,
    Method,
    Score,
    draws_of,
)
from papers.statistics import Mean
from papers.trials import Setting, Strengths
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("estimators")


def gallery_of(result: Result) -> Gallery:
    assert isinstance(result.finding, Gallery)
    return result.finding


def made_up(posterior: float, papers: float, pursuit: float) -> Gallery:
    means = dict.fromkeys(Method, 0.5) | {
        Method.POSTERIOR: posterior,
        Method.PAPERS: papers,
        Method.PURSUIT: pursuit,
    }
    scores = tuple(Score(method, 200, Mean(mean, 0.01), 0.0, 1.0) for method, mean in means.items())
    better, told = Mean(papers / posterior, 0.1), Mean(posterior / 0.5, 0.01)
    cases = [
        Case(strengths, count, scores, 0.01 if count == 1 and strengths is Strengths.UNIT else None, 0.3, better, told)
        for strengths in Strengths
        for count in COUNTS
    ]
    return Gallery(tuple(cases))


def test_every_method_is_scored_on_every_case(result: Result) -> None:
    cases = gallery_of(result).cases
    assert [(case.strengths, case.count) for case in cases] == [(s, k) for s in Strengths for k in COUNTS]
    for case in cases:
        assert [score.method for score in case.scores] == list(Method)
        assert all(0 <= score.distance.value < 1 and score.milliseconds > 0 for score in case.scores)


def test_tables_have_a_row_for_each_method(result: Result) -> None:
    unit, free, ratios, costs = result.tables()
    assert [row[0] for row in unit.rows] == [*Method, CRAMER_RAO, "uniform map"]
    assert [row[0] for row in free.rows] == [*Method, "uniform map"]
    assert len(ratios.rows) == 6
    assert [row[0] for row in costs.rows] == list(Method)
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_limit_is_that_of_a_lone_unit_source(result: Result) -> None:
    limits = [case.limit for case in gallery_of(result).cases]
    assert [limit is None for limit in limits] == [False, True, True, True, True, True]
    assert limits[0] is not None
    along, sigma = Setting().line.space.places[:, 0], Setting().cloak().sigma
    everywhere = [cramer_rao(Setting().line, [float(x)], sigma).expected_emd for x in along]
    assert min(everywhere) <= limits[0] <= max(everywhere)


def test_only_the_papers_have_the_papers_noise() -> None:
    assert [method for method in Method if method.calibration is Calibration.PAPER] == [Method.PAPERS]
    assert Setting().cloak(Calibration.PAPER).sigma > 4 * Setting().cloak().sigma


def test_goals_are_judged_at_their_thresholds() -> None:
    assert all(goal.met for goal in made_up(0.0125, 0.0751, 0.0157).goals())
    missed = [goal.met for goal in made_up(0.0131, 0.0785, 0.0163).goals()]
    assert missed == [False, False, False, True, False, False, False]


def test_times_do_not_count_when_results_are_compared() -> None:
    score = Score(Method.PURSUIT, 200, Mean(0.1, 0.01), 0.0, 1.0)
    assert score == replace(score, milliseconds=2.0)
    assert score != replace(score, empty=0.1)


def test_fast_methods_get_many_draws_and_slow_ones_few() -> None:
    draws = draws_of(9, (3, 2), (5, 4))
    assert {draws[kind, Method.PURSUIT] for kind in Strengths} == {9}
    assert [draws[kind, Method.MIXTURE] for kind in Strengths] == [3, 2]
    assert [draws[kind, one] for kind in Strengths for one in (Method.POSTERIOR, Method.TOLD)] == [5, 5, 4, 4]
    assert min(FULL.values()) >= ENOUGH


def test_means_of_few_draws_are_not_compared(result: Result) -> None:
    assert gallery_of(result).measures() == ()
    names = [one.name for one in made_up(0.01, 0.08, 0.02).measures()]
    assert len(names) == 6 * (len(Method) + 2)
    assert "unknown, 3: papers/ours" in names


def test_nobody_does_better_than_who_knows_everything_but_the_places() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimators, "QUICK", draws_of(60, (2, 2), (60, 2)))
        patch.setattr(estimators, "COUNTS", (2,))
        case = gallery_of(find("estimators").run(quick=True)).part(Strengths.UNIT)[0]
    told = case.of(Method.TOLD).distance.value
    assert case.told.value > 1 - 3 * case.told.error
    assert all(case.of(method).distance.value > told for method in (Method.PAPERS, Method.PURSUIT, Method.BREGMAN))
