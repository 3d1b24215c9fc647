"""Zones: which places they hold, what is refused, and that they do not affect the noise."""

from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import SiteError
from cloakwork.site import Site, Zone, load_site, parse_site

REST = """
[sources]
kind = "pulse"
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.05
"""
LINE = 'name = "line"\nsensors = 4\n[physics]\nkind = "line"\nplaces = 10\nT = 0.02\nlength = 2.0\n' + REST
PLANE = 'name = "plane"\nsensors = 4\n[physics]\nkind = "plane"\nplaces = [6, 4]\nsize = [3.0, 2.0]\nT = 0.1\n' + REST
GRAPH = 'name = "net"\nsensors = 2\n[physics]\nkind = "graph"\nedges = [["a", "b"], ["b", 7]]\ntau = 0.5\n' + REST
DRAWING = '''name = "rooms"
sensors = 6
[physics]
kind = "floorplan"
cell = 0.5
regime = "pulse"
length = 1.0
drawing = """
###########
#...#.....#
#...+.....#
#...##+####
#...#.....#
#...+.....#
###########
"""
'''
ROOMS = DRAWING + REST
WALLS = (
    """name = "walls"
sensors = 6
[physics]
kind = "floorplan"
cell = 1.0
size = [4.0, 3.0]
walls = [[[2.0, 0.0], [2.0, 3.0]]]
doors = [[[2.0, 1.0], [2.0, 2.0]]]
regime = "pulse"
length = 1.0
"""
    + REST
)


def zoned(text: str, *zones: str) -> Site:
    return parse_site(text + "".join(f"[[zone]]\n{zone}\n" for zone in zones))


def at(site: Site, zone: Zone) -> list[list[float]]:
    places: list[list[float]] = np.round(site.physics.space.places[zone.places], 6).tolist()
    return places


def test_the_zones_of_a_floor_plan_are_its_rooms_in_reading_order() -> None:
    site = parse_site(ROOMS)
    assert [(zone.id, zone.label, len(zone.places)) for zone in site.zones] == [
        ("room-1", "room 1", 15),
        ("room-2", "room 2", 10),
        ("room-3", "room 3", 10),
    ]
    middles = [np.mean(at(site, zone), axis=0).tolist() for zone in site.zones]
    assert middles[0] == [1.25, 1.75]
    assert (middles[1][1], middles[2][1]) == (2.5, 1.0)
    assert sum(len(zone.places) for zone in site.zones) + 3 == len(site.physics.space), "a door is in no room"


def test_two_corners_are_a_rectangle_and_more_are_any_shape() -> None:
    two = zoned(PLANE, 'id = "a"\ncorners = [[1.0, 2.0], [0.0, 0.0]]', 'id = "b"\ncorners = [[1.0, 0], [3, 1.0]]')
    assert at(two, two.zones[0]) == [[x, y] for x in (0.5, 1.0) for y in (0.5, 1.0, 1.5, 2.0)]
    assert at(two, two.zones[1]) == [[x, y] for x in (1.5, 2.0, 2.5, 3.0) for y in (0.5, 1.0)]
    bend = zoned(PLANE, 'id = "l"\ncorners = [[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2]]')
    both = {*two.zones[0].places.tolist(), *two.zones[1].places.tolist()}
    assert set(bend.zones[0].places.tolist()) == both


def test_a_stretch_of_a_line_holds_its_end_and_not_its_beginning() -> None:
    site = zoned(LINE, 'id = "near"\nbetween = [0.0, 0.6]', 'id = "far"\nbetween = [2.0, 0.6]')
    assert [zone.places.tolist() for zone in site.zones] == [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]]


def test_nodes_go_by_name_and_columns_by_number(tmp_path: Path) -> None:
    assert zoned(GRAPH, 'id = "ends"\nplaces = ["a", 7]').zones[0].places.tolist() == [0, 2]
    (tmp_path / "m.csv").write_text("1,0.5,0.2\n0.2,0.5,1\n")
    head = 'name = "m"\nsensors = 2\n[physics]\nkind = "matrix"\nfile = "m.csv"\n'
    (tmp_path / "site.toml").write_text(head + REST + '[[zone]]\nid = "x"\nplaces = [2, 0]\n')
    assert load_site(tmp_path / "site.toml").zones[0].places.tolist() == [0, 2]


@settings(max_examples=30)
@given(st.lists(st.floats(0.05, 2.95), min_size=1, max_size=5, unique=True))
def test_shapes_that_touch_share_no_place_and_leave_none_out(cuts: list[float]) -> None:
    ends = [0.0, *sorted(cuts), 3.0]
    shapes = [
        f'id = "z{k}"\ncorners = [[{a!r}, 0], [{b!r}, 0], [{b!r}, 2], [{a!r}, 2]]'
        for k, (a, b) in enumerate(pairwise(ends))
    ]
    held: list[int] = []
    for shape in shapes:
        with suppress(SiteError):  # between two places that are next to each other
            held += zoned(PLANE, shape).zones[0].places.tolist()
    assert sorted(held) == list(range(24))


def test_zones_may_overlap() -> None:
    assert len(zoned(LINE, 'id = "y"\nbetween = [0, 1]', 'id = "z"\nbetween = [0.5, 2]').zones) == 2
