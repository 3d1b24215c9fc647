"""People in infrared pictures."""

import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.lab import Result, find, read_result
from cloakwork.lab.bodies import BLOCK, COLUMNS, MARGIN, ROWS, Body, Trial, blocks, bumps, fit, heights
from cloakwork.lab.experiments import infrared
from cloakwork.lab.experiments.infrared import STANDARD, WITHIN, Cloaked, Method, Score, shares
from cloakwork.lab.recorded import INFRARED
from cloakwork.lab.trials import Mean
from cloakwork.privacy import Cloak

AT = np.array([[5.0, 6.0], [24.5, 18.0]])


def picture(people: FloatArray, height: float) -> FloatArray:
    """Pixels of round bumps of 2.5 pixels on a floor of 40."""
    y, x = np.mgrid[0.5:ROWS, 0.5:COLUMNS]
    away = [(x - a) ** 2 + (y - b) ** 2 for a, b in people]
    return np.asarray(40 + height * np.exp(-np.array(away) / (2 * 2.5**2)).sum(axis=0))


def stored(folder: Path) -> None:
    rng = np.random.default_rng(1)
    people = rng.uniform((4, 4), (28, 20), (12, 2, 2))
    frames = np.array([picture(one, 150.0) for one in people]) + rng.normal(0, 60, (12, ROWS, COLUMNS))
    (folder / INFRARED).parent.mkdir()
    np.savez(folder / INFRARED, frames=frames, people_xy_px=people)


def run_small() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(infrared, "QUICK_MADE_UP", 3)
        patch.setattr(infrared, "QUICK_STRIDE", 2)
        return find("infrared").run(quick=True)


@pytest.fixture(scope="module")
def without_data() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLOAKWORK_DATA", raising=False)
        return run_small()


