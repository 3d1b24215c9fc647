"""The page's geometry, in the browser that runs it: which cells walls keep apart."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from cloakwork.collect.api.site_geometry import floor_shape, site_geometry
from cloakwork.physics import Rooms, Space
from tests.collect.api_kit import collected
from tests.collect.page_kit import FLAT

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


WALK = """async ([geometry, at, far]) => {
  const { FloorGrid } = await import("./static/floor_grid.js");
  const floor = new FloorGrid(geometry);
  const found = new Float64Array(geometry.places.length).fill(Infinity);
  const walked = new Map([[floor.cell(at), 0]]);
  for (let edge = [...walked.keys()]; edge.length; ) {
    edge = edge.flatMap((here) => {
      const column = here % floor.columns;
      const row = Math.floor(here / floor.columns);
      const beside = [[column + 1, row], [column - 1, row], [column, row + 1], [column, row - 1]];
      const next = beside.filter(([c, r]) => floor.open(column, row, c, r)).map(([c, r]) => [
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
    site = collected(FLAT)
    return site_geometry("flat", site).model_dump(), site.site.physics.space


def _drawn() -> tuple[dict[str, Any], Space]:
    rooms = Rooms.from_text(DRAWING, cell=0.5)
    return {"kind": "floorplan", "places": rooms.space.places.tolist()} | floor_shape(rooms), rooms.space


@pytest.mark.parametrize("made", [_flat, _drawn])
def test_walks_on_the_page_are_as_long_as_in_the_model(page: Page, made: Any) -> None:
    geometry, space = made()
    for place in range(0, len(space), max(1, len(space) // 7)):
        far = space.distances(place)
        told = page.evaluate(WALK, [geometry, space.places[place].tolist(), 5.0])
        walked = np.array([np.inf if value is None else value for value in told])
        assert np.allclose(walked, np.where(far <= 5.0 + 1e-9, far, np.inf))
