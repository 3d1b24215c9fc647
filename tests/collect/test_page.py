"""The page in a real browser, with a fake collector whose clock the test moves."""

import math
import re

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Visit, visiting
from tests.collect.fake_api import CODE, TOKEN, FakeApi, running_api
from tests.collect.fake_sites import LAG, PERIOD_MS, FakeSite, flat_text
from tests.collect.page_kit import (
    USUAL,
    flat,
    marks,
    shows,
    sign_in,
    sites,
    text,
    time_text,
    until,
    watching,
)


def test_a_token_signs_in_and_out(browser: Browser) -> None:
    with running_api(sites()) as api, visiting(browser, f"{api.url}#token={TOKEN}", expected=USUAL) as visit:
        page = visit.page
        expect(page.locator("#token")).to_be_focused()
        assert not api.signed_in, "a token in the address is ignored"
        sign_in(page, "cw_wrong")
        expect(page.locator("#sign-in-problem")).not_to_be_empty()
        visit.picture("sign-in")
        sign_in(page)
        expect(page.locator("#estimate-views")).to_contain_text("3 people")
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
    assert "room 1" in shown
    assert "followed for 15 min, over 90 % sure it is the same one" in shown
    label = page.get_attribute("#plan [role=img]", "aria-label") or ""
    assert "3 people" in label
    assert "Mark 1" in label


def test_a_vicinity_is_drawn_as_its_cells(browser: Browser) -> None:
    with watching(browser) as (visit, api):  # its own visit: at this hour the vicinities differ in size
        expect(visit.page.locator("#plan .region")).to_have_count(3)
        sources = api.sites["flat"].result(api.sites["flat"].times(0, api.now)[0])["sources"]
        paths = [path.get_attribute("d") or "" for path in visit.page.locator("#plan .region").all()]
        visit.picture("vicinities")
    areas = np.array([sum(float(w) * float(h) for w, h in re.findall(r"h([\d.]+)v([\d.]+)", path)) for path in paths])
    cells = np.array([len(source["vicinity"]) for source in sources])
    assert len(set(cells)) > 1
    assert areas / areas[0] == pytest.approx(cells / cells[0], rel=0.02)


