"""The page in a real browser, with a fake collector whose clock the test moves."""

import math
import re

from playwright.sync_api import Browser, expect

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.event_hub import EventKind
from cloakwork.collect.problems import CLAIM_BREAKING, Reason
from tests.browser import Visit, visiting
from tests.collect.fake_api import CODE, PAGE, TOKEN, FakeApi, running_api
from tests.collect.fake_sites import PERIOD_MS
from tests.collect.page_kit import (
    USUAL,
    flat,
    marks,
    shows,
    sign_in,
    sites,
    text,
    until,
    watching,
)

MOST_BYTES = 150_000
MARKUP = (PAGE / "index.html").read_text(encoding="utf-8")
CODE_FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.glob("*.js")}
ALL_CODE = "".join(CODE_FILES.values())


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    files = sorted(PAGE.iterdir())
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    for file in files:
        content = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'\s)]+", content)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set(), file.name


def test_the_page_needs_no_looser_content_security_policy() -> None:
    assert re.findall(r"<script(?![^>]*\bsrc=)", MARKUP) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", MARKUP) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", ALL_CODE) == []


def test_the_code_refers_to_ids_and_files_that_exist() -> None:
    known = set(re.findall(r'\bid="([^"]+)"', MARKUP))
    assert set(re.findall(r'\$\("([^"]+)"\)', ALL_CODE)) <= known
    for name in re.findall(r'(?:href|src)="static/([^"]+)"', MARKUP) + re.findall(r'from "\./([^"]+)"', ALL_CODE):
        assert (PAGE / name).is_file(), name


def test_the_page_listens_to_the_events_that_the_collector_sends() -> None:
    listed = re.search(r"for \(const kind of \[([^\]]+)\]", CODE_FILES["api.js"])
    assert listed is not None
    heard = set(re.findall(r'"(\w+)"', listed[1])) | {"result"}
    assert heard == set(EventKind) - {EventKind.END}, "the end of a stream closes it, which EventSource reports"


def test_a_token_signs_in_and_out(browser: Browser) -> None:
    with running_api(sites()) as api, visiting(browser, f"{api.url}#token={TOKEN}", expected=USUAL) as visit:
        page = visit.page
        expect(page.locator("#token")).to_be_focused()
        assert not api.signed_in, "a token in the address is ignored"
        sign_in(page, "cw_wrong")
        expect(page.locator("#sign-in-problem")).not_to_be_empty()
        visit.picture("sign-in")
        sign_in(page)
        expect(page.locator("#estimate-count")).to_contain_text("Three sources")
        assert page.input_value("#token") == ""
        page.click("#sign-out")
        expect(page.locator("#sign-in")).to_be_visible()
        expect(page.locator("#board")).to_be_hidden()


def test_a_code_in_the_address_signs_in_once_and_is_removed_from_it(browser: Browser) -> None:
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
            expect(other.page.locator("#sign-in-problem")).not_to_be_empty()
            expect(other.page.locator("#board")).to_be_hidden()
            api.codes.add("another")
            other.page.goto(f"{api.url}#code=another")  # which does not reload the page
            expect(other.page.locator("#board")).to_be_visible()


