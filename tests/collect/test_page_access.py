"""Accessibility of the page: keyboard, screen reader, contrast, motion, small and large screens."""

from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import Visit, visiting
from tests.collect.access import contrast, tab_through, violations
from tests.collect.fake_api import FakeApi, running_api
from tests.collect.fake_sites import PERIOD_MS
from tests.collect.page_kit import USUAL, marks, shows, sign_in, sites, until, watching

# in the order in which they stand on the page
STOPS = [
    "site",
    "theme",
    "sign-out",
    "layer-heat",
    "layer-sensors",
    "layer-truth",
    "layer-alone",
    "layer-attack",
    "back",
    "play",
    "range",
    "go-settled",
    "go-live",
    "slider",
    "only-bad",
]
# how far things moved without being asked to: the sum of layout shifts, of which browsers call 0.1 good
MOVED = """() => new Promise((done) => {
  const of = (entry) => (entry.hadRecentInput ? 0 : entry.value);
  const all = (list) => done(list.getEntries().reduce((sum, entry) => sum + of(entry), 0));
  new PerformanceObserver(all).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(0), 2000);
})"""
SCREENS = {"phone": (360, 740), "tablet": (820, 1180), "laptop": (1366, 768), "hd": (1920, 1080), "wall": (3840, 2160)}


@pytest.mark.parametrize("site", ["flat", "hall", "pipes", "new"])
def test_names_and_contrast_are_sufficient_for_every_kind_of_site(browser: Browser, site: str) -> None:
    with (
        running_api(sites()) as api,
        visiting(browser, f"{api.url}?site={site}", expected=(*USUAL, "net::ERR")) as visit,
    ):
        page = visit.page
        if site == "flat":
            sign_in(page, "cw_wrong")
            expect(page.locator("#sign-in-problem")).not_to_be_empty()
            assert in_both_themes(page) == []
        sign_in(page)
        page.wait_for_selector("#board[aria-busy=false]")
        expect(page.locator("#problems")).not_to_be_empty()
        expect(page.locator("#lanes li")).not_to_have_count(0)
        page.check("#layer-attack")
        if page.is_visible("#layer-truth"):
            page.check("#layer-truth")
        expect(page.locator("#attack-caption")).to_contain_text("No frames yet" if site == "new" else "reveal of")
        for summary in page.locator("summary").all():
            summary.click()
        assert in_both_themes(page) == []
        if site == "flat":
            api.cut()
            expect(page.locator("#lost")).to_be_visible()
            assert in_both_themes(page) == []


def in_both_themes(page: Page) -> list[str]:
    """Whatever axe finds, and weak contrasts of drawings, in the light and in the dark theme."""
    wrong: list[str] = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        wrong += violations(page) + contrast(page)
    return wrong


