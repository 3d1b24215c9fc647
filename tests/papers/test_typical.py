"""Single maps as the papers show them."""

import pytest

from papers import Result
from papers.experiments.typical import NEIGHBOURS, SCENES, Typical
from papers.trials import Method
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("typical")


@pytest.fixture(scope="module")
def finding(result: Result) -> Typical:
    assert isinstance(result.finding, Typical)
    return result.finding


def test_scenes_are_those_of_the_captions() -> None:
    parameters = [(scene.setting.n, scene.setting.m, scene.setting.T, scene.setting.sigma) for scene in SCENES]
    assert parameters == [(100, 50, 0.05, 0.1), (100, 50, 0.5, 0.5), (100, 50, 0.05, 0.1), (100, 50, 0.05, 0.1)]
    assert SCENES[0].setting.at == (0.24, 0.76)


def test_close_sources_are_put_in_the_middle_by_pursuit_alone(finding: Typical) -> None:
    close = finding.of(NEIGHBOURS)
    assert close.of(Method.PAPERS).central.value > 0.8
    assert close.of(Method.POSTERIOR).emd.value < 0.6 * close.of(Method.PAPERS).emd.value