def test_vicinities_and_probabilities_are_shown_as_text(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#estimate-sources li")).to_have_count(3)
    shown = text(page, "#estimate-sources")
    for spot in api.sites["flat"].result(api.sites["flat"].times(0, api.now)[0])["sources"]:
        assert f"{round(100 * spot['probability'])} % sure" in shown
        assert "within {:g} m".format(float(f"{spot['radius']:.2g}")) in shown
    assert "in the left room" in shown
    assert "in the upper right room" in shown
    label = page.get_attribute("#plan [role=img]", "aria-label") or ""
    assert "Three sources" in label
    assert "Mark 1" in label


def test_the_claim_and_the_budget_are_shown(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    expect(page.locator("#budget-bar")).to_have_attribute("aria-valuenow", "43")
    for fact in ("0.2 m", "every hour", "epsilon 4", "delta 1e-5"):
        assert fact in text(page, "#claim")
    assert text(page, "#budget").startswith("43 of 60 readings")
    page.click(".privacy summary")
    for fact in ("54.9 times", "within 0.3 s", "faster than 1.5 per second", "step of the hardware", "fresh noise"):
        assert fact in text(page, "#meaning")
    for fact in ("how many", "more than 0.2 m", "side of a wall", "each further hour", "keys"):
        assert fact in text(page, "#not-hidden")
    page.click(".privacy summary")


def test_the_page_does_not_vouch_for_devices(flat_visit: tuple[Visit, FakeApi]) -> None:
    assert "cannot verify" in text(flat_visit[0].page, "footer")


def test_marks_follow_a_moving_source(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#plan .mark")).to_have_count(3)
    before, began = marks(page), api.now
    api.advance(10 * PERIOD_MS)
    expect(page.locator("#announce")).to_contain_text("moved")
    newest = api.sites["flat"].times(began, api.now)[0]
    until(lambda: shows(page, api.sites["flat"].result(newest)["sources"]), page)
    after = marks(page)
    assert before.keys() == after.keys()
    assert any(math.dist(before[name], after[name]) > 1 for name in before)


def test_the_slider_shows_the_past_and_returns_to_live(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]
    slider = page.locator("#slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("Live"))
    slider.focus()
    for _ in range(3):
        slider.press("ArrowLeft")
    shown = flat_site.result(flat_site.times(0, api.now)[3])["sources"]
    expect(page.locator("#state-text")).to_contain_text("Past")
    expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "false")
    until(lambda: shows(page, shown), page)
    last = page.get_attribute("#slider", "max")
    api.advance(PERIOD_MS)
    expect(slider).not_to_have_attribute("max", last or "")
    assert shows(page, shown), "a new result does not pull the page out of the past"
    visit.picture("past")
    slider.press("End")
    expect(page.locator("#state-text")).to_contain_text("Live")
    slider.press("Home")
    expect(page.locator("#state-text")).to_contain_text("Past")
    page.click("#go-live")
    expect(page.locator("#state-text")).to_contain_text("Live")
    expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "true")


def test_history_plays_and_pauses(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    page.select_option("#speed", "15")
    expect(page.locator("#play")).to_be_enabled()
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("data-playing", "true")
    page.wait_for_function(  # the page itself pauses: by the time that the test would, it may have played to the end
        """() => {
          const there = Number(document.getElementById("slider").value) >= 3;
          if (there) document.getElementById("play").click();
          return there;
        }"""
    )
    expect(page.locator("#play")).to_have_attribute("data-playing", "false")
    paused = page.input_value("#slider")
    assert 3 <= int(paused) < int(page.get_attribute("#slider", "max") or 0)
    expect(page.locator("#state-text")).to_contain_text("Past")
    assert page.input_value("#slider") == paused
    page.click("#go-live")
    expect(page.locator("#state-text")).to_contain_text("Live")


def test_a_lost_connection_is_reported_and_restored(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#plan .mark")).to_have_count(3)
    api.cut()
    expect(page.locator("#lost")).to_contain_text("lost")
    expect(page.locator("#state")).to_have_attribute("data-state", "lost")
    visit.picture("connection-lost")
    api.advance(10 * PERIOD_MS)
    api.mend()
    page.evaluate("dispatchEvent(new Event('online'))")  # sooner than the next retry
    expect(page.locator("#lost")).to_be_hidden()
    expect(page.locator("#state")).to_have_attribute("data-state", "live")
    flat_site = api.sites["flat"]
    until(lambda: shows(page, flat_site.result(flat_site.times(0, api.now)[0])["sources"]), page)


def test_an_ended_session_asks_to_sign_in_again(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    api.signed_in = False
    api.advance(PERIOD_MS)
    expect(page.locator("#sign-in-problem")).not_to_be_empty()
    sign_in(page)
    expect(page.locator("#plan .mark")).to_have_count(3)


def test_a_corrected_clock_does_not_stop_the_map(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]

    def shows_the_newest() -> bool:
        return shows(page, flat_site.result(flat_site.times(0, api.now)[0])["sources"])

    until(lambda: shows_the_newest() and bool(api.listeners), page)
    api.advance(100 * PERIOD_MS)
    until(shows_the_newest, page)
    api.now -= 100 * PERIOD_MS
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    until(shows_the_newest, page)
    api.advance(10 * PERIOD_MS)
    until(shows_the_newest, page)


def test_the_whole_window_and_the_truth_are_shown_for_comparison(browser: Browser) -> None:
    given = sites() | {"flat": flat(cut=True)}
    with watching(browser, given=given, viewport={"width": 1440, "height": 900}) as (visit, _):
        page = visit.page
        expect(page.locator("#attack-figure")).to_be_hidden()
        page.check("#layer-attack")
        expect(page.locator("#attack-caption")).to_contain_text("last 43 frames")
        expect(page.locator("#attack-plan .mark")).to_have_count(3)
        for fact in ("if no one moved", "only the last ones", "epsilon 19.7"):
            assert fact in text(page, "#estimate-attack")
        page.check("#layer-truth")
        expect(page.locator("#plan .truth")).to_have_count(3)
        expect(page.locator(".compared")).to_have_count(3)
        assert re.search(r"truth is [\d.]+ m away, (in|out)side", text(page, "#estimate-sources"))
        visit.picture("attack-and-truth")
        page.select_option("#site", "hall")
        expect(page.locator("#live-caption")).to_contain_text("from this frame alone")
        expect(page.locator("#truth-choice")).to_be_hidden()


def test_lines_and_networks_have_drawings_of_their_own(browser: Browser) -> None:
    with watching(browser, site="hall") as (visit, _):
        page = visit.page
        for site, where, sensors in (("hall", r"Mark 1 at [\d.]+ m", 24), ("pipes", "Mark 1 at [a-z]+", 8)):
            page.select_option("#site", site)
            expect(page.locator("#plan .sensor")).to_have_count(sensors)
            expect(page.locator("#plan .mark")).to_have_count(1)
            assert re.search(where, text(page, "#estimate-sources"))
            assert "source" in text(page, "#claim")
            expect(page.locator("#zones")).to_be_hidden()
            visit.picture(f"site-{site}")
        page.reload()
        expect(page.locator("#plan .node")).to_have_count(12)
        assert page.input_value("#site") == "pipes", "the address keeps the site"


def test_old_data_and_missing_data_are_marked(browser: Browser) -> None:
    stopped = flat()
    with watching(browser, given={"flat": stopped, "new": sites()["new"]}) as (visit, api):
        page = visit.page
        last = stopped.times(0, api.now)
        stopped.times = lambda since, until: [when for when in last if since <= when <= until]  # type: ignore[method-assign]
        expect(page.locator("#stale")).to_be_hidden()
        api.advance(10 * PERIOD_MS)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("#stale")).to_contain_text("every 1 min")
        expect(page.locator("#state")).to_have_attribute("data-state", "old")
        visit.picture("old-data")
        page.select_option("#site", "new")
        expect(page.locator("#no-map")).to_contain_text("0 of 80 sensors")
        expect(page.locator("#budget")).to_contain_text("60 readings allowed")
        expect(page.locator("#zones")).to_be_hidden()
        visit.picture("nothing-yet")


def test_every_problem_has_a_text() -> None:
    listed = CODE_FILES["health_panel.js"].partition("PROBLEM_TEXTS = {")[2].partition("};")[0]
    codes = set(re.findall(r'^  "?([a-z ]+)"?:', listed, flags=re.MULTILINE)) | {"alarm"}
    assert codes == {reason_code(reason) for reason in Reason}
    breaking = CODE_FILES["texts.js"].partition("BROKEN = {")[2].partition("};")[0]
    assert re.findall(r'^  "([a-z ]+)":', breaking, flags=re.MULTILINE) == [reason_code(one) for one in CLAIM_BREAKING]
