"""Many sources, and how many sensors they need."""

import pytest

from papers import Result
from papers.experiments.many_sources import (
    ManySources,
)
from papers.statistics import Mean
from papers.sweeps import Point
from papers.trials import Method, Score
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


def test_limits_are_below_the_guess_and_grow_into_it(finding: ManySources) -> None:
    shares = [(point.limit or 0) / point.guess for point in finding.errors.points]
    assert shares[0] < 0.1
    assert max(shares) <= 1 + 1e-9
    assert shares[-1] > 0.9