def test_the_claim_and_the_budget_are_shown(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    expect(page.locator("#budget-bar")).to_have_attribute("aria-valuenow", "43")
    expect(page.locator("#budget-bar")).to_have_attribute("data-over", "false")
    colours = [
        page.eval_on_selector(part, "bar => getComputedStyle(bar).backgroundColor")
        for part in ("#budget-bar span", ".needle")
    ]
    assert colours[0] == colours[1], "a budget in use is no alarm"
    for fact in ("0.1 m", "every hour", "epsilon 4", "delta 1e-5"):
        assert fact in text(page, "#claim")
    assert text(page, "#budget").startswith("43 of 60 readings")
    page.click(".privacy summary")
    meaning = ("54.9 times", "within 0.032 s", "faster than 1.5 m per second", "hardware reads in steps", "fresh noise")
    for fact in meaning:
        assert fact in text(page, "#meaning")
    for fact in ("how many", "more than 0.1 m", "side of a wall", "each further hour", "keys"):
        assert fact in text(page, "#not-hidden")
    page.click(".privacy summary")


def test_the_page_does_not_vouch_for_devices(flat_visit: tuple[Visit, FakeApi]) -> None:
    assert "cannot verify" in text(flat_visit[0].page, "footer")


def test_marks_follow_a_moving_source(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#plan .mark:not(.doubt)")).to_have_count(3)
    before, began = marks(page), api.now
    api.advance(10 * PERIOD_MS)
    newest = api.sites["flat"].times(began, api.now)[0]
    until(lambda: shows(page, api.sites["flat"].result(newest)["sources"]), page)
    after = marks(page)
    assert before.keys() == after.keys()
    assert any(math.dist(before[name], after[name]) > 1 for name in before)


def test_the_slider_shows_the_past_and_returns_to_live(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]
    slider = page.locator("#slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("3 people"))
    times = flat_site.times(0, api.now)
    slider.focus()
    for when in times[1:4]:
        slider.press("ArrowLeft")
        expect(slider).to_have_attribute("aria-valuenow", str(when))
    shown = flat_site.result(times[3])["sources"]
    expect(page.locator("#state-text")).to_contain_text("Past")
    expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "false")
    until(lambda: shows(page, shown), page)
    api.advance(PERIOD_MS)
    newest = time_text(flat_site.times(0, api.now)[0])
    expect(page.locator('[data-view="Now"]')).to_contain_text(newest)
    assert shows(page, shown), "a new result does not pull the page out of the past"
    visit.picture("past")
    slider.press("End")
    expect(page.locator("#state-text")).to_contain_text("Live")
    slider.press("Home")
    expect(page.locator("#state-text")).to_contain_text("Past")
    page.click("#go-live")
    expect(page.locator("#state-text")).to_contain_text("Live")
    expect(page.locator("#go-live")).to_have_attribute("aria-pressed", "true")


def test_a_click_on_the_timeline_goes_to_that_time(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]
    slider = page.locator("#slider")
    expect(page.locator("#lanes .there")).not_to_have_count(0)
    first, last = (int(slider.get_attribute(f"aria-value{end}") or 0) for end in ("min", "max"))
    wanted = min(flat_site.times(0, api.now), key=lambda when: abs(when - (0.6 * first + 0.4 * last)))

    def reached() -> bool:
        """Click where the time is now: lanes that are drawn anew move it."""
        first, last = (int(slider.get_attribute(f"aria-value{end}") or 0) for end in ("min", "max"))
        box = slider.bounding_box()
        assert box is not None
        slider.click(position={"x": box["width"] * (wanted - first) / (last - first), "y": box["height"] / 2})
        return slider.get_attribute("aria-valuenow") == str(wanted)

    until(reached, page)
    expect(page.locator("#live-caption")).to_contain_text(f"Past, {time_text(wanted)}")
    until(lambda: shows(page, flat_site.result(wanted, now=api.now)["sources"]), page)
    page.select_option("#range", "all")
    expect(slider).to_have_attribute("aria-valuemin", str(flat_site.times(0, api.now)[-1]))
    page.click("#go-live")


def test_the_settled_view_follows_the_live_one(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]
    page.click("#go-settled")
    expect(page.locator("#go-settled")).to_have_attribute("aria-pressed", "true")
    for _ in range(2):
        late = flat_site.times(0, api.now - LAG * flat_site.site.period_ms)[0]
        until(lambda late=late: shows(page, flat_site.result(late, now=api.now)["sources"]), page)  # type: ignore[misc]
        expect(page.locator("#state-text")).to_have_text(f"Settled: {time_text(late)}")
        expect(page.locator('[data-view="Settled"]')).to_contain_text(time_text(late))
        expect(page.locator("#live-caption")).to_contain_text("before and after")
        api.advance(PERIOD_MS)
    page.click("#go-live")
    expect(page.locator("#live-caption")).to_contain_text("can still change")


def test_a_mark_leaves_a_trail_that_fades_and_a_doubt_is_no_source(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    expect(page.locator("#state-text")).to_contain_text("Live")
    expect(page.locator("#plan .trail").first).to_be_attached()
    fades = [float(one.get_attribute("stroke-opacity") or 0) for one in page.locator("#plan .trail").all()]
    assert min(fades) < 0.25
    assert max(fades) > 0.7
    doubt = page.locator("#plan .mark.doubt")
    expect(doubt).to_have_attribute("data-id", "7")
    assert page.locator("#plan .vicinity").count() == 3
    assert page.locator('#estimate-sources [data-id="7"]').count() == 0
    expect(page.locator("#estimate-doubts")).to_contain_text(re.compile(r"less likely than not: room 1 \(31.%\)"))
    for symbol, name in (
        (".mark:not(.doubt)", "more likely than not"),
        (".mark.doubt", "less likely"),
        (".trail", "way"),
    ):
        assert page.locator(f"#key li:has({symbol})").filter(has_text=name).count() == 1, (
            "the key has the map's symbols"
        )


def test_one_frame_alone_has_letters_and_no_trails(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    page.check("#layer-alone")
    expect(page.locator("#live-caption")).to_contain_text("from this frame alone")
    assert marks(page).keys() == {"a", "b", "c"}
    assert page.locator("#plan .trail, #plan .doubt").count() == 0
    page.uncheck("#layer-alone")
    expect(page.locator("#plan .trail").first).to_be_attached()
    assert marks(page).keys() == {"1", "2", "3"}


def test_history_plays_and_pauses(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#play")).to_be_enabled()
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("data-playing", "true")
    third = sorted(api.sites["flat"].times(int(page.get_attribute("#slider", "aria-valuemin") or 0), api.now))[3]
    page.wait_for_function(  # the page itself pauses: by the time that the test would, it may have played to the end
        """third => {
          const now = Number(document.getElementById("slider").ariaValueNow);
          const there = now >= third && document.getElementById("state-text").textContent.includes("Past");
          if (there) document.getElementById("play").click();
          return there;
        }""",
        arg=third,
    )
    expect(page.locator("#play")).to_have_attribute("data-playing", "false")
    expect(page.locator("#state-text")).to_contain_text("Past")
    page.click("#go-live")
    expect(page.locator("#state-text")).to_contain_text("Live")


def test_a_lost_connection_is_reported_and_restored(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    expect(page.locator("#plan .mark:not(.doubt)")).to_have_count(3)
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
    expect(page.locator("#plan .mark:not(.doubt)")).to_have_count(3)


def test_a_corrected_clock_does_not_stop_the_map(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, flat_site = visit.page, api.sites["flat"]

    def shows_the_newest() -> bool:
        return shows(page, flat_site.result(flat_site.times(0, api.now)[0])["sources"])

    until(lambda: shows_the_newest() and bool(api.listeners), page)
    api.advance(100 * PERIOD_MS)
    until(shows_the_newest, page)
    settled = time_text(flat_site.times(0, api.now - LAG * PERIOD_MS)[0])  # the last event
    expect(page.locator('[data-view="Settled"]')).to_contain_text(settled)
    api.now -= 100 * PERIOD_MS
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    until(shows_the_newest, page)
    api.advance(10 * PERIOD_MS)
    until(shows_the_newest, page)


def test_an_attackers_view_and_the_truth_are_shown_beside_the_map(browser: Browser) -> None:
    given = sites() | {"flat": flat(cut=True)}
    with watching(browser, given=given, viewport={"width": 1440, "height": 900}) as (visit, _):
        page = visit.page
        expect(page.locator("#attack-figure")).to_be_hidden()
        expect(page.locator("#longer")).to_have_text(re.compile("8 hours .* 3.cm by anyone who keeps every"))
        page.check("#layer-attack")
        expect(page.locator("#attack-plan .mark:not(.doubt)")).to_have_count(3)
        for fact in (
            re.compile(r"the last \d+ frames \(since"),  # another one comes while a busy machine draws
            "of the hour",
            "follows everyone",
            "take too long",
            "fit it (p = 0.4)",
        ):
            expect(page.locator("#attack-text")).to_contain_text(fact)
        page.select_option("#attack-span", "day")
        expect(page.locator("#attack-text")).to_contain_text("of the day up to")
        page.check("#layer-truth")
        expect(page.locator("#plan .truth")).to_have_count(3)
        expect(page.locator(".compared")).to_have_count(3)
        assert re.search(r"truth is [\d.]+ m away, (in|out)side", text(page, "#estimate-sources"))
        visit.picture("attack-and-truth")
        page.select_option("#site", "hall")
        expect(page.locator("#claim")).to_contain_text("by one source")
        expect(page.locator("#truth-choice")).to_be_hidden()


def test_a_fast_clock_and_a_solver_that_compiles_are_announced(browser: Browser) -> None:
    new = FakeSite(flat_text(name="new"), None, speed=60.0, preparing=True)
    with watching(browser, site="new", given={"new": new, "flat": flat(speed=60.0)}) as (visit, _):
        page = visit.page
        expect(page.locator("#fast")).to_contain_text("60 times as fast")
        expect(page.locator("#no-map")).to_contain_text("being compiled")
        page.select_option("#site", "flat")
        expect(page.locator("#plan .mark:not(.doubt)")).to_have_count(3)
        page.wait_for_function(  # its age grows sixty times as fast as that of a real map, until the next frame is due
            "() => /: 1.min ago/.test(document.getElementById('state-text').textContent)"
        )


def test_lines_and_networks_have_drawings_of_their_own(browser: Browser) -> None:
    with watching(browser, site="hall", viewport={"width": 360, "height": 740}) as (visit, _):
        page = visit.page
        for site, where, sensors in (("hall", r"at [\d.]+.m", 24), ("pipes", "at [a-z]+", 8)):
            page.select_option("#site", site)
            expect(page.locator("#plan .sensor")).to_have_count(sensors)
            expect(page.locator("#plan .mark")).to_have_count(1)
            expect(page.locator("#lanes li")).to_have_count(1)
            expect(page.locator("#estimate-sources")).to_contain_text(re.compile(where))
            expect(page.locator("#claim")).to_contain_text("source")
            expect(page.locator("#board")).to_have_attribute("aria-busy", "false")
            visit.picture(f"site-{site}")
            if site == "hall":  # a vicinity hides nothing of the curve
                box = "(shape) => (({ y, height }) => [y, height])(shape.getBBox())"
                curve, bar = (page.eval_on_selector(f"#plan {one}", box) for one in (".area", ".vicinity"))
                assert curve[1] > 50, "on a phone, too"
                assert bar[0] > curve[0] + curve[1] * 3 / 4
                assert bar[1] < curve[1] / 4
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
        visit.picture("nothing-yet")
