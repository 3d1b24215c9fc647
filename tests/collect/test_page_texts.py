"""The page's sentences, in the browser that runs them."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import visiting
from tests.collect.fake_api import running_api
from tests.collect.page_kit import USUAL

HOUR = {
    "alpha": 0.2,
    "epsilon": 4,
    "delta": 1e-5,
    "scope": "network",
    "window_s": 3600,
    "stay": None,
    "shared": None,
    "readings_per_window": 60,
    "follows": True,
    "assumptions": ["It assumes this.", "It assumes that."],
    "left_open": [],
    "forecast": None,
}
NOW = 1_794_731_949_036
OVER, OTHER, OFF = "over budget", "other budget", "off the slots"


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
    assert call(page, "formats.js", name, value) == expected


@pytest.mark.parametrize(
    ("change", "kind", "facts"),
    [
        ({}, "floorplan", ["person", "Moves of up to 0.2 m", "every hour", "all sensors", "epsilon 4", "delta 1e-5"]),
        ({"scope": "sensor", "window_s": 1800}, "line", ["source", "any 30 minutes", "one sensor and no other"]),
        ({"alpha": 1}, "graph", ["source", "Moves of up to 1 by one source are hidden in every hour from"]),
    ],
)
def test_the_claim_states_its_distance_window_and_observer(
    page: Page, change: dict[str, Any], kind: str, facts: list[str]
) -> None:
    claim = call(page, "texts.js", "claim", HOUR | change, kind)
    assert [fact for fact in facts if fact not in claim] == []


def test_claims_for_stays_say_what_they_hide_and_what_not(page: Page) -> None:
    stay = {"seconds": 28_800, "epsilon": 6, "delta": 1e-6}
    both = HOUR | {"stay": stay}
    told = call(page, "texts.js", "claim", both, "floorplan")
    for fact in (
        "stay of up to 8 hours",
        "all these readings (epsilon 6, delta 1e-6)",
    ):
        assert fact in told
    plain, left = (call(page, "texts.js", "notHidden", info, "floorplan") for info in (HOUR, both))
    extra = " ".join(sentence for sentence in left if sentence not in plain)
    assert [fact for fact in ("anyone who moves", "8 hours, or returns") if fact not in extra] == []


def test_what_a_claim_leaves_open_stands_beside_it(page: Page) -> None:
    info = HOUR | {"left_open": ["Rooms in which warmth lingers are not covered."]}
    assert call(page, "texts.js", "claim", info, "floorplan").endswith("Rooms in which warmth lingers are not covered.")
    told = call(page, "texts.js", "claim", HOUR | {"forecast": {"zone": "room", "room": 0.9}}, "floorplan")
    assert told.endswith("right room in 90 % of cases.")


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
    assert math.exp(epsilon) <= factor <= 1.02 * math.exp(epsilon)


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
    assert call(page, "texts.js", "brief", source, True, space | {"zones": []}) == f"80 %, {size}"
    assert size in call(page, "texts.js", "certainty", source, True, space)


@pytest.mark.parametrize("cut", [False, True])
def test_the_view_of_an_attacker_states_its_fit_and_its_limits(page: Page, cut: bool) -> None:
    attack = {"time": NOW, "since": NOW, "frames": 43, "sources": [{"radius": 0}, {"radius": 0.5}], "span": "window"}
    attack["cut"] = cut
    space = {"kind": "floorplan", "cell": 0.25}
    shown = call(page, "texts.js", "attackText", attack | {"fit": 0.4, "doubtful": False}, HOUR, space, NOW)
    for fact in (
        f"{'the last' if cut else 'all'} 43 frames",
        "of the hour",
        "follows everyone",
        "2 sources, each to within a cell (0.25 m) to 0.5 m",
    ):
        assert fact in shown
    assert ("would take too long" in shown) is cut
    assert "fit it (p = 0.4)" in shown
    wrong = call(page, "texts.js", "attackText", attack | {"fit": 7e-5, "doubtful": True}, HOUR, space, NOW)
    assert "do not fit it" in wrong
    still = call(page, "texts.js", "attackText", attack | {"fit": 0.4}, HOUR | {"follows": False}, space, NOW)
    assert "assumes that nothing moved" in still
    assert "p = 7e-5" in wrong


@pytest.mark.parametrize(("rule", "beaten"), [(None, False), (0.2, False), (0.4, True)])
def test_the_view_of_an_attacker_says_when_it_beats_the_rule_of_thumb(
    page: Page, rule: float | None, beaten: bool
) -> None:
    attack = {"time": NOW, "since": NOW, "frames": 43, "sources": [{"radius": 2}, {"radius": 0.5}], "span": "day"}
    given = attack | {"cut": False, "fit": 0.4, "doubtful": False}
    space = {"kind": "floorplan", "cell": 0.25}
    shown = call(page, "texts.js", "attackText", given, HOUR | {"rule_of_thumb": rule}, space, NOW)
    assert ("beats the claim's rule of thumb, about 0.86 m from one window" in shown) is beaten
    assert ("the walls and how sources move, and has more than one window" in shown) is beaten


def test_a_site_of_bits_says_what_it_hides_and_which_zones_are_in_use(page: Page) -> None:
    bits = HOUR | {"alpha": None, "shared": 3, "assumptions": ["It assumes fresh noise."]}
    told = call(page, "texts.js", "claim", bits, "bits")
    assert "Whether one person is there, when, and in which zone, is hidden in every hour" in told
    assert "Habits: each further hour" in call(page, "texts.js", "notHidden", bits, "bits")[0]
    assert "fresh noise" in call(page, "texts.js", "meaning", bits, "bits")
    longer = {"seconds": 28_800, "epsilon": 19.6, "radius": None, "right_place": None}
    assert "epsilon 19.7" in call(page, "texts.js", "longerText", {"kind": "bits", "longer": longer})
    zones = [{"id": "a", "probability": 0.93, "expected": 0.93, "occupied": True}]
    zones.append({"id": "b", "probability": 0.2, "expected": 0.2, "occupied": False})
    result = {
        "failed": False,
        "status": "solved",
        "counts": None,
        "estimator": "presence",
        "zones": zones,
        "sources": [],
    }
    space = {"kind": "bits", "zones": [{"id": "a", "label": "Study"}, {"id": "b", "label": "Hall"}]}
    assert call(page, "texts.js", "headline", result, space) == {
        "title": "1 of 2 zones in use: Study",
        "sure": "at least 80\u00a0% sure of each zone",
    }
    lanes = call(page, "texts.js", "laneTexts", result, space)
    shown = [f"{lane['label']}: {lane['text']}" for lane in lanes]
    assert shown == ["Study: someone, 93\u00a0%", "Hall: no one, 80\u00a0%"]


@pytest.mark.parametrize(
    ("odds", "fact"),
    [
        ({"radius": 0.0288, "right_place": None}, "located to about 3 cm"),
        ({"radius": 1.24, "right_place": None}, "located to about 1.2 m"),
        ({"radius": None, "right_place": 0.853}, "named in up to 86 % of cases"),
    ],
)
def test_what_eight_hours_reveal_is_never_rounded_down(page: Page, odds: dict[str, Any], fact: str) -> None:
    longer = {"seconds": 28_800, "epsilon": 19.6} | odds
    shown = call(page, "texts.js", "longerText", {"kind": "floorplan", "longer": longer})
    for part in ("8 hours", fact, "keeps every reading", "epsilon 19.7"):
        assert part in shown


def test_a_method_without_probabilities_shows_none(page: Page) -> None:
    source = {"radius": 0.8, "probability": 1, "at": [1, 1]}
    for name in ("certainty", "brief"):
        shown = call(page, "texts.js", name, source, False, {"kind": "floorplan", "zones": []})
        assert "within 0.8 m" in shown
        assert "%" not in shown
    empty: dict[str, Any] = {"counts": None, "sources": [], "failed": False, "zones": None}
    assert call(page, "texts.js", "headline", empty, SPACE)["title"] == "No one"
    found = empty | {"status": "", "expected": 3, "sensors": 3, "set_aside": [], "doubtful": False}
    [doubt] = page.evaluate("async (given) => (await import('./static/texts.js')).doubts(given, [], () => '')", found)
    assert "not prove" in doubt


SPACE = {"kind": "floorplan", "zones": [{"id": "l", "label": "Living room"}, {"id": "s", "label": "Study"}]}


def zone(name: str, probability: float, expected: float = 0.9, *, occupied: bool = True) -> dict[str, Any]:
    return {"id": name, "probability": probability, "expected": expected, "occupied": occupied}


@pytest.mark.parametrize(
    ("counts", "zones", "title", "sure"),
    [
        (
            [0.1, 0.08, 0.82],
            [zone("l", 0.9), zone("s", 0.8)],
            "2 people: Living room, Study",
            "82 % sure of the number",
        ),
        ([0.0, 0.04, 0.06, 0.9], [zone("s", 0.9), zone("l", 1, 2.1)], "3 people: Study, Living room (2)", "90 % sure"),
        ([0.0, 0.1, 0.3, 0.25, 0.35], [zone("l", 0.6)], "3 or 4 people: Living room", "60 % sure"),
        ([0.24, 0.26, 0.25, 0.25], [], "1 or 2 people", "51 % sure"),
        ([0.1, 0.9], [zone("l", 0.4, occupied=False), zone("s", 0.45, occupied=False)], "1 person: room unclear", "90"),
        ([0.97, 0.03], [zone("l", 0.03, occupied=False)], "No one", "97 % sure"),
        ([0, 0, 0, 1], [zone("l", 1, 2.6), zone("s", 0.4)], "3 people: Living room, Study", "over 99 % sure"),
        ([0.1, 0.8, 0.1], [zone("l", 0.6), zone("s", 0.4)], "1 person: Living room or Study", "80 % sure"),
        ([0.6, 0.4], [zone("l", 0.4), zone("s", 0.5, occupied=False)], "0 or 1 people: Living room", "over 99 % sure"),
    ],
)
def test_the_headline_is_more_likely_than_not(
    page: Page, counts: list[float], zones: list[dict[str, Any]], title: str, sure: str
) -> None:
    result = {"counts": counts, "sources": [], "failed": False, "zones": zones}
    told = call(page, "texts.js", "headline", result, SPACE)
    assert told["title"] == title
    count, *rooms = call(page, "texts.js", "laneTexts", result, SPACE)
    assert [room["label"] in title for room in rooms] == [room["there"] for room in rooms], "one truth for both"
    assert count["there"] is (not title.startswith("No one"))
    assert told["sure"].replace("\u00a0", " ").startswith(sure)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (zone("l", 0.93), "someone, 93 %"),
        (zone("l", 0.98, 1.9), "about 2, 98 %"),
        (zone("l", 0.3), "perhaps still someone, 30 %"),
        (zone("l", 0.6, occupied=False), "perhaps someone, 60 %"),
        (zone("l", 0.05, 0.05, occupied=False), "no one, 95 %"),
    ],
)
def test_a_zone_says_how_sure_it_is(page: Page, given: dict[str, Any], text: str) -> None:
    assert call(page, "texts.js", "zoneText", given, "floorplan") == text


HALVES = {
    "kind": "floorplan",
    "zones": [
        {"id": name, "label": name.upper(), "places": list(range(k, k + 10))} for name, k in (("l", 0), ("s", 10))
    ],
}


@pytest.mark.parametrize(
    ("vicinity", "where", "label"),
    [
        ([3, 4], "L", "80 %, within 2 m"),
        ([*range(1, 9)], "L", "80 %, L"),
        ([3, 4, 11, 12], "L or S", "80 %, L or S"),
        ([3, 4, 5, *range(50, 60)], "room unclear", "80 %, room unclear"),
    ],
)
def test_a_vicinity_wider_than_a_room_says_the_room_or_that_it_is_unclear(
    page: Page, vicinity: list[int], where: str, label: str
) -> None:
    mark = {"place": "4", "at": [1, 1], "vicinity": vicinity, "radius": 2, "probability": 0.8}
    assert call(page, "texts.js", "whereText", mark, HALVES, []) == where
    assert call(page, "texts.js", "brief", mark, True, HALVES) == label


@pytest.mark.parametrize(
    ("same", "text"),
    [
        (0.004, "followed for 45 min, may have changed places with another"),
        (0.68, "followed for 45 min, over 60 % sure it is the same one"),
        (1, "followed for 45 min, over 90 % sure it is the same one"),
        (None, "followed for 45 min"),
    ],
)
def test_a_mark_that_may_have_swapped_says_so_without_a_figure(page: Page, same: float | None, text: str) -> None:
    assert call(page, "texts.js", "followed", {"since": 0, "same": same}, 45 * 60_000) == text
    assert call(page, "texts.js", "followed", {"since": 0, "same": same}, 0) == "new"


def test_marks_take_the_label_of_their_track_and_the_rest_are_doubts(page: Page) -> None:
    track = {"since": 5, "same": 0.9, "at": [1, 1], "place": "3", "radius": 1}
    tracks = [track | {"label": 4, "probability": 0.8}, track | {"label": 9, "probability": 0.3}]
    followed = {"sources": [{"label": 4, "at": [1, 1], "probability": 0.8}], "tracks": tracks}
    [mark, doubt] = call(page, "map_view.js", "marksOf", followed)
    assert (mark["id"], mark["since"], mark.get("doubt")) == (4, 5, None)
    assert (doubt["id"], doubt["doubt"]) == (9, True)
    several = {"sources": [{"label": label} for label in (10, 2, 7)], "tracks": []}
    assert [one["id"] for one in call(page, "map_view.js", "marksOf", several)] == [2, 7, 10]
    alone = {"sources": [{"label": None, "at": [1, 1]}, {"label": None, "at": [2, 2]}], "tracks": []}
    assert [one["id"] for one in call(page, "map_view.js", "marksOf", alone)] == ["a", "b"]
