"""The gallery of estimators."""

import pytest

from cloakwork.accuracy import cramer_rao
from papers import Result, find
from papers.experiments import estimators
from papers.experiments.estimators import (
    Gallery,
    Method,
    draws_of,
)
from papers.trials import Setting, Strengths
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("estimators")


def gallery_of(result: Result) -> Gallery:
    assert isinstance(result.finding, Gallery)
    return result.finding


def test_the_limit_is_that_of_a_lone_unit_source(result: Result) -> None:
    limits = [case.limit for case in gallery_of(result).cases]
    assert [limit is None for limit in limits] == [False, True, True, True, True, True]
    assert limits[0] is not None
    along, sigma = Setting().line.space.places[:, 0], Setting().cloak().sigma
    everywhere = [cramer_rao(Setting().line, [float(x)], sigma).expected_emd for x in along]
    assert min(everywhere) <= limits[0] <= max(everywhere)


def test_nobody_does_better_than_who_knows_everything_but_the_places() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimators, "QUICK", draws_of(60, (2, 2), (60, 2)))
        patch.setattr(estimators, "COUNTS", (2,))
        case = gallery_of(find("estimators").run(quick=True)).part(Strengths.UNIT)[0]
    told = case.of(Method.TOLD).distance.value
    assert case.told.value > 1 - 3 * case.told.error
    assert all(case.of(method).distance.value > told for method in (Method.PAPERS, Method.PURSUIT, Method.BREGMAN))
