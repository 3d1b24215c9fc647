"""The page in a real browser, over a made-up collector whose clock the test moves."""

import math
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import running_browser, visiting
from tests.collect.fake_api import CODE, PAGE, TOKEN, running_api
from tests.collect.fake_sites import PERIOD_MS
from tests.collect.page_kit import USUAL, flat, marks, shows, sign_in, sites, text, until, watching

MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


def test_the_page_is_small_and_asks_nobody_else() -> None:
    files = sorted(PAGE.iterdir())
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    for file in files:
        told = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'\s)]+", told)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set(), file.name


def test_nothing_in_the_page_needs_a_looser_policy() -> None:
    markup = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", markup) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", markup) == []
    code = "".join(file.read_text(encoding="utf-8") for file in PAGE.glob("*.js"))
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", code) == []


def test_what_the_code_looks_for_is_in_the_page() -> None:
    markup = (PAGE / "index.html").read_text(encoding="utf-8")
    known = set(re.findall(r'\bid="([^"]+)"', markup))
    code = "".join(file.read_text(encoding="utf-8") for file in PAGE.glob("*.js"))
    assert set(re.findall(r'\$\("([^"]+)"\)', code)) <= known
    for name in re.findall(r'(?:href|src)="static/([^"]+)"', markup) + re.findall(r'from "\./([^"]+)"', code):
        assert (PAGE / name).is_file(), name


def test_signs_in_and_out(browser: Browser) -> None:
    with running_api(sites()) as api, visiting(browser, api.url, expected=USUAL) as visit:
        page = visit.page
        expect(page.locator("#token")).to_be_focused()
        page.fill("#token", "cw_wrong")
        page.press("#token", "Enter")
        expect(page.locator("#sign-in-problem")).to_contain_text("not known, or was revoked")
        visit.picture("sign-in")
        sign_in(page)
        expect(page.locator("#told-count")).to_contain_text("Three sources")
        assert page.input_value("#token") == ""
        page.click("#sign-out")
        expect(page.locator("#sign-in")).to_be_visible()
        expect(page.locator("#board")).to_be_hidden()


def test_a_code_in_the_address_signs_in_once_and_is_gone_from_it(browser: Browser) -> None:
    address = f"#code={CODE}"
    with running_api(sites()) as api:
        with visiting(browser, api.url + address, expected=USUAL) as visit:
            expect(visit.page.locator("#board")).to_be_visible()
            assert CODE not in visit.page.url
            assert CODE not in visit.page.evaluate("JSON.stringify([localStorage, sessionStorage])")
            visit.page.goto("about:blank")
            visit.page.goto(api.url + address)
            expect(visit.page.locator("#board")).to_be_visible()  # by the session that it has
        with visiting(browser, api.url + address, expected=USUAL) as other:
            expect(other.page.locator("#sign-in-problem")).to_have_text(
                "This address was used already or is too old; ask for a token."
            )
            expect(other.page.locator("#board")).to_be_hidden()
            api.codes.add("another")
            other.page.goto(f"{api.url}#code=another")  # which does not load the page anew
            expect(other.page.locator("#board")).to_be_visible()


def test_a_token_in_the_address_opens_nothing(browser: Browser) -> None:
    with running_api(sites()) as api, visiting(browser, f"{api.url}#token={TOKEN}", expected=USUAL) as visit:
        expect(visit.page.locator("#sign-in")).to_be_visible()
        assert not api.signed_in


