"""The page's sentences and its geometry, in the browser that runs them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from cloakwork.collect.api.routes_sites import floor_shape
from cloakwork.physics import Rooms, Space
from cloakwork.site import parse_site
from tests.browser import visiting
from tests.collect.fake_api import running_api
from tests.collect.fake_sites import FakeSite, flat_text
from tests.collect.page_kit import USUAL

HOUR = {
    "alpha": 0.2,
    "epsilon": 4,
    "delta": 1e-5,
    "scope": "network",
    "window_s": 3600,
    "readings_per_window": 60,
    "assumptions": ["It assumes this.", "It assumes that."],
}
NOW = 1_794_731_949_036
OVER, OTHER, OFF = "over budget", "other budget", "off the slots"
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


def call(page: Page, module: str, name: str, *arguments: Any) -> Any:
    """Call a function of the page's code."""
    program = "async ([module, name, given]) => (await import(`./static/${module}`))[name](...given)"
    answer = page.evaluate(program, [module, name, list(arguments)])
    return answer.replace("\u00a0", " ") if isinstance(answer, str) else answer


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("percent", 0.9999, "over 99 %"),
        ("percent", 1, "over 99 %"),
        ("percent", 0.001, "under 1 %"),
        ("percent", 0.867, "87 %"),
        ("duration", 3_900_000, "1 h 5 min"),
        ("duration", 60_046, "1 min"),
        ("duration", 2_008, "2 s"),
        ("duration", 86_400_000, "1 d"),
        ("duration", 640, "0.6 s"),
        ("windowName", 3600, "hour"),
        ("windowName", 1800, "30 minutes"),
        ("windowName", 86400, "day"),
        ("windowName", 604800, "7 days"),
        ("windowName", 90, "90 seconds"),
        ("windowName", 0.5, "0.5 seconds"),
        ("number", 0.8512, "0.85"),
        ("number", 1e-5, "1e-5"),
        ("number", 12345678, "1.2e7"),
    ],
)
def test_numbers_and_durations_are_rounded(page: Page, name: str, value: float, expected: str) -> None:
    assert call(page, "texts.js", name, value) == expected


@pytest.mark.parametrize(
    ("change", "kind", "facts"),
    [
        ({}, "floorplan", ["person", "Moves of up to 0.2 m", "every hour", "all sensors", "epsilon 4", "delta 1e-5"]),
        ({"scope": "sensor", "window_s": 1800}, "line", ["source", "any 30 minutes", "one sensor and no other"]),
        ({"scope": None, "alpha": 1}, "graph", ["source", "Moves of up to 1 by one source are hidden in every hour ("]),
    ],
)
def test_the_claim_states_its_distance_window_and_observer(
    page: Page, change: dict[str, Any], kind: str, facts: list[str]
) -> None:
    claim = call(page, "texts.js", "claim", HOUR | change, kind)
    assert [fact for fact in facts if fact not in claim] == []


def test_a_claim_about_one_sensor_warns_of_this_very_page(page: Page) -> None:
    sensor = HOUR | {"scope": "sensor"}
    [extra] = set(call(page, "texts.js", "notHidden", sensor, "floorplan")) - set(
        call(page, "texts.js", "notHidden", HOUR, "floorplan")
    )
    assert "as this page does" in extra
    assert "one sensor in one hour" in call(page, "texts.js", "meaning", sensor, "floorplan")


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 2.3, 10.0])
def test_the_factor_is_never_rounded_down(page: Page, epsilon: float) -> None:
    meaning = call(page, "texts.js", "meaning", HOUR | {"epsilon": epsilon}, "floorplan")
    factor = float(meaning.split("at most ")[1].split(" times")[0].replace(",", ""))
    assert np.exp(epsilon) <= factor <= 1.02 * np.exp(epsilon)


@pytest.mark.parametrize(
    ("used", "start", "end"),
    [
        ([43, 43], "43 of 60 readings", "hour."),
        ([43, 12, None], "43 of 60 readings", "busiest sensor."),
        ([43, 61], "61 of 60 readings", "by s1."),
        ([None], "60 readings allowed", "hour."),
        ([], "60 readings allowed", "hour."),
    ],
)
def test_the_budget_is_the_plans_and_the_busiest_sensor_counts(
    page: Page, used: list[int | None], start: str, end: str
) -> None:
    sensors = [{"id": f"s{k}", "used": number, "allowed": 999} for k, number in enumerate(used)]
    budget = call(page, "texts.js", "budget", HOUR, sensors)
    assert budget["allowed"] == 60
    assert budget["text"].startswith(start)
    assert budget["text"].endswith(end)


@pytest.mark.parametrize(
    ("broken", "reasons"),
    [
        ([], []),
        ([[]], []),
        ([[(OVER, 3_599_000)]], ["s0 has sent more"]),
        ([[(OVER, 3_601_000)]], []),
        (
            [[(OVER, 0), (OFF, 9)], [(OVER, 5)], [(OTHER, 7)]],
            ["s0, s1 have sent more", "s2 reports another budget", "s0 does not measure together"],
        ),
        ([[(OTHER, 0)]] * 9, ["s0, s1, s2, s3 and 5 more report another budget"]),
    ],
)
def test_a_broken_claim_is_replaced_by_a_warning(
    page: Page, broken: list[list[tuple[str, int]]], reasons: list[str]
) -> None:
    sensors = [
        {"id": f"s{k}", "broken": [{"code": code, "last": NOW - ago} for code, ago in items]}
        for k, items in enumerate(broken)
    ]
    warning = call(page, "texts.js", "warning", HOUR, sensors, NOW)
    assert bool(warning) is bool(reasons)
    assert [reason for reason in reasons if reason not in warning] == []


