"""The recordings: complete, with licence and source, read whole or refused."""

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from papers.experiments import EXPERIMENTS
from papers.recordings import FOLDER, LICENCES, PIXELS, data_file, read_infrared, read_positions, titles
from papers.recordings.radio import MapError
from papers.rows import Mean


def test_each_folder_says_its_title_source_licence_and_changes() -> None:
    assert set(LICENCES) == {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert all(titles().values())
    for name, licence in LICENCES.items():
        text = (FOLDER / name / "README.md").read_text(encoding="utf-8")
        assert f"Licence: {licence}" in text, name
        assert "Source: " in text, name
        assert "Changes: " in text, name
        files = [path.name for path in (FOLDER / name).iterdir() if path.name != "README.md"]
        assert all(file in text for file in files), name


def test_the_experiments_use_files_that_are_there() -> None:
    for experiment in EXPERIMENTS.values():
        assert all(data_file(name).is_file() for name in experiment.data)


def test_misses_of_few_areas_have_wide_errors_that_hardly_share_anything() -> None:
    rng = np.random.default_rng(1)
    area = np.repeat(np.arange(400), 5)
    misses = rng.multivariate_normal([0, 0], [[4.0, 3.0], [3.0, 9.0]], 400)[area]

    def covariance(areas: int) -> FloatArray:
        found = MapError.of(misses[: 5 * areas], area[: 5 * areas])
        return np.asarray(np.diag(found.white**2) + found.error.factor @ found.error.factor.T)

    assert covariance(400) == pytest.approx(np.array([[4.0, 3.0], [3.0, 9.0]]), rel=0.2)
    few = covariance(4)
    assert np.diag(few) == pytest.approx(2.5 * (misses[:20] ** 2).mean(axis=0))
    real = abs((misses[:20, 0] * misses[:20, 1]).mean()) / np.sqrt((misses[:20] ** 2).mean(axis=0).prod())
    assert abs(few[0, 1]) < real * np.sqrt(few[0, 0] * few[1, 1])


def test_an_error_over_groups_does_not_shrink_when_each_value_is_repeated() -> None:
    values, group = np.array([1.0, 2.0, 4.0, 7.0]), np.arange(4)
    assert Mean.over(values, group) == Mean.of(values)
    assert Mean.over(values.repeat(9), group.repeat(9)).error == pytest.approx(Mean.of(values).error)


def test_frames_and_positions_come_with_the_people_who_are_there() -> None:
    pictures = read_infrared()
    assert pictures.frames.shape == (len(pictures.people), 24, 32)
    assert {len(people) for people in pictures.people} == {3, 4}
    positions = [at for frames in read_positions().values() for frame in frames for at in frame]
    for people in (np.concatenate(pictures.people), np.array(positions)):
        assert (people >= 0).all()
        assert (people <= PIXELS).all()
