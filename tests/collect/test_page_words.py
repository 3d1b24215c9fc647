"""The page's sentences and its geometry, checked in the browser that runs them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from cloakwork.collect.api.routes_sites import floor_shape as floor_of
from cloakwork.collect.problems import CLAIM_BREAKING
from cloakwork.physics import Rooms, Space
from cloakwork.site import parse_site
from tests.browser import running_browser, visiting
from tests.collect.fake_api import running_api
from tests.collect.fake_sites import FakeSite, flat_text
from tests.collect.page_kit import USUAL

HOUR = {"alpha": 0.2, "epsilon": 4, "delta": 1e-5, "scope": "network", "window_s": 3600, "readings_per_window": 60}
UNHEARD = "60 readings allowed in every hour; no sensor was heard in the last hour."
NOW = 1_794_731_949_036
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
def page() -> Iterator[Page]:
    with running_browser() as browser, running_api({}) as api, visiting(browser, api.url, expected=USUAL) as visit:
        yield visit.page


def call(page: Page, module: str, name: str, *arguments: Any) -> Any:
    """Call a function of the page's own code."""
    program = "async ([module, name, given]) => (await import(`./static/${module}`))[name](...given)"
    found = page.evaluate(program, [module, name, list(arguments)])
    return found.replace("\u00a0", " ") if isinstance(found, str) else found


@pytest.mark.parametrize(
    ("name", "given", "words"),
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
def test_numbers_in_words(page: Page, name: str, given: float, words: str) -> None:
    assert call(page, "words.js", name, given) == words


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (
            {},
            "floorplan",
            "Each person's place is hidden to within 0.2 m in every hour from someone who sees all sensors "
            "(epsilon 4, delta 1e-5).",
        ),
        (
            {"scope": "sensor", "window_s": 1800},
            "line",
            "Each source's place is hidden to within 0.2 m in any 30 minutes from someone who sees one sensor and no "
            "other (epsilon 4, delta 1e-5).",
        ),
        (
            {"scope": None, "alpha": 1},
            "graph",
            "Each source's place is hidden to within a distance of 1 in every hour (epsilon 4, delta 1e-5).",
        ),
    ],
)
def test_the_claim_says_what_is_hidden_and_from_whom(page: Page, change: dict[str, Any], kind: str, words: str) -> None:
    assert call(page, "words.js", "claim", HOUR | change, kind) == words


def test_a_claim_of_one_sensor_warns_of_this_very_page(page: Page) -> None:
    told = call(page, "words.js", "notHidden", HOUR | {"scope": "sensor"}, "floorplan")
    assert "Anything, from someone who combines several sensors, as this page does." in told
    assert "one sensor in one hour" in call(page, "words.js", "meaning", HOUR | {"scope": "sensor"}, "floorplan")


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 2.3, 4.0, 10.0])
def test_the_factor_is_never_rounded_down(page: Page, epsilon: float) -> None:
    told = call(page, "words.js", "meaning", HOUR | {"epsilon": epsilon}, "floorplan")
    factor = float(told.split("at most ")[1].split(" times")[0].replace(",", ""))
    assert np.exp(epsilon) <= factor <= 1.02 * np.exp(epsilon)


@pytest.mark.parametrize(
    ("sensors", "words"),
    [
        ([43, 43], "43 of 60 readings used in the last hour."),
        ([43, 12, None], "43 of 60 readings used in the last hour by the busiest sensor."),
        ([43, 61], "61 of 60 readings used in the last hour by s1."),
        ([None], UNHEARD),
        ([], UNHEARD),
    ],
)
def test_the_budget_is_the_plans_and_the_busiest_sensor_stands_for_all(
    page: Page, sensors: list[int | None], words: str
) -> None:
    told = [{"id": f"s{k}", "used": used, "allowed": 999} for k, used in enumerate(sensors)]
    found = call(page, "words.js", "budget", HOUR, told)
    assert (found["words"].replace("\u00a0", " "), found["allowed"]) == (words, 60)