def test_a_source_is_seen_to_move(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page = visit.page
        expect(page.locator("#plan .mark")).to_have_count(3)
        before, asked = marks(page), api.now
        api.advance(10 * PERIOD_MS)
        expect(page.locator("#announce")).to_contain_text("moved")
        newest = api.sites["flat"].times(asked, api.now)[0]
        found = api.sites["flat"].result(newest)["sources"]
        until(lambda: shows(page, found), page)
        after = marks(page)
        assert before.keys() == after.keys()
        assert any(_apart(before[name], after[name]) > 1 for name in before)


def test_a_clock_that_was_ahead_does_not_stop_the_picture(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page, flat_site = visit.page, api.sites["flat"]
        expect(page.locator("#plan .mark")).to_have_count(3)
        before = marks(page)
        api.advance(100 * PERIOD_MS)
        until(lambda: marks(page) != before, page)
        api.now -= 100 * PERIOD_MS  # it is set right
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_timeout(1000)
        api.advance(10 * PERIOD_MS)
        found = flat_site.result(flat_site.times(0, api.now)[0])["sources"]
        until(lambda: shows(page, found), page)


def test_a_vicinity_and_its_certainty_are_told_in_words(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page = visit.page
        told = text(page, "#told-sources")
        spots = api.sites["flat"].result(api.sites["flat"].times(0, api.now)[0])["sources"]
        for spot in spots:
            chance, within = round(100 * spot["probability"]), float(f"{spot['radius']:.2g}")
            words = f"{chance} % sure there is one; if so, about 90 % sure it is within {within:g} m of the mark"
            assert words in told
        assert "in the left room" in told
        assert "in the upper right room" in told
        label = page.get_attribute("#plan [role=img]", "aria-label") or ""
        assert "Three sources" in label
        assert "Mark 1" in label


def test_the_slider_goes_into_the_past_and_back_to_live(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page, flat_site = visit.page, api.sites["flat"]
        slider = page.locator("#slider")
        expect(slider).to_have_attribute("aria-valuetext", re.compile("Live"))
        slider.focus()
        for _ in range(10):
            slider.press("ArrowLeft")
        when = flat_site.times(0, api.now)[10]
        expect(page.locator("#state-words")).to_contain_text("Past")
        expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "false")
        until(lambda: shows(page, flat_site.result(when)["sources"]), page)
        stood = marks(page)
        api.advance(PERIOD_MS)  # someone who looks at the past is not pulled away
        page.wait_for_timeout(300)
        assert marks(page) == stood
        visit.picture("past")
        slider.press("End")
        expect(page.locator("#state-words")).to_contain_text("Live")
        slider.press("Home")
        expect(page.locator("#state-words")).to_contain_text("Past")
        page.click("#go-live")
        expect(page.locator("#state-words")).to_contain_text("Live")
        expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "true")


def test_history_plays_and_pauses(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        page.select_option("#speed", "15")
        expect(page.locator("#play")).to_be_enabled()
        page.click("#play")
        expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
        page.wait_for_function(  # the page itself pauses: by the time that we would, it may have played to the end
            """() => {
              const there = Number(document.getElementById("slider").value) >= 3;
              if (there) document.getElementById("play").click();
              return there;
            }"""
        )
        expect(page.locator("#play")).to_have_attribute("aria-label", "Play the history")
        stood = page.input_value("#slider")
        page.wait_for_timeout(400)
        assert page.input_value("#slider") == stood
        assert 3 <= int(stood) < 42


def test_the_claim_and_the_budget_are_told_in_plain_words(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        expect(page.locator("#budget-bar")).to_have_attribute("aria-valuenow", "43")
        assert text(page, "#claim") == (
            "Each person's place is hidden to within 0.2 m in every hour from someone who sees all sensors "
            "(epsilon 4, delta 1e-5)."
        )
        assert text(page, "#budget") == "43 of 60 readings used in the last hour by the busiest sensor."
        page.click(".privacy summary")
        assert "at most 54.9 times likelier" in text(page, "#meaning")
        hidden = text(page, "#not-hidden")
        for fact in ("how many", "more than 0.2 m", "side of a wall", "each further hour", "keys"):
            assert fact in hidden


def test_what_all_data_say_stands_beside_and_so_does_the_truth(browser: Browser) -> None:
    with watching(browser, viewport={"width": 1440, "height": 900}) as (visit, _):
        page = visit.page
        expect(page.locator("#attack-figure")).to_be_hidden()
        page.check("#layer-attack")
        expect(page.locator("#attack-caption")).to_contain_text("43 frames put together")
        expect(page.locator("#attack-plan .mark")).to_have_count(3)
        assert "takes it that nobody moved" in text(page, "#told-attack")
        page.check("#layer-truth")
        expect(page.locator("#plan .truth")).to_have_count(3)
        expect(page.locator(".compared")).to_have_count(3)
        assert re.search(
            r"The simulated truth is [\d.]+ m away, (in|out)side the vicinity", text(page, "#told-sources")
        )
        visit.picture("attack-and-truth")
        page.select_option("#site", "hall")
        expect(page.locator("#live-caption")).to_contain_text("from this frame alone")
        expect(page.locator("#truth-choice")).to_be_hidden()


@pytest.mark.parametrize(("site", "words"), [("hall", r"Mark 1 at [\d.]+ m"), ("pipes", "Mark 1 at [a-z]+")])
def test_lines_and_networks_have_drawings_of_their_own(browser: Browser, site: str, words: str) -> None:
    with watching(browser, site=site) as (visit, _):
        page = visit.page
        expect(page.locator("#plan .mark")).to_have_count(1)
        expect(page.locator("#plan .sensor")).to_have_count(24 if site == "hall" else 8)
        assert re.search(words, text(page, "#told-sources"))
        assert "Each source's place is hidden" in text(page, "#claim")
        visit.picture(f"site-{site}")


def test_a_lost_connection_is_said_and_mended(browser: Browser) -> None:
    with watching(browser, expected=("net::ERR", "Failed to load resource")) as (visit, api):
        page = visit.page
        expect(page.locator("#plan .mark")).to_have_count(3)
        before = marks(page)
        api.cut()
        expect(page.locator("#lost")).to_contain_text("The connection to the collector is lost since")
        expect(page.locator("#state-words")).to_have_text("Connection lost")
        visit.picture("connection-lost")
        api.advance(10 * PERIOD_MS)
        api.mend()
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator("#state-words")).to_contain_text("Live")
        flat_site = api.sites["flat"]
        found = flat_site.result(flat_site.times(0, api.now)[0])["sources"]
        until(lambda: shows(page, found), page)
        assert marks(page) != before


def test_old_data_and_no_data_are_called_so(browser: Browser) -> None:
    stopped = flat()
    with watching(browser, given={"flat": stopped, "new": sites()["new"]}) as (visit, api):
        page = visit.page
        last = stopped.times(0, api.now)
        stopped.times = lambda since, until: [when for when in last if since <= when <= until]  # type: ignore[method-assign]
        expect(page.locator("#old")).to_be_hidden()
        api.advance(10 * PERIOD_MS)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("#old")).to_contain_text("A new one is expected every 1 min")
        expect(page.locator("#state-words")).to_contain_text("Old")
        visit.picture("old-data")
        page.select_option("#site", "new")
        expect(page.locator("#nothing")).to_contain_text("No map yet")
        expect(page.locator("#nothing")).to_contain_text("0 of 80 sensors heard so far")
        expect(page.locator("#budget")).to_contain_text("60 readings allowed in every hour")
        visit.picture("nothing-yet")


def test_an_ended_session_asks_to_sign_in_again(browser: Browser) -> None:
    with watching(browser) as (visit, api):
        page = visit.page
        expect(page.locator("#plan .mark")).to_have_count(3)
        api.signed_in = False
        api.advance(PERIOD_MS)
        expect(page.locator("#sign-in-problem")).to_contain_text("Your session has ended")
        sign_in(page)
        expect(page.locator("#plan .mark")).to_have_count(3)


def test_the_chosen_site_is_kept_in_the_address(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        page.select_option("#site", "pipes")
        expect(page.locator("#plan .node")).to_have_count(12)
        page.reload()
        expect(page.locator("#plan .node")).to_have_count(12)
        assert page.input_value("#site") == "pipes"


def _apart(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return math.dist(a, b)
