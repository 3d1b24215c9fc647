"""One truth: sentence, rooms, marks and lanes of the page come from one model, over a day with leaving and doubt."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from cloakwork.collect.api.site_geometry import site_geometry
from tests.collect.api_kit import collected
from tests.collect.page_kit import FLAT

FRAMES, SAMPLES, STEP_MS, HOLD = 288, 100, 300_000, 2
AWAY = 3  # the number after the last room
GEOMETRY = site_geometry("flat", collected(FLAT)).model_dump()
ZONES = GEOMETRY["zones"]
MODEL = """async ([results, lanes, space]) => {
  const { homeModel, laneStates } = await import("./static/home_model.js");
  return [results.map((one) => homeModel(one, space)), laneStates(lanes, space)];
}"""


def call(page: Page, module: str, name: str, *arguments: Any) -> Any:
    """Call a function of the page's code."""
    program = "async ([module, name, given]) => (await import(`./static/${module}`))[name](...given)"
    answer = page.evaluate(program, [module, name, list(arguments)])
    return answer.replace("\u00a0", " ") if isinstance(answer, str) else answer


def day() -> list[dict[str, Any]]:
    """A day of three people who leave and return, seen through a posterior of varying sharpness; rooms keep a state."""
    rng = np.random.default_rng(11)
    people = np.array([0, 1, 2])
    occupied, waiting = [False] * len(ZONES), [0] * len(ZONES)
    results = []
    for k in range(FRAMES):
        moves = rng.random(3) < 0.05
        people = np.where(moves, rng.integers(0, 4, 3), people)
        if 100 <= k < 130:
            people[:] = AWAY  # all have left
        sharp = 0.98 if k % 40 < 25 else rng.uniform(0.3, 0.95)  # times of doubt
        drawn = np.where(rng.random((SAMPLES, 3)) < sharp, people, rng.integers(0, 4, (SAMPLES, 3)))
        inside = np.stack([(drawn == room).sum(axis=1) for room in range(len(ZONES))], axis=1)
        chance = (inside > 0).mean(axis=0)
        for room, p in enumerate(chance):
            differs = (p >= 0.5) != occupied[room]
            waiting[room] = waiting[room] + 1 if differs else 0
            if differs and (waiting[room] >= HOLD or p > 0.9 or p < 0.1):
                occupied[room], waiting[room] = not occupied[room], 0
        counts = np.bincount(inside.sum(axis=1), minlength=5) / SAMPLES
        results.append(
            {
                "time": k * STEP_MS,
                "failed": False,
                "status": "sampled",
                "counts": counts.tolist(),
                "sources": sources(drawn, rng),
                "zones": [
                    {"id": zone["id"], "probability": p, "expected": mean, "occupied": there, "since": 0}
                    for zone, p, mean, there in zip(ZONES, chance, inside.mean(axis=0), occupied, strict=True)
                ],
            }
        )
    return results


