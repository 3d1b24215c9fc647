"""Single maps as the papers show them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cloakwork.lab import Agreement, Result, find, read_result
from cloakwork.lab.experiment import stream
from cloakwork.lab.experiments import typical
from cloakwork.lab.experiments.typical import CLOSE, LATE, SCENES, Look, Scene, Seen, Typical, look_at
from cloakwork.lab.trials import NOISE, Distances, Mean, Method, Setting


def run_small(seed: int = 1) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typical, "QUICK_TRIALS", 20)
        return find("typical").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


@pytest.fixture(scope="module")
def finding(result: Result) -> Typical:
    assert isinstance(result.finding, Typical)
    return result.finding


def made_up(finding: Typical, name: str, *, emd: float, l1: float = 1.8, between: float = 0.9) -> Typical:
    """The same, but with other means in one scene."""

    def changed(look: Look) -> Look:
        return replace(look, emd=Mean(emd, 0.001), l1=Mean(l1, 0.001), between=Mean(between, 0.01))

    scenes = [
        replace(seen, looks=tuple(changed(look) for look in seen.looks)) if seen.name == name else seen
        for seen in finding.scenes
    ]
    return replace(finding, scenes=tuple(scenes))


def test_scenes_are_those_of_the_captions() -> None:
    parameters = [(scene.setting.n, scene.setting.m, scene.setting.T, scene.setting.sigma) for scene in SCENES]
    assert parameters == [(100, 50, 0.05, 0.1), (100, 50, 0.5, 0.5), (100, 50, 0.05, 0.1), (100, 50, 0.05, 0.1)]
    assert SCENES[0].setting.at == (0.24, 0.76)


def test_the_frame_shown_is_the_median_one() -> None:
    scene, trials, key = SCENES[0], 11, (5, 0)
    seen = look_at(scene, trials, key)
    setting = scene.setting
    truth = setting.truth(trials, stream(*key))
    channel = setting.channel(Method.PAPERS.calibration)
    noisy = channel.send(setting.line.apply(truth), stream(*key, NOISE))
    maps = channel.recover(noisy, Method.PAPERS.estimator(4)).map
    errors = Distances.of(truth, maps).emd
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
            assert Distances.of(truth, maps).emd[0] == pytest.approx(look.shown_emd, abs=0.01)


def test_between_counts_what_lies_strictly_between() -> None:
    scene = Scene("made up", "nowhere", Setting(n=20, m=10, sigma=1e-3, at=(0.25, 0.75)))
    seen = look_at(scene, 4, (1,))
    assert seen.of(Method.POSTERIOR).between.value == pytest.approx(0.0, abs=0.02)


def test_close_sources_are_put_in_the_middle_by_pursuit_alone(finding: Typical) -> None:
    close = finding.of(CLOSE)
    assert close.of(Method.PAPERS).between.value > 0.8
    assert close.of(Method.POSTERIOR).emd.value < 0.6 * close.of(Method.PAPERS).emd.value


def test_norms_are_judged_by_the_numbers(finding: Typical) -> None:
    guess = finding.scenes[0].guess
    near, far = (made_up(finding, SCENES[0].name, emd=share * guess) for share in (0.49, 0.51))
    assert near.claims()[0].verdict is Agreement.AGREES
    assert far.claims()[0].verdict is Agreement.WRONG
    assert made_up(finding, SCENES[0].name, emd=0.01, l1=0.9).claims()[0].verdict is Agreement.WRONG
    assert made_up(finding, LATE, emd=0.01).claims()[1].verdict is Agreement.AGREES
    assert made_up(finding, LATE, emd=0.2).claims()[1].verdict is Agreement.WRONG


def test_the_middle_is_judged_by_the_numbers(finding: Typical) -> None:
    assert made_up(finding, CLOSE, emd=0.05, between=0.6).claims()[2].verdict is Agreement.AGREES
    assert made_up(finding, CLOSE, emd=0.05, between=0.51).claims()[2].verdict is Agreement.WRONG


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result
    assert run_small(seed=2) != result


def test_json_round_trip(result: Result) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    back = read_result(text)
    assert back == result
    assert isinstance(back.finding, Typical)
    assert isinstance(back.finding.scenes[0], Seen)
    assert len(text) < 50_000


def test_the_picture_tables_and_words_are_there(result: Result, tmp_path: Path) -> None:
    result.draw(tmp_path / "typical.png")
    assert (tmp_path / "typical.png").stat().st_size > 20_000
    (table,) = result.tables()
    assert len(table.rows) == 4 * 4
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert len(result.finding.words()) == 3


def test_measures_have_names_of_their_own(finding: Typical) -> None:
    names = [one.name for one in finding.measures()]
    assert len(names) == len(set(names)) == 36