OVER, OTHER, OFF = (reason.value for reason in CLAIM_BREAKING)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ([], ""),
        ([[]], ""),
        ([[(OVER, 0)]], "s0 has sent more readings than the plan allows."),
        ([[(OVER, 3_599_000)]], "s0 has sent more readings than the plan allows."),
        ([[(OVER, 3_601_000)]], ""),
        (
            [[(OVER, 0), (OFF, 9)], [(OVER, 5)], [(OTHER, 7)]],
            "s0, s1 have sent more readings than the plan allows; s2 states another budget than the plan; "
            "s0 does not measure together with the others.",
        ),
        ([[(OTHER, 0)]] * 9, "s0, s1, s2, s3 and 5 more state another budget than the plan."),
    ],
)
def test_a_claim_that_does_not_hold_is_not_made(page: Page, broken: list[list[tuple[str, int]]], words: str) -> None:
    told = [
        {"id": f"s{k}", "broken": [{"reason": reason, "last": NOW - ago} for reason, ago in one]}
        for k, one in enumerate(broken)
    ]
    start = "The claim of this site does not hold for what is shown here: "
    assert call(page, "words.js", "warning", HOUR, told, NOW) == (start + words if words else "")


@pytest.mark.parametrize(
    ("radius", "space", "words"),
    [
        (0, {"kind": "floorplan", "cell": 0.25}, "within a cell (0.25 m)"),
        (0.5, {"kind": "floorplan", "cell": 0.25}, "within 0.5 m"),
        (0, {"kind": "graph"}, "within one place"),
        (2, {"kind": "graph"}, "within 2"),
    ],
)
def test_a_vicinity_of_one_place_is_as_large_as_that(
    page: Page, radius: float, space: dict[str, Any], words: str
) -> None:
    source = {"radius": radius, "probability": 0.8, "at": [1, 1]}
    assert call(page, "words.js", "brief", source, "PointSources", space) == f"80 %, {words}"
    told = call(page, "words.js", "certainty", source, "PointSources", space)
    assert told.endswith(f"it is {words}{' of the mark' if radius else ''}")


@pytest.mark.parametrize("cut", [False, True])
def test_the_view_of_a_window_says_that_it_is_one_window(page: Page, cut: bool) -> None:
    attack = {"time": NOW, "frames": 43, "sources": [{"radius": 0}, {"radius": 0.5}], "cut": cut}
    longer = {"seconds": 86_400, "epsilon": 19.6}
    space = {"kind": "floorplan", "cell": 0.25}
    told = call(page, "words.js", "attackWords", attack | {"longer": longer}, HOUR, space, NOW)
    assert "puts the 43 frames of the hour up to" in told
    assert "Its vicinities have a radius of a cell (0.25 m) to 0.5 m." in told
    assert told.endswith("Data that are kept for longer say more: the readings of a day have epsilon 19.7, not 4.")
    assert ("only the last were" in told) is cut


def test_a_method_without_odds_claims_none(page: Page) -> None:
    source = {"radius": 0.8, "probability": 1, "at": [1, 1]}
    told = call(page, "words.js", "certainty", source, "BasisPursuit", {"kind": "floorplan"})
    assert told == "roughly within 0.8 m of the mark (a guide: this method gives no odds)"
    assert "%" not in call(page, "words.js", "brief", source, "BasisPursuit", {"kind": "floorplan"})
    assert call(page, "words.js", "countWords", {"counts": None, "sources": []}) == "No sources found."
    empty = call(page, "words.js", "oddsWords", {"counts": None, "sources": []})
    assert empty == "That does not prove that nobody is there."


def test_marks_keep_their_number_while_they_move(page: Page) -> None:
    before = [{"id": 1, "at": [1, 1]}, {"id": 2, "at": [8, 8]}]
    after = [{"at": [7.5, 8]}, {"at": [4, 4]}, {"at": [1.2, 1]}]
    assert [one["id"] for one in call(page, "plan.js", "follow", before, after, 12.8)] == [2, 3, 1]


WALK = """async ([geometry, at, far]) => {
  const { Floor } = await import("./static/floor.js");
  const floor = new Floor(geometry);
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
    return {"kind": "floorplan", "places": rooms.space.places.tolist()} | floor_of(rooms), rooms.space


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
          const { Floor } = await import("./static/floor.js");
          const floor = new Floor(geometry);
          return [[2, 2], [8, 7], [8, 1]].map((at) => floor.roomAt(...at));
        }""",
        geometry,
    )
    assert names == ["left room", "upper right room", "lower right room"]
