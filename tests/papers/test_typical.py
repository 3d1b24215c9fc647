"""Single maps as the papers show them."""

from dataclasses import replace

import numpy as np
import pytest

from papers import Agreement, Result
from papers.experiment import stream
from papers.experiments.typical import LATE, NEIGHBOURS, SCENES, Look, Scene, Seen, Typical, try_scene
from papers.statistics import Mean
from papers.trials import PLACES, Distances, Method, Setting, try_method
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("typical")


@pytest.fixture(scope="module")
def finding(result: Result) -> Typical:
    assert isinstance(result.finding, Typical)
    return result.finding


def made_up(
    finding: Typical,
    name: str,
    *,
    near: float = 0.8,
    anywhere: float = 0.8,
    l1: float = 1.8,
    central: float = 0.9,
) -> Typical:
    """The same, but with other numbers in one scene."""

    def changed(look: Look) -> Look:
        return replace(look, l1=Mean(l1, 0.001), central=Mean(central, 0.01))

    def of(seen: Seen) -> Seen:
        looks = tuple(changed(look) for look in seen.looks)
        return replace(seen, near=Mean(near, 0.01), anywhere=Mean(anywhere, 0.01), looks=looks)

    return replace(finding, scenes=tuple(of(seen) if seen.name == name else seen for seen in finding.scenes))


def test_scenes_are_those_of_the_captions() -> None:
    parameters = [(scene.setting.n, scene.setting.m, scene.setting.T, scene.setting.sigma) for scene in SCENES]
    assert parameters == [(100, 50, 0.05, 0.1), (100, 50, 0.5, 0.5), (100, 50, 0.05, 0.1), (100, 50, 0.05, 0.1)]
    assert SCENES[0].setting.at == (0.24, 0.76)


def test_the_frame_shown_is_the_median_one() -> None:
    scene, trials, key = SCENES[0], 11, (5, 0)
    seen = try_scene(scene, trials, 20, key)
    setting = scene.setting
    truth = setting.truth(trials, stream(*key, PLACES))
    errors = try_method(setting, Method.PAPERS, truth, key).distances.emd
    assert seen.of(Method.PAPERS).shown_emd == pytest.approx(np.median(errors))
    assert seen.of(Method.PAPERS).emd.value == pytest.approx(errors.mean())


def test_maps_have_a_total_of_one(finding: Typical) -> None:
    for seen in finding.scenes:
        for look in seen.looks:
            assert sum(one.weight for one in look.map) == pytest.approx(1.0, abs=0.02)
            assert all(0 < one.at <= 1 for one in look.map)


def test_what_is_shown_of_a_map_gives_its_distance_again(finding: Typical) -> None:
    for seen in finding.scenes:
        setting = seen.scene.setting
        truth = setting.truth(1, stream(1))
        for look in seen.looks:
            maps = np.zeros((1, setting.n))
            for one in look.map:
                maps[0, round(one.at * setting.n) - 1] = one.weight
            assert Distances.between(truth, maps).emd[0] == pytest.approx(look.shown_emd, abs=0.01)


def test_central_is_the_middle_half_of_the_way() -> None:
    scene = Scene("made up", "nowhere", Setting(n=20, m=10, sigma=1e-3, at=(0.25, 0.75)))
    seen = try_scene(scene, 2, 20, (1,))
    assert seen.of(Method.POSTERIOR).central.value == pytest.approx(0.0, abs=0.02)


def test_close_sources_are_put_in_the_middle_by_pursuit_alone(finding: Typical) -> None:
    close = finding.of(NEIGHBOURS)
    assert close.of(Method.PAPERS).central.value > 0.8
    assert close.of(Method.POSTERIOR).emd.value < 0.6 * close.of(Method.PAPERS).emd.value


def test_norms_are_judged_by_how_often_r_is_near(finding: Typical) -> None:
    shares = {0.6: Agreement.AGREES, 0.51: Agreement.UNDECIDED, 0.4: Agreement.WRONG}
    for near, verdict in shares.items():
        assert made_up(finding, SCENES[0].name, near=near).claims()[0].verdict is verdict
        assert made_up(finding, LATE, near=near).claims()[1].verdict is verdict
    assert made_up(finding, SCENES[0].name, l1=0.9).claims()[0].verdict is Agreement.WRONG


def test_a_place_that_is_ours_is_said_with_what_others_give(finding: Typical) -> None:
    same, other = (made_up(finding, LATE, near=0.4, anywhere=share).claims()[1].found for share in (0.3, 0.7))
    assert "at random ones it is 30 %" in same
    assert "verdict" not in same
    assert other.endswith(f"the verdict would be: {Agreement.AGREES}")
    assert "at random" not in finding.claims()[0].found


def test_limits_are_those_of_the_sources(finding: Typical) -> None:
    limits = [seen.limit for seen in finding.scenes]
    assert limits == pytest.approx([0.0075, 0.527, 0.0161, 0.0065], rel=0.02)


def test_the_middle_is_judged_by_the_numbers(finding: Typical) -> None:
    assert made_up(finding, NEIGHBOURS, central=0.6).claims()[2].verdict is Agreement.AGREES
    assert made_up(finding, NEIGHBOURS, central=0.51).claims()[2].verdict is Agreement.WRONG
