"""Zones on the page: in words below the map, for the moment that is shown."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from cloakwork.site import parse_site
from tests.browser import running_browser
from tests.collect.access import contrast, structure
from tests.collect.fake_sites import PERIOD_MS, START_MS, FakeSite, flat_text
from tests.collect.page_kit import text, watching

NAMED = flat_text() + (
    '[[zone]]\nid = "living"\nlabel = "Living room"\nroom = [3.0, 4.0]\n'
    '[[zone]]\nid = "north"\nroom = [8.0, 6.0]\n'
    '[[zone]]\nid = "bed"\nlabel = "<b>Bed</b>"\ncorners = [[9.0, 0.0], [10.0, 0.5]]\n'
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


def lines(page: Page) -> list[str]:
    return [line.replace("\u00a0", " ") for line in page.locator("#zones-list li").all_inner_texts()]


def said(*told: tuple[float | None, float], text: str = NAMED) -> dict[str, FakeSite]:
    """A site of which the test says what its zones are."""
    names = [zone.id for zone in parse_site(text).zones]
    odds = dict(zip(names, told, strict=True))
    return {"flat": FakeSite(text, START_MS - 5 * PERIOD_MS, zone_odds=odds)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_zone_has_a_line_that_says_how_sure_it_is(browser: Browser, theme: str) -> None:
    given = said((0.993, 1.9), (0.62, 0.7), (0.3, 0.3))
    with watching(browser, given=given, color_scheme=theme) as (visit, _):
        page = visit.page
        expect(page.locator("#zones-list li")).to_have_count(3)
        assert lines(page) == [
            "Living room: very likely someone (99 % sure, 1.9 expected)",
            "north: probably someone (62 % sure)",
            "<b>Bed</b>: probably no one (70 % sure)",
        ]
        assert page.locator('#zones-list [data-there="true"]').count() == 2
        assert page.get_by_role("list", name="Zones").count() == 1
        assert structure(page) == []
        assert contrast(page) == []
        visit.picture(f"zones-{theme}")


def test_a_method_without_odds_says_what_it_found(browser: Browser) -> None:
    with watching(browser, given=said((None, 0.83), (None, 0.0), (0.001, 0.001))) as (visit, _):
        expect(visit.page.locator("#zones-list li")).to_have_count(3)
        assert lines(visit.page) == [
            "Living room: weight 0.83 found (this method gives no odds)",
            "north: weight 0 found (this method gives no odds)",
            "<b>Bed</b>: very likely no one (over 99 % sure)",
        ]


def test_rooms_without_names_are_numbered_and_follow_the_moment_shown(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page = visit.page
        expect(page.locator("#zones-list li")).to_have_count(3)
        assert text(page, "#zones-list li:first-child").startswith("room 1: ")
        live = lines(page)
        site = api.sites["flat"]
        page.click("#back")
        expect(page.locator("#state-words")).to_contain_text("Past")
        when = site.times(0, api.now)[1]
        weights = site.map(site.result(when))
        sure = [f"{round(100 * max(p, 1 - p))} % sure" for p in (zone["probability"] for zone in site.zones(weights))]
        expect(page.locator("#zones-list li").first).to_contain_text(sure[0].split(" ")[0])
        assert all(any(part in line for part in (one, "99 %")) for one, line in zip(sure, lines(page), strict=True))
        page.click("#go-live")
        expect(page.locator("#state-words")).to_contain_text("Live")
        page.wait_for_function(
            "said => document.querySelector('#zones-list').textContent.includes(said)",
            arg=live[1].replace(" %", "\u00a0%"),
        )
        visit.picture("zones-rooms")


@pytest.mark.parametrize("name", ["hall", "new"])
def test_a_site_without_zones_or_without_a_map_shows_no_list(browser: Browser, name: str) -> None:
    with watching(browser, site=name) as (visit, _):
        expect(visit.page.locator("#zones")).to_be_hidden()


def test_a_source_on_a_line_is_no_person_and_a_phone_shows_all_lines(browser: Browser) -> None:
    given = said((0.95, 1.0), (0.05, 0.1), text=LINE)
    with watching(browser, given=given, viewport={"width": 360, "height": 740}) as (visit, _):
        page = visit.page
        expect(page.locator("#zones-list li")).to_have_count(2)
        assert lines(page) == [
            "near: very likely a source (95 % sure)",
            "far: very likely no source (95 % sure)",
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visit.picture("zones-phone")


LINE = """
name = "flat"
sensors = 12
[physics]
kind = "line"
places = 40
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 2.0
delta = 1e-6
alpha = 0.1
window = "30min"
readings_per_window = 30
[[zone]]
id = "near"
between = [0.0, 0.5]
[[zone]]
id = "far"
between = [0.5, 1.0]
"""


def test_a_mark_is_in_the_zone_that_the_site_file_names(browser: Browser) -> None:
    given = {"flat": FakeSite(NAMED, START_MS - 5 * PERIOD_MS)}
    with watching(browser, given=given) as (visit, _):
        expect(visit.page.locator("#told-sources li")).to_have_count(3)
        told = text(visit.page, "#told-sources")
        assert "in Living room" in told
        assert "in north" in told
        assert "left room" not in told