def sources(drawn: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A mark for each person who is more likely there than not, with the places where they may be."""
    found = []
    for label, rooms in enumerate(drawn.T, start=1):
        there = rooms[rooms < AWAY]
        if 2 * len(there) < SAMPLES:
            continue
        places = [int(rng.choice(ZONES[room]["places"])) for room in there]
        found.append({"label": label, "place": str(places[0]), "at": GEOMETRY["places"][places[0]], "vicinity": places})
    return found


def test_sentence_rooms_marks_and_lanes_never_contradict_each_other(page: Page) -> None:
    results = day()
    lanes = {
        "counts": [int(np.argmax(one["counts"])) for one in results],
        "zones": [
            {"id": zone["id"]}
            | {name: [one["zones"][row][name] for one in results] for name in ("probability", "occupied")}
            for row, zone in enumerate(ZONES)
        ],
    }
    models, drawn = page.evaluate(MODEL, [results, lanes, GEOMETRY])
    seen = set()
    for k, model in enumerate(models):
        rooms = {room["label"]: room for room in model["rooms"]}
        text, states = model["sentence"], {label: room["state"] for label, room in rooms.items()}
        assert [lane["states"][k] for lane in drawn] == list(states.values())
        for label, room in rooms.items():
            assert (label in text) == (room["state"] != "empty"), (text, states)
            assert (room["people"] > 0) == (room["state"] == "occupied")
            inside = [mark for mark in model["marks"] if mark["room"]["label"] == label]
            assert len(inside) <= room["people"]
            assert room["state"] != "occupied" or room["probability"] >= 0.8
        assert ("Nobody" in text) == (set(states.values()) == {"empty"})
        assert model["low"] <= model["total"] <= model["high"]
        assert sum(room["people"] for room in rooms.values()) <= model["total"]
        if "Nobody" in text:
            assert model["total"] == 0
        if set(states.values()) <= {"empty", "occupied"}:
            assert sum(room["people"] for room in rooms.values()) == model["total"]
        seen |= set(states.values()) | {word for word in ("Nobody", "probably") if word in text} | {model["total"]}
    assert seen >= {"occupied", "perhaps", "empty", "Nobody", "probably", 0, 1, 2, 3}, "the day has everything"


SPACE = {
    "kind": "floorplan",
    "places": [[0], [1], [2]],
    "zones": [
        {"id": "a", "label": "Living room", "places": [0]},
        {"id": "b", "label": "Study", "places": [1]},
        {"id": "c", "label": "Lab 3", "places": [2]},
    ],
}


def result(counts: list[float], *odds: tuple[float | None, bool | None, float]) -> dict[str, Any]:
    zones = [
        {"id": name, "probability": p, "occupied": there, "expected": mean, "since": 0}
        for name, (p, there, mean) in zip("abc", odds, strict=True)
    ]
    return {"failed": False, "status": "sampled", "counts": counts, "sources": [], "zones": zones}


NOT = (0.02, False, 0.02)
THREE = "Three people are here: two in the living room, one in the study."
EITHER = "Someone is probably in the living room or in Lab 3."
ANOTHER = "Two people are here: one in the living room, another probably in the study."
PERHAPS = "One or two people are in the living room, and perhaps someone in the study."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (result([0, 0, 0, 1], (0.99, True, 2.0), (0.95, True, 1.0), NOT), THREE),
        (result([0, 1], (0.99, True, 1.0), NOT, NOT), "One person is in the living room."),
        (result([0.3, 0.7], (0.66, True, 0.7), NOT, NOT), "Someone is probably in the living room."),
        (result([0.7, 0.3], (0.3, False, 0.3), NOT, NOT), "Someone is perhaps in the living room."),
        (result([0.96, 0.04], NOT, NOT, NOT), "Nobody is here."),
        (result([0.1, 0.9], (0.45, False, 0.45), NOT, (0.45, False, 0.45)), EITHER),
        (result([0, 0.2, 0.8], (0.95, True, 1.0), (0.6, True, 0.6), NOT), ANOTHER),
        (result([0, 0.45, 0.4, 0.15], (0.95, True, 1.0), (0.5, True, 0.6), NOT), PERHAPS),
    ],
)
def test_the_sentence_says_who_is_where_and_no_more_than_is_known(page: Page, given: Any, sentence: str) -> None:
    assert call(page, "home_model.js", "homeModel", given, SPACE)["sentence"] == sentence


def test_the_past_is_told_in_the_past(page: Page) -> None:
    told = call(page, "home_model.js", "homeModel", result([0.96, 0.04], NOT, NOT, NOT), SPACE, {"past": True})
    assert told["sentence"] == "Nobody was here."
    assert told["sure"] == "almost certain that nobody is here (96\u00a0%)"


def test_a_site_of_bits_says_which_rooms_are_in_use(page: Page) -> None:
    given = result([], (0.93, True, 0.93), (0.5, True, 0.5), NOT) | {"counts": None}
    found = call(page, "home_model.js", "homeModel", given, SPACE | {"kind": "bits"})
    assert found["sentence"] == "One of 3 rooms is in use: Living room; perhaps Study."
    assert found["sure"] == "at least 50\u00a0% sure of each room"


def test_a_method_without_probabilities_shows_none(page: Page) -> None:
    given = result([], *[(None, None, 0.83)] * 3) | {"counts": None}
    found = call(page, "home_model.js", "homeModel", given, SPACE)
    assert found["sure"] == "this method gives no probabilities"
    assert {room["status"] for room in found["rooms"]} == {"weight 0.83"}
    assert "%" not in "".join(room["chance"] for room in found["rooms"])


FORECAST = {"zone": "room", "room": 0.98, "room_error": 0.0, "usual_room": 0.6, "useless": False}


@pytest.mark.parametrize(
    ("forecast", "poor", "facts"),
    [
        (None, False, ["not simulated"]),
        (FORECAST, False, ["98 times in 100 after 10 min", "always guessing: 6 times in 10"]),
        (FORECAST | {"room": 0.91, "room_error": 0.04}, False, ["right 8 to 10 times in 10 after"]),
        (FORECAST | {"room": 0.5, "useless": True}, True, ["no better than guessing"]),
    ],
)
def test_how_often_a_set_up_is_right_comes_from_its_plan(
    page: Page, forecast: Any, poor: bool, facts: list[str]
) -> None:
    found = call(page, "home_model.js", "forecastText", {"forecast": forecast, "lag": 10, "period_ms": 60_000})
    assert found["poor"] is poor
    assert [fact for fact in facts if fact not in found["text"].replace("\u00a0", " ")] == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("percent", 0.9999, "over 99 %"),
        ("percent", 0.001, "under 1 %"),
        ("percent", 0.867, "87 %"),
        ("duration", 3_900_000, "1 h 5 min"),
        ("duration", 640, "0.6 s"),
        ("windowName", 3600, "hour"),
        ("windowName", 1800, "30 minutes"),
        ("number", 1e-5, "1e-5"),
        ("number", 12345678, "1.2e7"),
    ],
)
def test_numbers_and_durations_are_rounded(page: Page, name: str, value: float, expected: str) -> None:
    assert call(page, "formats.js", name, value) == expected


HOUR = {
    "alpha": 0.2,
    "epsilon": 4,
    "delta": 1e-5,
    "scope": "network",
    "window_s": 3600,
    "stay": None,
    "readings_per_window": 60,
    "follows": True,
    "assumptions": ["It assumes this."],
    "left_open": ["Rooms in which warmth lingers are not covered."],
}


def test_the_guarantee_says_its_distance_window_and_observer_and_what_it_leaves_open(page: Page) -> None:
    [told] = call(page, "privacy_texts.js", "guarantees", HOUR, "floorplan")
    for fact in ("Moves of up to 0.2 m by one person", "every hour", "all sensors", "epsilon 4, delta 1e-5"):
        assert fact in told.replace("\u00a0", " ")
    stay = {"stay": {"seconds": 28_800, "epsilon": 6, "delta": 1e-6}}
    assert "stay of up to 8 hours" in call(page, "privacy_texts.js", "guarantees", HOUR | stay, "floorplan")[1]
    open_ = call(page, "privacy_texts.js", "notHidden", HOUR, "floorplan")
    assert open_[-1] == HOUR["left_open"][0]  # type: ignore[index]
    one = call(page, "privacy_texts.js", "notHidden", HOUR | {"scope": "sensor"}, "floorplan")
    assert any("combines several sensors, as this page does" in text for text in one)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7])
def test_the_factor_is_never_rounded_down(page: Page, epsilon: float) -> None:
    told = call(page, "privacy_texts.js", "meaning", HOUR | {"epsilon": epsilon}, "floorplan")
    assert float(told.partition("at most ")[2].partition(" times")[0]) >= np.exp(epsilon)


def test_a_site_of_bits_says_what_it_hides(page: Page) -> None:
    bits = HOUR | {"alpha": None}
    assert "in which zone, is hidden in every hour" in call(page, "privacy_texts.js", "guarantees", bits, "bits")[0]
    assert "Habits: each further hour" in call(page, "privacy_texts.js", "notHidden", bits, "bits")[0]
    longer = {"seconds": 28_800, "epsilon": 19.6, "radius": None, "right_place": None}
    assert "epsilon 19.7" in call(page, "privacy_texts.js", "longerText", {"kind": "bits", "longer": longer})


@pytest.mark.parametrize("cut", [False, True])
def test_the_view_of_an_attacker_says_its_fit_and_its_limits(page: Page, cut: bool) -> None:
    attack = {"time": 9e12, "since": 9e12, "frames": 43, "sources": [{"radius": 2}, {"radius": 0}], "span": "day"}
    given = attack | {"cut": cut, "fit": 1e-5, "doubtful": True}
    shown = call(page, "privacy_texts.js", "attackText", given, HOUR, {"kind": "floorplan", "cell": 0.25}, 9e12)
    for fact in ("a cell (0.25 m) to 2 m", "of the day", "follows everyone", "do not fit it (p = 1e-5)"):
        assert fact in shown
    assert ("would take too long" in shown) is cut
