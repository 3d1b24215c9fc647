"""The geometry of a floor plan: drawings and lists of walls."""

from typing import Any

import pytest

from cloakwork.errors import PhysicsError
from cloakwork.physics import Rooms


def ways(rooms: Rooms) -> set[frozenset[tuple[float, float]]]:
    """The ways between cells, by the positions of the cells."""
    places = [(round(float(x), 9), round(float(y), 9)) for x, y in rooms.space.places]
    return {frozenset((places[int(i)], places[int(j)])) for i, j in rooms.pairs}


def test_text_and_walls_agree_on_two_rooms() -> None:
    """A wall of text is as thick as a cell; without the wall's own column both say the same of each room."""
    text = Rooms.from_text("...#...\n...+...\n...#...", cell=1.0)
    walls = Rooms.from_walls((6.0, 3.0), cell=1.0, walls=[((3, 0), (3, 3))], doors=[((3, 1), (3, 2))])
    assert text.doors == walls.doors == 1
    assert len(walls.space) == len(text.space) - 1
    left = {way for way in ways(text) if all(x < 3 for x, _ in way)}
    assert left == {way for way in ways(walls) if all(x < 3 for x, _ in way)}
    through = [way for way in ways(walls) if {x for x, _ in way} == {2.5, 3.5}]
    assert through == [frozenset({(2.5, 1.5), (3.5, 1.5)})]
    for rooms, far in ((text, 6.0), (walls, 5.0)):
        start, end = rooms.cell_at(0.5, 1.5), rooms.cell_at(far + 0.5, 1.5)
        assert rooms.space.distances(start)[end] == pytest.approx(far)


def test_y_grows_upwards() -> None:
    rooms = Rooms.from_text("..\n. ", cell=2.0)
    assert rooms.space.places.tolist() == [[1.0, 1.0], [1.0, 3.0], [3.0, 3.0]]
    assert rooms.cell_at(1.0, 1.0) == 0
    with pytest.raises(PhysicsError) as problem:
        rooms.cell_at(3.0, 1.0)
    assert problem.value.at == (3.0, 1.0)


def test_shutting_the_only_door_leaves_two_parts() -> None:
    rooms = Rooms.from_walls((6, 3), cell=1.0, walls=[((3, 0), (3, 3))], doors=[((3, 1), (3, 2))])
    shut = rooms.shut([0])
    parts = shut.space.components()
    assert len(shut.space) == len(rooms.space)
    assert len(set(parts.tolist())) == 2
    assert parts[shut.cell_at(0.5, 0.5)] != parts[shut.cell_at(5.5, 0.5)]
    assert ways(rooms.shut([])) == ways(rooms)


def test_a_slanted_wall_has_no_gaps() -> None:
    with pytest.raises(PhysicsError, match="2 unconnected parts"):
        Rooms.from_walls((4, 4), cell=0.25, walls=[((0, 0.4), (4, 3.3))])


@pytest.mark.parametrize("x", [1.25, 1.2500001, 1.2499999])
def test_a_wall_through_the_middle_of_cells_still_parts_the_floor(x: float) -> None:
    with pytest.raises(PhysicsError, match="2 unconnected parts"):
        Rooms.from_walls((2.5, 1.0), cell=0.5, walls=[((x, 0), (x, 1))])


@pytest.mark.parametrize(
    ("drawing", "attribute"),
    [
        ("", "drawing"),
        ("###\n# #\n###", "drawing"),
        ("#####\n#..x#\n#####", "line"),
        ("..\n.\t.", "line"),
        ("..#..\n..#..", "places"),
        ("." * 1_000_001, "cells"),
    ],
)
def test_unreadable_drawings_are_refused(drawing: str, attribute: str) -> None:
    with pytest.raises(PhysicsError) as problem:
        Rooms.from_text(drawing, cell=1.0)
    assert attribute in problem.value.values


@pytest.mark.parametrize(
    ("arguments", "attribute"),
    [
        ({"cell": 0.0}, "cell"),
        ({"cell": float("nan")}, "cell"),
        ({"cell": 0.3}, "cell"),
        ({"size": (4.0, 0.0)}, "size"),
        ({"size": (4000.0, 4000.0)}, "cells"),
        ({"walls": [((0, 0), (0, float("nan")))]}, "wall"),
        ({"doors": ["front"]}, "wall"),
        ({"walls": [((2, 0), (2, 4))]}, "places"),
    ],
)
def test_impossible_walls_are_refused(arguments: dict[str, Any], attribute: str) -> None:
    options: dict[str, Any] = {"size": (4.0, 4.0), "cell": 1.0} | arguments
    with pytest.raises(PhysicsError) as problem:
        Rooms.from_walls(options.pop("size"), **options)
    assert attribute in problem.value.values