@pytest.fixture(scope="module")
def with_data(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("data")
    stored(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKWORK_DATA", str(folder))
        return run_small()


def cloaked_of(result: Result) -> Cloaked:
    assert isinstance(result.finding, Cloaked)
    return result.finding


def test_without_data_it_says_what_is_missing_and_does_not_fail(without_data: Result, tmp_path: Path) -> None:
    found = cloaked_of(without_data)
    assert found.frames == 0
    assert "thermo_presence/ir38.npz" in found.tables()[0].rows[0][1]
    assert "PUTvision/thermo-presence" in found.words()[0]
    assert found.goals() == ()
    without_data.draw(tmp_path / "missing.png")
    assert (tmp_path / "missing.png").stat().st_size > 5_000
    assert read_result(json.dumps(without_data.to_json(), allow_nan=False)) == without_data


def test_what_is_measured_without_data_is_measured_with_data_too(with_data: Result, without_data: Result) -> None:
    few = {one.name: one.value for one in cloaked_of(without_data).measures()}
    many = {one.name: one.value for one in cloaked_of(with_data).measures()}
    assert few
    assert few == {name: many[name] for name in few}
    assert len(many) > len(few)


def test_json_round_trip_tables_and_picture(with_data: Result, tmp_path: Path) -> None:
    text = json.dumps(with_data.to_json(), allow_nan=False)
    assert read_result(text) == with_data
    with_data.draw(tmp_path / "infrared.png")
    assert (tmp_path / "infrared.png").stat().st_size > 20_000
    for table in with_data.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_same_seed_gives_the_same_numbers(without_data: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOAKWORK_DATA", raising=False)
    assert run_small() == without_data


def test_people_are_found_where_the_model_is_right(with_data: Result) -> None:
    found = cloaked_of(with_data)
    assert found.people == 2 * found.frames == 4
    assert found.stronger == 0
    assert found.of(Method.CLEAR).near.value == 1.0
    assert found.of(Method.GUESS).near.value < 0.2
    assert found.of(Method.OURS, 16.0).near.value > found.of(Method.PAPERS, 16.0).near.value


def test_blocks_are_means_of_their_pixels() -> None:
    frames = np.arange(2 * ROWS * COLUMNS, dtype=np.float64).reshape(2, ROWS, COLUMNS)
    found = blocks(frames)
    assert found.shape == (2, ROWS * COLUMNS // BLOCK**2)
    assert found[0, 0] == frames[0, :BLOCK, :BLOCK].mean()
    assert found[1, 1] == frames[1, :BLOCK, BLOCK : 2 * BLOCK].mean()


def test_a_known_body_is_found_again() -> None:
    readings = blocks(np.array([picture(AT, 100.0), picture(AT[::-1] + 2, 200.0)]))
    body = fit(readings, [AT, AT[::-1] + 2])
    assert body.width == pytest.approx(2.55, abs=0.1)  # a block is a little wider than a pixel
    assert body.height == pytest.approx(MARGIN * 200, rel=0.08)
    assert body.weakest == pytest.approx(100, rel=0.08)
    assert body.floor == pytest.approx(40, abs=1)
    assert body.misfit < 1
    assert heights(readings[0], AT, body.width)[:2] == pytest.approx([100, 100], rel=0.08)


def test_the_camera_sees_a_body_of_the_greatest_height_as_a_unit_source() -> None:
    camera = STANDARD.camera
    assert (camera.sensors, camera.places) == (192, 768)
    place = camera.space.index((5.5, 7.5))
    wanted = STANDARD.height * bumps(np.array([[5.5, 7.5]]), STANDARD.width)[:, 0]
    assert camera.matrix[:, place] == pytest.approx(wanted)


def test_no_step_from_pixel_to_pixel_moves_the_readings_by_more_than_the_claim_covers() -> None:
    camera = STANDARD.camera
    cloak = Cloak(camera, epsilon=16.0, delta=1e-5, alpha=1.0)
    steps = camera.matrix[:, camera.space.pairs[:, 0]] - camera.matrix[:, camera.space.pairs[:, 1]]
    largest = float(np.linalg.norm(steps, axis=0).max())
    assert largest <= cloak.sensitivity <= largest * (1 + 1e-6)
    rng = np.random.default_rng(1)
    for _ in range(50):
        i, j = rng.integers(0, camera.places, 2)
        far = float(np.linalg.norm(camera.matrix[:, i] - camera.matrix[:, j]))
        assert far <= cloak.sensitivity * float(camera.space.distances(int(i))[j]) * (1 + 1e-9)


def test_everyone_needs_a_position_of_their_own() -> None:
    people = [np.array([[5.0, 5.0], [6.0, 5.0], [20.0, 20.0]])]
    one = shares(people, [[(5.5, 5.0)]])
    assert [round(3 * mean.value) for mean in one] == [1] * len(WITHIN)
    three = shares(people, [[(5.5, 5.0), (5.5, 5.0), (20.0, 23.5)]])
    assert [round(3 * mean.value) for mean in three] == [2, 2, 2, 3, 3]
    assert shares(people, [[]])[0].value == 0
    assert shares(people, [[]])[0].error > 0


def test_a_wide_reach_never_finds_fewer() -> None:
    rng = np.random.default_rng(1)
    people = [rng.uniform(0, 20, (4, 2)) for _ in range(20)]
    found = [[(float(x), float(y)) for x, y in rng.uniform(0, 20, (4, 2))] for _ in range(20)]
    values = [mean.value for mean in shares(people, found)]
    assert values == sorted(values)


def test_counts_may_differ_from_picture_to_picture() -> None:
    people = (AT, AT[:1], AT)
    readings = np.array([bumps(at, STANDARD.width).sum(axis=1) * 200 for at in people])
    trial = Trial(STANDARD, STANDARD.camera, readings, people)
    found = trial.found(readings, 40.0, pursuit=False)
    assert [len(one) for one in found] == [2, 1, 2]
    assert shares(people, found)[1].value == 1.0


def test_the_goal_needs_to_be_ahead_everywhere() -> None:
    def score(method: Method, epsilon: float | None, value: float) -> Score:
        return Score(method, epsilon, (Mean(value, 0.01),) * len(WITHIN))

    def found(ours: float) -> Cloaked:
        scores = (
            score(Method.CLEAR, None, 0.9),
            score(Method.GUESS, None, 0.1),
            score(Method.OURS, 2.0, ours),
            score(Method.PAPERS, 2.0, 0.2),
            score(Method.OURS, 16.0, 0.8),
            score(Method.PAPERS, 16.0, 0.3),
        )
        made_up = (score(Method.OURS, 16.0, 0.9), score(Method.PAPERS, 16.0, 0.1))
        return Cloaked(5, made_up, 20, 1, Body(2.4, 250.0, 50.0, 40.0, 20.0), scores)

    assert found(0.3).goals()[0].met
    assert not found(0.1).goals()[0].met
    assert "1 of the 20" in found(0.3).words()[0]
    assert "finds 30 %, at 16 80 %" in found(0.3).words()[1]
