"""The row of all sites above the map: how many are at each, its problems, and a way to open it."""

from playwright.sync_api import Browser, expect

from tests.collect.page_kit import flat, text, watching

PHONE = {"width": 375, "height": 700}


def test_the_row_says_how_many_are_at_each_site_and_how_many_problems_it_has(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        rows = page.locator("#overview li")
        expect(rows.locator("strong")).to_have_text(["flat", "hall", "pipes", "new"])
        expect(rows.nth(3)).to_contain_text("No map yet")
        expect(rows.nth(0).locator(".problems")).to_contain_text("problem")
        listed = page.locator("#problems li").count()
        expect(rows.nth(0)).to_contain_text(f"{listed} problems")
        expect(rows.nth(0)).to_have_attribute("data-level", "alarm")
        expect(rows.nth(2)).to_contain_text("1 source")
        assert text(page, "#overview li:first-child button > span:nth-child(2)") in text(page, "#estimate-views")
        visit.picture("overview")


def test_a_site_of_the_row_opens_by_keyboard_and_keeps_the_focus(browser: Browser) -> None:
    with watching(browser, viewport=PHONE) as (visit, _):
        page = visit.page
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        expect(page.locator("#main")).to_be_focused()  # once signed in
        page.focus("#overview li:first-child button")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        chosen = page.locator("#overview [aria-current=true]")
        expect(chosen).to_contain_text("hall")
        expect(chosen).to_be_focused()
        expect(page.locator("#site")).to_have_value("hall")
        page.wait_for_selector("#board[aria-busy=false]")
        visit.picture("overview-phone", whole=False)


def test_one_site_has_no_row(browser: Browser) -> None:
    with watching(browser, given={"flat": flat()}) as (visit, _):
        expect(visit.page.locator("#overview")).to_be_hidden()
