"""Sensors spread evenly: exactly as many as asked for, all different, none far from any place."""

import networkx as nx
import numpy as np
import pytest

from cloakwork.errors import SiteError
from cloakwork.physics import Graph, HeatPlane, Rooms, Space
from cloakwork.site.build import even_places

ROOMS = {
    "open floor": Rooms.from_walls((5, 4), cell=0.5).space,
    "two rooms": Rooms.from_text("#########\n#...#...#\n#...+...#\n#...#...#\n#########", cell=0.5).space,
    "a ring": Rooms.from_text("......\n.####.\n.####.\n......", cell=1.0).space,
    "a corridor": Rooms.from_text("." * 25, cell=0.3).space,
    "an angle": Rooms.from_text(".\n.\n.\n.\n.......", cell=1.0).space,
    "plane": HeatPlane(n=(7, 5), m=(1, 1), T=0.1, size=(2.0, 1.0)).space,
    "graph": Graph(nx.karate_club_graph(), tau=0.1).space,
    "path": Space.path([[0, 1], [1, 2], [2, 3]]),
    "one cell": Rooms.from_text(".", cell=1.0).space,
}


@pytest.mark.parametrize("name", ROOMS)
def test_any_number_up_to_all_gives_that_many_different_places(name: str) -> None:
    space = ROOMS[name]
    for number in {*range(1, len(space) + 1, 1 + len(space) // 12), len(space)}:
        places = even_places(space, number).tolist()
        assert len(places) == len(set(places)) == number
        assert min(places) >= 0
        assert max(places) < len(space)
        assert places == sorted(places)


@pytest.mark.parametrize(("name", "number"), [("two rooms", 4), ("a ring", 5), ("an angle", 4), ("graph", 6)])
def test_no_place_is_far_from_all_sensors(name: str, number: int) -> None:
    """Within twice what any choice of so many could do, which farthest-first guarantees; a cell more for the middle."""
    space = ROOMS[name]
    table = np.stack([space.distances(k) for k in range(len(space))])
    ours = table[even_places(space, number)].min(axis=0).max()
    rng = np.random.default_rng(1)
    best = min(table[rng.permutation(len(space))[:number]].min(axis=0).max() for _ in range(300))
    assert ours <= 2 * best + space.lengths.max()


def test_more_sensors_than_places_are_refused() -> None:
    with pytest.raises(SiteError) as caught:
        even_places(ROOMS["path"], 5)
    assert caught.value.values["at"] == ("sensors",)
