"""The page's geometry, in the browser that runs it: ways through doors, and trails."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from cloakwork.collect.api.site_geometry import floor_shape
from cloakwork.physics import Rooms, Space
from tests.browser import visiting
from tests.collect.fake_api import running_api
from tests.collect.fake_sites import FakeSite, flat_text
from tests.collect.page_kit import USUAL

DRAWING = """
############
#....#.....#
#....+.....#
#....#..####
#....#..#..#
######..+..#
#.......#..#
############
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with running_api({}) as api, visiting(browser, api.url, expected=USUAL) as visit:
        yield visit.page


TRAIL = """async (settled) => {
  const { ResultHistory } = await import("./static/result_history.js");
  const history = new ResultHistory({ name: "flat", period_ms: 1000, ahead_ms: 0, lag: 3, follows: true });
  history.recent.from = -Infinity;
  const track = (k) => ({ label: 1, at: [k], probability: 1 });
  settled.forEach((settled, k) => history.add({ time: 1000 * k, settled, tracks: [track(k)] }));
  return history.trails(history.newest).get(1).map(({ at }) => at[0]);
}"""


def test_a_trail_leads_through_settled_places_and_only_its_last_part_is_live(page: Page) -> None:
    assert page.evaluate(TRAIL, [True, True, True, False, False, False]) == [0, 1, 2, 5]


WALK = """async ([geometry, at, far]) => {
  const { FloorGrid } = await import("./static/floor_grid.js");
  const floor = new FloorGrid(geometry);
  const found = new Float64Array(geometry.places.length).fill(Infinity);
  const walked = new Map([[floor.cell(at), 0]]);
  for (let edge = [...walked.keys()]; edge.length; ) {
    edge = edge.flatMap((here) => {
      const column = here % floor.columns;
      const next = [...floor._neighbours(column, Math.floor(here / floor.columns))].map(([c, r]) => [
        c + floor.columns * r,
        walked.get(here) + (c === column ? floor.dy : floor.dx),
      ]);
      const better = next.filter(([cell, length]) => length <= far && length < (walked.get(cell) ?? Infinity) - 1e-9);
      for (const [cell, length] of better) walked.set(cell, length);
      return better.map(([cell]) => cell);
    });
  }
  for (const [cell, length] of walked) found[floor.grid[cell]] = length;
  return [...found].map((value) => (Number.isFinite(value) ? value : null));
}"""


def _flat() -> tuple[dict[str, Any], Space]:
    site = FakeSite(flat_text(), None)
    return site.geometry, site.site.physics.space


def _drawn() -> tuple[dict[str, Any], Space]:
    rooms = Rooms.from_text(DRAWING, cell=0.5)
    return {"kind": "floorplan", "places": rooms.space.places.tolist()} | floor_shape(rooms), rooms.space


@pytest.mark.parametrize("made", [_flat, _drawn])
def test_ways_on_the_page_are_as_long_as_in_the_model(page: Page, made: Any) -> None:
    geometry, space = made()
    for place in range(0, len(space), max(1, len(space) // 7)):
        far = space.distances(place)
        told = page.evaluate(WALK, [geometry, space.places[place].tolist(), 5.0])
        walked = np.array([np.inf if value is None else value for value in told])
        assert np.allclose(walked, np.where(far <= 5.0 + 1e-9, far, np.inf))


@pytest.mark.parametrize("made", [_flat, _drawn])
def test_trails_pass_through_doors_and_never_through_walls(page: Page, made: Any) -> None:
    geometry, space = made()
    rng = np.random.default_rng(5)
    pairs = space.places[rng.integers(len(space), size=(40, 2))]
    ways = page.evaluate(
        """async ([geometry, pairs]) => {
          const { FloorGrid } = await import("./static/floor_grid.js");
          const floor = new FloorGrid(geometry);
          return pairs.map(([from, to]) => floor.way(from, to));
        }""",
        [geometry, pairs.tolist()],
    )
    walls = [np.array(wall) for wall in geometry["walls"]]
    for way, (start, end) in zip(ways, pairs, strict=True):
        assert way[0] == pytest.approx(start)
        assert way[-1] == pytest.approx(end)
        legs = [(np.array(a), np.array(b)) for a, b in pairwise(way)]
        assert not [leg for leg in legs for wall in walls if _cross(*leg, *wall)]
        walked = sum(np.linalg.norm(b - a) for a, b in legs)
        assert walked <= space.distances(space.index(start))[space.index(end)] + 1e-9, "no longer than along the axes"
    assert any(len(way) > 2 for way in ways)


def _cross(a: Any, b: Any, c: Any, d: Any) -> bool:
    """Whether two segments cross inside both; written apart from the page's own rule."""

    def side(p: Any, q: Any, r: Any) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) < -1e-9 and side(c, d, a) * side(c, d, b) < -1e-9
