"""`[motion]`, `[[entrance]]` and `hold`: what they mean, what is refused, and that they do not affect the noise."""

from cloakwork.recovery import Motion
from cloakwork.site import Site, parse_site
from tests.site.test_zones import GRAPH, LINE, PLANE, WALLS

MANY = WALLS.replace('kind = "pulse"\n[privacy]', 'kind = "pulse"\nmax_count = 40\n[privacy]')


def moving(text: str, *lines: str) -> Site:
    return parse_site(text + "\n".join(["[motion]", *lines]) + "\n")


def test_people_live_on_floor_plans_and_sources_elsewhere_stay() -> None:
    assert parse_site(WALLS).motion == Motion()
    for text in (LINE, PLANE, GRAPH):
        assert parse_site(text).motion == Motion.still()
    assert moving(WALLS, 'kind = "still"').motion == Motion.still()
    assert moving(GRAPH, 'kind = "people"', "speed = 0.01").motion == Motion(speed=0.01)


def test_each_key_replaces_one_default() -> None:
    site = moving(WALLS, 'stay = "20min"', "walk = 15", "speed = 0.5", 'present = "4h"', 'absent = "1d"')
    assert site.motion == Motion(
        mean_sit_s=1200.0, mean_walk_s=15.0, speed=0.5, mean_present_s=14_400.0, mean_absent_s=86_400.0
    )
    assert moving(LINE, 'absent = "1w"').motion == Motion.still(mean_absent_s=604_800.0)


def test_zones_are_held_for_two_periods_and_at_least_half_a_minute() -> None:
    hourly = parse_site(WALLS)
    assert hourly.hold_s == 2 * hourly.period_ms / 1000 > 7200
    assert parse_site(WALLS + 'window = "1min"\nreadings_per_window = 20\n').hold_s == 30.0
    assert moving(WALLS, 'hold = "5min"').hold_s == 300.0
    assert moving(WALLS, "hold = 0").hold_s == 0.0
    assert moving(MANY, "hold = 90").hold_s == 90.0, "zones of frames that are recovered alone are held, too"


def test_sources_that_are_too_many_or_have_too_many_places_are_not_followed() -> None:
    assert parse_site(WALLS).follows
    assert not parse_site(MANY).follows
    assert not parse_site(LINE.replace("places = 10", "places = 5000")).follows