@pytest.mark.parametrize(
    ("radius", "space", "size"),
    [
        (0, {"kind": "floorplan", "cell": 0.25}, "within a cell (0.25 m)"),
        (0.5, {"kind": "floorplan", "cell": 0.25}, "within 0.5 m"),
        (0, {"kind": "graph"}, "within one place"),
        (2, {"kind": "graph"}, "within 2"),
    ],
)
def test_a_vicinity_of_one_place_has_the_size_of_that_place(
    page: Page, radius: float, space: dict[str, Any], size: str
) -> None:
    source = {"radius": radius, "probability": 0.8, "at": [1, 1]}
    assert call(page, "texts.js", "brief", source, True, space) == f"80 %, {size}"
    assert size in call(page, "texts.js", "certainty", source, True, space)


@pytest.mark.parametrize("cut", [False, True])
def test_the_view_of_a_window_states_its_limits(page: Page, cut: bool) -> None:
    attack = {"time": NOW, "frames": 43, "sources": [{"radius": 0}, {"radius": 0.5}], "cut": cut}
    longer = {"seconds": 86_400, "epsilon": 19.6, "right_place": 0.853}
    space = {"kind": "floorplan", "cell": 0.25}
    shown = call(page, "texts.js", "attackText", attack | {"longer": longer}, HOUR, space, NOW)
    facts = ("the 43 frames of the hour", "a cell (0.25 m) to 0.5 m", "of a day have epsilon 19.7, not 4")
    for fact in (*facts, "up to 86 % of cases"):
        assert fact in shown
    assert ("only the last" in shown) is cut


def test_a_method_without_probabilities_shows_none(page: Page) -> None:
    source = {"radius": 0.8, "probability": 1, "at": [1, 1]}
    for name in ("certainty", "brief"):
        shown = call(page, "texts.js", name, source, False, {"kind": "floorplan"})
        assert "within 0.8 m" in shown
        assert "%" not in shown
    empty: dict[str, Any] = {"counts": None, "sources": [], "failed": False}
    assert call(page, "texts.js", "countText", empty) == "No sources found."
    assert "not prove" in call(page, "texts.js", "oddsText", empty)


def test_marks_keep_their_number_while_they_move(page: Page) -> None:
    before = [{"id": 1, "at": [1, 1]}, {"id": 2, "at": [8, 8]}]
    after = [{"at": [7.5, 8]}, {"at": [4, 4]}, {"at": [1.2, 1]}]
    assert [one["id"] for one in call(page, "map_view.js", "numberMarks", before, after, 12.8)] == [2, 3, 1]


WALK = """async ([geometry, at, far]) => {
  const { FloorGrid } = await import("./static/floor_grid.js");
  const floor = new FloorGrid(geometry);
  const found = new Float64Array(geometry.places.length).fill(Infinity);
  for (const [cell, walked] of floor.near(...at, far)) found[floor.grid[cell]] = walked;
  return [...found].map((value) => (Number.isFinite(value) ? value : null));
}"""


def _flat() -> tuple[dict[str, Any], Space]:
    site = FakeSite(flat_text(), None)
    return site.geometry, site.site.physics.space


def _stated() -> tuple[dict[str, Any], Space]:
    """Walls as the site file has them: whole, with the doors in them."""
    geometry, space = _flat()
    spec: Any = parse_site(flat_text()).spec.physics
    return geometry | {"walls": spec.walls, "doors": spec.doors}, space


def _drawn() -> tuple[dict[str, Any], Space]:
    rooms = Rooms.from_text(DRAWING, cell=0.5)
    return {"kind": "floorplan", "places": rooms.space.places.tolist()} | floor_shape(rooms), rooms.space


@pytest.mark.parametrize("made", [_flat, _stated, _drawn])
def test_ways_on_the_page_are_as_long_as_in_the_model(page: Page, made: Any) -> None:
    geometry, space = made()
    for place in range(0, len(space), max(1, len(space) // 7)):
        far = space.distances(place)
        told = page.evaluate(WALK, [geometry, space.places[place].tolist(), 5.0])
        walked = np.array([np.inf if value is None else value for value in told])
        assert np.allclose(walked, np.where(far <= 5.0 + 1e-9, far, np.inf))


@pytest.mark.parametrize("made", [_flat, _stated])
def test_rooms_are_named_by_where_they_are(page: Page, made: Any) -> None:
    geometry, _ = made()
    names = page.evaluate(
        """async (geometry) => {
          const { FloorGrid } = await import("./static/floor_grid.js");
          const floor = new FloorGrid(geometry);
          return [[2, 2], [8, 7], [8, 1]].map((at) => floor.roomAt(...at));
        }""",
        geometry,
    )
    assert names == ["left room", "upper right room", "lower right room"]
