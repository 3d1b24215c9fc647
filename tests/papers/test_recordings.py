"""The recordings: found through the environment, read whole or refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from cloakwork.errors import InputError
from papers.recordings import INFRARED, POSITIONS, data_file, missing_text, read_infrared


def stored(folder: Path, frames: ArrayLike, people: ArrayLike | None = None) -> Path:
    path = folder / "frames.npz"
    if people is None:
        np.savez(path, frames=frames)
    else:
        np.savez(path, frames=frames, people_xy_px=people)
    return path


def test_a_file_is_looked_for_in_the_folder_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOAKWORK_DATA", raising=False)
    assert data_file(POSITIONS) is None
    monkeypatch.setenv("CLOAKWORK_DATA", str(tmp_path))
    assert data_file(POSITIONS) is None
    (tmp_path / POSITIONS).parent.mkdir()
    (tmp_path / POSITIONS).write_text("")
    assert data_file(POSITIONS) == tmp_path / POSITIONS
    assert data_file(INFRARED) is None
    assert "thermo_presence/ir38.npz" in missing_text(INFRARED)
    assert "PUTvision/thermo-presence" in missing_text(INFRARED)


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
