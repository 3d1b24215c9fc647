"""Private recovery in places, sensors, time and epsilon."""

import pytest

from papers import Result
from papers.experiments.private_recovery import AXES, Private
from papers.trials import Method, Place
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("private-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Private:
    assert isinstance(result.finding, Private)
    return result.finding


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[3]) for axis in AXES]
    assert [(one.n, one.m, one.T, one.epsilon, one.delta, one.sigma) for one in usual] == [
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.014, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
    ]


def test_the_papers_have_more_noise_at_the_same_privacy(finding: Private) -> None:
    point = finding.of(Place.ANYWHERE, "epsilon").at(1.0)
    papers, pursuit, ours = (point.of(method) for method in Method)
    assert papers.sigma > 4.5 * ours.sigma
    assert pursuit.sigma == ours.sigma
    assert papers.emd.value > 4 * ours.emd.value


def test_the_limit_with_the_papers_noise_is_as_many_times_larger_as_the_noise(finding: Private) -> None:
    for place in Place:
        for point in finding.of(place, "epsilon").points:
            assert point.limit is not None
            assert point.papers_limit is not None
            sigmas = [point.of(method).sigma for method in (Method.PAPERS, Method.POSTERIOR)]
            assert point.papers_limit / point.limit == pytest.approx(sigmas[0] / sigmas[1])
