"""The recordings: found through the environment, read whole or refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from cloakwork.errors import InputError
from papers.recordings import INFRARED, POSITIONS, data_file, missing_text, read_infrared, read_positions


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


def test_positions_keep_their_recording_and_their_frame(tmp_path: Path) -> None:
    path = tmp_path / "positions.csv"
    rows = "d,one,0,2,1,2\nd,one,0,2,3,4\nd,one,1,0,,\nd,two,0,1,5,6\n"
    path.write_text("day,seq,frame,n_people,x_px,y_px\n" + rows, encoding="utf-8")
    found = read_positions(path)
    assert found == {"d one": (((1.0, 2.0), (3.0, 4.0)), ()), "d two": (((5.0, 6.0),),)}


def test_frames_come_with_the_people_who_are_there(tmp_path: Path) -> None:
    frames = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    labels = [[[1.0, 2.0], [np.nan, np.nan]], [[3.0, 1.0], [0.5, 0.5]]]
    found = read_infrared(stored(tmp_path, frames, labels))
    assert len(found) == 2
    assert found.frames.dtype == np.float64
    assert (found.frames == frames).all()
    assert [people.tolist() for people in found.people] == [[[1.0, 2.0]], [[3.0, 1.0], [0.5, 0.5]]]


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_infrared(tmp_path / "nowhere.npz")
    with pytest.raises(InputError, match="not a NumPy archive"):
        read_infrared(stored(tmp_path, np.zeros((1, 2, 2))))
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InputError, match="not a NumPy archive"):
        read_infrared(tmp_path / "text.npz")


@pytest.mark.parametrize(
    ("frames", "labels"),
    [((0, 2, 2), (0, 1, 2)), ((3, 2), (3, 1, 2)), ((3, 2, 2), (2, 1, 2)), ((3, 2, 2), (3, 2)), ((3, 2, 2), (3, 1, 3))],
)
def test_frames_without_fitting_labels_are_refused(
    frames: tuple[int, ...], labels: tuple[int, ...], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="do not fit"):
        read_infrared(stored(tmp_path, np.zeros(frames), np.zeros(labels)))


def test_the_real_frames_can_be_read() -> None:
    path = data_file(INFRARED)
    if path is None:
        pytest.skip(missing_text(INFRARED))
    found = read_infrared(path)
    assert found.frames.shape == (38, 24, 32)
    assert {len(people) for people in found.people} == {3, 4}
    assert all((at >= 0).all() and (at <= (32, 24)).all() for at in found.people)
