"""The recordings: complete, with licence and source, read whole or refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from cloakwork.errors import InputError
from papers import EXPERIMENTS
from papers.recordings import FOLDER, LICENCES, data_file, read_infrared, titles


def stored(folder: Path, frames: ArrayLike, people: ArrayLike | None = None) -> Path:
    path = folder / "frames.npz"
    if people is None:
        np.savez(path, frames=frames)
    else:
        np.savez(path, frames=frames, people_xy_px=people)
    return path


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


def test_frames_come_with_the_people_who_are_there(tmp_path: Path) -> None:
    frames = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    labels = [[[1.0, 2.0], [np.nan, np.nan]], [[3.0, 1.0], [0.5, 0.5]]]
    found = read_infrared(stored(tmp_path, frames, labels))
    assert len(found) == 2
    assert found.frames.dtype == np.float64
    assert (found.frames == frames).all()
    assert [people.tolist() for people in found.people] == [[[1.0, 2.0]], [[3.0, 1.0], [0.5, 0.5]]]


@pytest.mark.parametrize(
    ("frames", "labels"),
    [((0, 2, 2), (0, 1, 2)), ((3, 2), (3, 1, 2)), ((3, 2, 2), (2, 1, 2)), ((3, 2, 2), (3, 2)), ((3, 2, 2), (3, 1, 3))],
)
def test_frames_without_fitting_labels_are_refused(
    frames: tuple[int, ...], labels: tuple[int, ...], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="do not fit"):
        read_infrared(stored(tmp_path, np.zeros(frames), np.zeros(labels)))
