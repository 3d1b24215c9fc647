"""How simulated people move."""

from itertools import pairwise

import numpy as np
import pytest

from cloakwork.demo import load_flat
from cloakwork.physics import FloorPlan, Rooms
from papers.followed_people import recorded, walking

MOST = 4


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    flat = load_flat().physics
    assert isinstance(flat, FloorPlan)
    return flat.rooms


def test_the_real_recording_has_people_on_the_floor_who_move(rooms: Rooms) -> None:
    movement = recorded(rooms, most=MOST)
    assert len(movement.frames) > 400
    assert {len(frame) for frame in movement.frames} == {2, 3, 4}
    assert all(rooms.cell_at(*at) >= 0 for frame in movement.frames for at in frame)
    assert len({rooms.cell_at(*at) for frame in movement.frames for at in frame}) > 100
    assert movement.origin == "as recorded in an office (2021-03-31 007__11_48_59)"


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