def test_everything_is_reached_by_keyboard_in_the_order_of_the_page(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    page.reload()
    expect(page.locator("#board")).to_be_visible()
    expect(page.locator("#play")).to_be_enabled()
    expect(page.locator("#layer-truth")).to_be_visible()
    expect(page.locator("#problems li")).to_have_count(5)
    stops = tab_through(page)
    assert stops[0]["text"] == "Skip to the map"
    assert all(at["ring"] for at in stops), [at for at in stops if not at["ring"]]
    assert all(at["seen"] for at in stops), [at for at in stops if not at["seen"]]
    assert [at["id"] for at in stops if at["id"] in STOPS] == STOPS
    names = {str(at["text"]) for at in stops}
    assert {"What this means, and what is not hidden"[:30], "Noise"} <= names


def test_the_keyboard_alone_operates_the_page(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    press = page.keyboard.press
    page.reload()
    expect(page.locator("#board")).to_be_visible()
    expect(page.locator("#play")).to_be_enabled()
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
    expect(page.locator("#state-text")).to_contain_text("Past")
    page.locator("#go-live").focus()
    press("Enter")
    expect(page.locator("#state-text")).to_contain_text("Live")
    page.locator("#site").focus()
    press("ArrowDown")
    expect(page.locator("#claim")).to_contain_text("by one source")
    page.locator("#theme").focus()
    press("Enter")
    press("Enter")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    page.reload()
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    page.click("#theme")
    page.select_option("#site", "flat")


def test_changes_are_announced_politely_and_not_too_often(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    page.reload()
    live = page.locator("#announce")
    expect(live).to_have_attribute("aria-live", "polite")
    expect(live).to_contain_text("flat. 3 people")
    page.evaluate(
        """() => {
          globalThis.announced = [];
          const note = () => announced.push(performance.now());
          new MutationObserver(note).observe(document.getElementById("announce"), { childList: true });
        }"""
    )
    for _ in range(4):
        api.advance(3 * PERIOD_MS)
    api.sites["flat"].people = 2
    api.advance(PERIOD_MS)
    expect(live).to_contain_text("Mark 3 is gone")
    api.sites["flat"].people = 3
    times = page.evaluate("() => announced")
    assert all(later - earlier > 4900 for earlier, later in pairwise(times))


def test_the_checks_notice_what_is_wrong(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    # elements of our own: the page redraws its own tables whenever it likes
    page.evaluate(
        """() => {
          const add = (tag, id) => Object.assign(document.createElement(tag), { id });
          const pale = add("p", "pale");
          pale.textContent = "hard to read";
          pale.style.color = "#999";
          document.querySelector("main").append(add("button", "nameless"), add("h4", "deep"), pale);
          document.getElementById("deep").textContent = "a level too deep";
          const word = document.querySelector("#plan svg text").cloneNode(true);
          document.querySelector("#plan svg.front").append(word);
          word.setAttribute("class", "faint");
          word.style.fill = "#999";
        }"""
    )
    wrong, weak = violations(page), contrast(page)
    page.reload()
    for fault in ("button-name: <button id=", "heading-order: <h4", "color-contrast: <p id="):
        assert any(fault in text for text in wrong), fault
    assert any("class=faint" in text for text in weak)


@pytest.mark.parametrize("screen", ["phone", "laptop"])
def test_nothing_moves_while_the_page_fills(browser: Browser, screen: str) -> None:
    width, height = SCREENS[screen]
    with watching(browser, viewport={"width": width, "height": height}) as (visit, api):
        page = visit.page
        page.reload()
        page.wait_for_selector("#board[aria-busy=false]")
        expect(page.locator("#lanes .there")).not_to_have_count(0)
        api.advance(PERIOD_MS)
        until(lambda: shows(page, api.sites["flat"].result(api.sites["flat"].times(0, api.now)[0])["sources"]), page)
        assert page.evaluate(MOVED) < 0.01


def test_marks_do_not_glide_for_people_who_prefer_less_motion(browser: Browser) -> None:
    with watching(browser, reduced_motion="reduce") as (visit, api):
        page, flat = visit.page, api.sites["flat"]
        expect(page.locator("#plan .mark:not(.doubt)")).to_have_count(3)
        page.evaluate(
            """() => {
              globalThis.seen = new Set();
              const marks = () => [...document.querySelectorAll("#plan .mark:not(.doubt)")];
              const note = () => marks().forEach((mark) => seen.add(mark.dataset.at));
              new MutationObserver(note).observe(document.getElementById("plan"), { childList: true, subtree: true });
            }"""
        )
        before = flat.times(0, api.now)[0]
        api.advance(5 * PERIOD_MS)
        until(lambda: shows(page, flat.result(flat.times(before, api.now)[0])["sources"]), page)
        shown = {tuple(float(v) for v in at.split()) for at in page.evaluate("() => [...seen]")}
        allowed = {tuple(spot["at"]) for when in flat.times(before, api.now) for spot in flat.result(when)["sources"]}
        assert shown
        assert shown <= allowed
        assert set(marks(page).values()) <= allowed


def test_the_page_fits_every_screen(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, _ = flat_visit
    page = visit.page
    expect(page.locator("#problems li")).to_have_count(5)
    expect(page.locator("#lanes .there")).not_to_have_count(0)
    for screen, (width, height) in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        until(lambda: fits(page), page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            visit.picture(f"{screen}-{scheme}")
        assert screen != "phone" or in_both_themes(page) == []


def fits(page: Page) -> bool:
    """Whether the map is wide enough and, except on a phone, in view together with the time slider."""
    screen, drawing = page.viewport_size, page.locator("#plan .drawing").bounding_box()
    slider = page.locator(".time").bounding_box()
    assert screen is not None
    if drawing is None or slider is None:
        return False
    in_view = slider["y"] + slider["height"] <= screen["height"] or screen["width"] < 400
    return drawing["width"] > 0.4 * screen["width"] and in_view


def test_the_page_fits_at_twice_the_text_size(browser: Browser) -> None:
    """At 200 % zoom a laptop's screen has half as many pixels each way."""
    with watching(browser, viewport={"width": 640, "height": 400}, device_scale_factor=2) as (visit, _):
        assert visit.page.evaluate("() => document.documentElement.scrollWidth") <= 640
        visit.picture("zoomed")
