"""Accessibility of the page: keyboard, screen reader, contrast, small and large screens."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import Visit
from tests.collect.access import contrast, tab_through, violations
from tests.collect.page_kit import FLAT, GRAPH, LINE, NEW, Home, go, sign_in, watching

ROUTES = ["home", "history", "devices", "privacy", "settings"]
# how far things moved without being asked to: the sum of layout shifts, of which browsers call 0.1 good
MOVED = """() => new Promise((done) => {
  const of = (entry) => (entry.hadRecentInput ? 0 : entry.value);
  const all = (list) => done(list.getEntries().reduce((sum, entry) => sum + of(entry), 0));
  new PerformanceObserver(all).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(0), 2000);
})"""
SCREENS = {"phone": (360, 740), "phone-390": (390, 844), "laptop": (1280, 800), "wall": (3840, 2160)}


@pytest.mark.parametrize("site", ["flat", "hall", "pipes", "new"])
def test_names_and_contrast_are_sufficient_on_every_page_of_every_kind_of_site(browser: Browser, site: str) -> None:
    home = Home([FLAT, LINE, GRAPH, NEW], silent=["s17", "s44"])
    with watching(browser, home, site=site, expected=("net::ERR", "status of 404")) as visit:
        page = visit.page
        home.trouble()
        for route in ROUTES if site == "flat" else ["home", "devices"]:
            go(page, route)
            for summary in page.locator("summary:visible").all():
                summary.click()
            if route == "privacy":
                expect(page.locator("#attack-plan .mark").first).to_be_attached()
            assert in_both_themes(page) == [], route
        if site == "flat":
            page.context.set_offline(True)
            expect(page.locator("#state")).to_have_attribute("data-state", "lost")
            assert in_both_themes(page) == []
            page.context.set_offline(False)
            page.click("#sign-out")
            sign_in(page, "cw_wrong")
            expect(page.locator("#sign-in-problem")).not_to_be_empty()
            assert in_both_themes(page) == []


def in_both_themes(page: Page) -> list[str]:
    """Whatever axe finds, and weak contrasts of drawings, in the light and in the dark theme."""
    wrong: list[str] = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        wrong += violations(page) + contrast(page)
    return wrong


def test_everything_is_reached_by_keyboard_in_the_order_of_the_page(browser: Browser) -> None:
    home = Home(silent=["s17"])
    with watching(browser, home) as visit:
        page = visit.page
        home.trouble()
        expect(page.locator("#banner")).to_be_visible()
        page.reload()
        page.wait_for_selector("#board[aria-busy=false]")
        stops = tab_through(page)
        assert stops[0]["text"] == "Skip to content"
        assert [at for at in stops if not (at["ring"] and at["seen"])] == []
        wanted = ["Home", "History", "Devices", "Privacy", "Settings", "What to do", "What this means"]
        assert [str(at["text"]) for at in stops if at["text"] in wanted] == wanted
        page.reload()
        page.wait_for_selector("#board[aria-busy=false]")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("() => document.activeElement.id") == "main"
        page.locator("#slider").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#state-text")).to_contain_text("past")
        page.locator("#go-live").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#state-text")).to_contain_text("live")


def test_the_sentence_is_a_live_region_that_changes_only_with_its_text(flat_visit: tuple[Visit, Home]) -> None:
    page, home = flat_visit[0].page, flat_visit[1]
    expect(page.locator("#sentence")).to_have_attribute("aria-live", "polite")
    page.evaluate(
        """() => {
          globalThis.said = [];
          const note = () => said.push(document.getElementById("sentence").textContent);
          new MutationObserver(note).observe(document.getElementById("sentence"), { childList: true });
        }"""
    )
    home.people = 0
    home.advance(3)
    expect(page.locator("#sentence")).to_have_text("Nobody is here.")
    home.people = 3
    assert page.evaluate("() => said").count("Nobody is here.") == 1


def test_the_checks_notice_what_is_wrong(flat_visit: tuple[Visit, Home]) -> None:
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
          document.querySelector("#plan svg").append(word);
          word.setAttribute("class", "faint");
          word.style.fill = "#999";
        }"""
    )
    wrong, weak = violations(page), contrast(page)
    page.reload()
    for fault in ("button-name: <button id=", "heading-order: <h4", "color-contrast: <p id="):
        assert any(fault in text for text in wrong), fault
    assert any("class=faint" in text for text in weak)


@pytest.mark.parametrize("screen", ["phone-390", "laptop"])
def test_nothing_moves_while_the_page_fills(browser: Browser, screen: str) -> None:
    width, height = SCREENS[screen]
    home = Home()
    with watching(browser, home, viewport={"width": width, "height": height}) as visit:
        page = visit.page
        page.reload()
        page.wait_for_selector("#board[aria-busy=false]")
        expect(page.locator("#lanes rect").first).to_be_attached()
        home.advance()
        assert page.evaluate(MOVED) < 0.1


def test_the_page_fits_every_screen_and_twice_the_text_size(flat_visit: tuple[Visit, Home]) -> None:
    visit, _ = flat_visit
    page = visit.page
    for screen, (width, height) in (SCREENS | {"zoomed": (640, 400)}).items():
        page.set_viewport_size({"width": width, "height": height})
        for route in ROUTES:
            go(page, route)
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        go(page, "home")
        assert page.locator("#plan .drawing").bounding_box() is not None
        visit.picture(screen)
