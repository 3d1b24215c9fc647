"""The page for everyone: keyboard, screen reader, weak eyes, little motion, small and large screens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import running_browser, visiting
from tests.collect.access import contrast, structure, tab_through
from tests.collect.fake_api import running_api
from tests.collect.fake_sites import PERIOD_MS
from tests.collect.page_kit import USUAL, marks, shows, sites, until, watching

# in the order in which they stand on the page
STOPS = [
    "site",
    "theme",
    "full",
    "sign-out",
    "layer-heat",
    "layer-sensors",
    "layer-attack",
    "layer-truth",
    "back",
    "play",
    "slider",
    "go-live",
    "range",
    "speed",
    "only-bad",
]
SCREENS = {"phone": (360, 740), "tablet": (820, 1180), "laptop": (1366, 768), "hd": (1920, 1080), "wall": (3840, 2160)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_and_contrast_of_signing_in(browser: Browser, scheme: str) -> None:
    with running_api(sites()) as api, visiting(browser, api.url, expected=USUAL, color_scheme=scheme) as visit:
        expect(visit.page.locator("#sign-in")).to_be_visible()
        visit.page.fill("#token", "cw_wrong")
        visit.page.press("#token", "Enter")
        expect(visit.page.locator("#sign-in-problem")).not_to_be_empty()
        assert structure(visit.page) == []
        assert contrast(visit.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("site", ["flat", "hall", "pipes", "new"])
def test_names_and_contrast_of_every_kind_of_site(browser: Browser, site: str, scheme: str) -> None:
    with watching(browser, site=site, color_scheme=scheme, expected=("net::ERR",)) as (visit, api):
        page = visit.page
        expect(page.locator("#worries")).not_to_be_empty()
        expect(page.locator("#charts figure")).to_have_count(3)
        page.check("#layer-attack")
        if page.is_visible("#layer-truth"):
            page.check("#layer-truth")
        for summary in page.locator("summary").all():
            summary.click()
        page.wait_for_timeout(300)
        assert structure(page) == []
        assert contrast(page) == []
        if site == "flat":
            api.cut()
            expect(page.locator("#lost")).to_be_visible()
            assert contrast(page) == []


def test_the_checks_notice_what_is_wrong(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        page.evaluate(
            """() => {
              const add = (tag, id) => Object.assign(document.createElement(tag), { id });
              const pale = add("p", "pale");
              pale.textContent = "hard to read";
              pale.style.color = "#999";
              const faults = [add("button", "nameless"), add("h4", "deep"), pale, add("p", "plan")];
              document.querySelector("main").append(...faults);
              document.getElementById("deep").textContent = "a level too deep";
              document.querySelector("table caption").remove();
            }"""
        )
        found = structure(page)
        for wrong in ("no name: <button id=nameless", "left out: <h4 id=deep", "twice: #plan", "no caption: <table"):
            assert any(wrong in one for one in found), wrong
        assert any("<p id=pale" in one for one in contrast(page))


def test_everything_is_reached_by_keyboard_in_the_order_of_the_page(browser: Browser) -> None:
    with watching(browser, viewport={"width": 1280, "height": 800}) as (visit, _):
        page = visit.page
        page.reload()
        expect(page.locator("#board")).to_be_visible()
        expect(page.locator("#slider")).to_be_enabled()
        expect(page.locator("#layer-truth")).to_be_visible()
        expect(page.locator("#worries li")).to_have_count(3)
        found = tab_through(page)
        assert found[0]["text"] == "Skip to the map"
        assert all(at["ring"] for at in found), [at for at in found if not at["ring"]]
        assert all(at["seen"] for at in found), [at for at in found if not at["seen"]]
        assert [at["id"] for at in found if at["id"] in STOPS] == STOPS
        page.keyboard.press("Tab")
        names = {str(at["text"]) for at in found}
        assert {"What this means, and what is not hidden"[:30], "Sources as a table", "Noise"} <= names


def test_a_walk_with_the_keyboard_alone(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page, press = visit.page, visit.page.keyboard.press
        page.reload()
        expect(page.locator("#board")).to_be_visible()
        expect(page.locator("#slider")).to_be_enabled()
        press("Tab")
        press("Enter")  # skip to the map
        assert page.evaluate("() => document.activeElement.id") == "main"
        press("Tab")
        assert page.evaluate("() => document.activeElement.id") == "layer-heat"
        press("Space")
        expect(page.locator("#plan canvas")).to_be_hidden()
        press("Tab")
        press("Space")
        expect(page.locator("#plan .sensor")).to_have_count(0)
        page.locator("#slider").focus()
        press("ArrowLeft")
        expect(page.locator("#state-words")).to_contain_text("Past")
        press("Tab")
        press("Enter")  # live
        expect(page.locator("#state-words")).to_contain_text("Live")
        page.locator("#site").focus()
        press("ArrowDown")
        expect(page.locator("#claim")).to_contain_text("Each source")
        page.locator("#theme").focus()
        press("Enter")
        press("Enter")
        assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
        page.reload()
        expect(page.locator("#theme")).to_have_text("Theme: dark")


def test_what_changes_is_said_once_and_politely(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page = visit.page
        live = page.locator("#announce")
        expect(live).to_have_attribute("aria-live", "polite")
        expect(live).to_contain_text("flat. Three sources")
        for _ in range(4):
            api.advance(3 * PERIOD_MS)
        expect(live).to_contain_text("Mark")
        said = page.evaluate(
            """() => new Promise((done) => {
              let times = 0;
              const said = new MutationObserver(() => (times += 1));
              said.observe(document.getElementById("announce"), { childList: true });
              setTimeout(() => done(times), 2000);
            })"""
        )
        assert said <= 1


def test_who_asks_for_less_motion_gets_none(browser: Browser) -> None:
    with watching(browser, reduced_motion="reduce") as (visit, api):
        page, flat = visit.page, api.sites["flat"]
        expect(page.locator("#plan .mark")).to_have_count(3)
        page.evaluate(
            """() => {
              globalThis.seen = new Set();
              const note = () => document.querySelectorAll("#plan .mark").forEach((m) => seen.add(m.dataset.at));
              new MutationObserver(note).observe(document.getElementById("plan"), { childList: true, subtree: true });
            }"""
        )
        before = flat.times(0, api.now)[0]
        api.advance(5 * PERIOD_MS)
        until(lambda: shows(page, flat.result(flat.times(before, api.now)[0])["sources"]), page)
        page.wait_for_timeout(500)
        shown = {tuple(float(v) for v in at.split()) for at in page.evaluate("() => [...seen]")}
        allowed = {tuple(spot["at"]) for when in flat.times(before, api.now) for spot in flat.result(when)["sources"]}
        assert shown
        assert shown <= allowed
        assert set(marks(page).values()) <= allowed


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen(browser: Browser, screen: str, scheme: str) -> None:
    width, height = SCREENS[screen]
    with watching(browser, viewport={"width": width, "height": height}, color_scheme=scheme) as (visit, _):
        page = visit.page
        expect(page.locator("#worries li")).to_have_count(3)
        expect(page.locator("#charts .curve")).to_have_count(3)
        page.wait_for_timeout(300)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        box = page.locator("#plan .drawing").bounding_box()
        assert box is not None
        assert box["width"] > 0.4 * width
        time = page.locator(".time").bounding_box()
        assert time is not None
        if screen != "phone":  # plan and time are seen together
            assert time["y"] + time["height"] <= height
        assert structure(page) == []
        visit.picture(f"{screen}-{scheme}")


def test_text_twice_as_large_still_fits(browser: Browser) -> None:
    """At 200 % zoom a laptop's screen has half as many pixels each way."""
    with watching(browser, viewport={"width": 640, "height": 400}, device_scale_factor=2) as (visit, _):
        assert visit.page.evaluate("() => document.documentElement.scrollWidth") <= 640
        visit.picture("zoomed")
