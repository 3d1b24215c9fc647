"""How simulated people move."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cloakwork.demo import load_flat
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Rooms
from papers.recordings import POSITIONS, data_file, missing_text
from papers.walks import Movement, recorded, staying, walking

HEADER = "day,seq,frame,n_people,x_px,y_px\n"
MOST = 4


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    flat = load_flat().physics
    assert isinstance(flat, FloorPlan)
    return flat.rooms


def written(folder: Path, rows: str, header: str = HEADER) -> Path:
    path = folder / "positions.csv"
    path.write_text(header + rows, encoding="utf-8")
    return path


def test_the_real_recording_has_people_on_the_floor_who_move(rooms: Rooms) -> None:
    path = data_file(POSITIONS)
    if path is None:
        pytest.skip(missing_text(POSITIONS))
    movement = recorded(path, rooms, most=MOST)
    assert len(movement.frames) > 400
    assert {len(frame) for frame in movement.frames} == {2, 3, 4}
    assert all(rooms.cell_at(*at) >= 0 for frame in movement.frames for at in frame)
    assert len({rooms.cell_at(*at) for frame in movement.frames for at in frame}) > 100
    assert movement.origin == "as recorded in an office (2021-03-31 007__11_48_59)"


def test_pixels_are_laid_over_the_whole_floor(rooms: Rooms, tmp_path: Path) -> None:
    path = written(tmp_path, "d,s,0,3,0,24\nd,s,0,3,32,0\nd,s,0,3,8,6\n")
    assert recorded(path, rooms, most=MOST).frames == (((0.0, 0.0), (10.0, 8.0), (2.5, 6.0)),)


def test_a_pixel_over_no_room_goes_to_the_nearest_cell(tmp_path: Path) -> None:
    rooms = Rooms.from_text("....\n#...\n", cell=1.0)
    path = written(tmp_path, "d,s,0,1,2,15\n")
    assert recorded(path, rooms, most=MOST).frames == (((0.5, 1.5),),)


def test_the_recording_with_most_movement_is_taken(rooms: Rooms, tmp_path: Path) -> None:
    still = "".join(f"d,still,{k},1,5,5\n" for k in range(5))
    lively = "".join(f"d,lively,{k},1,{5 * k},5\n" for k in range(5))
    crowd = "".join(f"d,crowd,{k},2,{6 * k},5\nd,crowd,{k},2,5,{5 * k}\n" for k in range(5))
    empty = "".join(f"d,empty,{k},1,{6 * k},5\n" for k in range(5)) + "d,empty,5,0,,\n"
    path = written(tmp_path, still + lively + crowd + empty)
    assert recorded(path, rooms, most=1).origin.endswith("(d lively)")
    assert recorded(path, rooms, most=2).origin.endswith("(d crowd)")


@pytest.mark.parametrize("rows", ["", "d,s,0,0,,\n"])
def test_a_file_without_a_suitable_recording_is_refused(rows: str, rooms: Rooms, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        recorded(written(tmp_path, rows), rooms, most=MOST)
    assert refused.value.values["most"] == MOST


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("d,s,0,1,5,5\nd,s,1,1,x,5\n", 3),
        ("d,s,0,1,5\n", 2),
        ("d,s,zero,1,5,5\n", 2),
        ("d,s,0,1,nan,5\n", 2),
        ("d,s,0,1,5,24.5\n", 2),
        ("d,s,0,2,5,5\nd,s,1,1,5,5\n", 3),
        ("d,s,0,2,5,5\n", 3),
        ("d,s,0,1,5,5\nd,s,0,1,6,5\n", 4),
    ],
)
def test_a_malformed_file_is_refused_with_the_line(rows: str, line: int, rooms: Rooms, tmp_path: Path) -> None:
    path = written(tmp_path, rows)
    with pytest.raises(InputError) as refused:
        recorded(path, rooms, most=MOST)
    assert refused.value.values["line"] == line
    assert str(path) in str(refused.value)


def test_another_kind_of_file_is_refused(rooms: Rooms, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="day,seq,frame,n_people,x_px,y_px"):
        recorded(written(tmp_path, "1,2\n", header="a,b\n"), rooms, most=MOST)
    (tmp_path / "bytes").write_bytes(HEADER.encode() + b"\xff\xfe\n")
    with pytest.raises(InputError, match="UTF-8"):
        recorded(tmp_path / "bytes", rooms, most=MOST)
    with pytest.raises(InputError, match="No such file"):
        recorded(tmp_path / "nowhere", rooms, most=MOST)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_walkers_never_cross_walls(seed: int, rooms: Rooms) -> None:
    movement = walking(rooms, people=2, minutes=5, seed=seed)
    beside = {cell: {cell} for cell in range(len(rooms.space))}
    for a, b in rooms.pairs.tolist():
        beside[a].add(b)
        beside[b].add(a)
    for before, after in pairwise([*movement.frames, movement.frames[0]]):
        for start, end in zip(before, after, strict=True):
            ways = [np.linspace(p, q, 9) for p, q in zip(start, end, strict=True)]
            passed = [rooms.cell_at(float(x), float(y)) for x, y in zip(*ways, strict=True)]
            # a corner may be cut by less than a cell: then both cells have an open neighbour in common
            assert all(b in beside[a] or beside[a] & beside[b] - {a, b} for a, b in pairwise(passed))
            assert np.hypot(end[0] - start[0], end[1] - start[1]) <= 0.5


def test_walkers_come_into_every_room(rooms: Rooms) -> None:
    places = {at for frame in walking(rooms).frames for at in frame}
    inside = [any(x < 6 for x, _ in places), any(x > 6 and y > 4 for x, y in places)]
    assert [*inside, any(x > 6 and y < 4 for x, y in places)] == [True, True, True]


def test_the_same_seed_walks_the_same_way(rooms: Rooms) -> None:
    first, again, other = (walking(rooms, minutes=1, seed=seed) for seed in (4, 4, 5))
    assert first == again != other


def test_a_movement_begins_again_when_it_ends() -> None:
    movement = Movement((((0.0, 0.0),), ((1.0, 0.0),)), "to and fro", frame_ms=100)
    assert [movement.at(time)[0][0] for time in (0, 99, 100, 199, 200, 1_000_300)] == [0, 0, 1, 1, 0, 1]
    assert staying([(1.0, 2.0)]).at(123_456) == ((1.0, 2.0),)
    with pytest.raises(InputError) as refused:
        Movement((), "nothing")
    assert refused.value.values["frames"] == 0
