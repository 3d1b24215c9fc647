"""The page in a real browser, with a fake collector whose clock the test moves, and with the real one."""

import re
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cloakwork.collect.message_problems import Reason
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.storage import DeviceReport, FoundFault, ProblemCount, Reading, Result, Store
from tests.browser import Visit, visiting
from tests.collect.api_kit import result, served
from tests.collect.fake_api import CODE, TOKEN, FakeApi, running_api
from tests.collect.fake_sites import LAG, LINE, PERIOD_MS, START_MS, FakeSite, flat_text
from tests.collect.page_kit import (
    USUAL,
    flat,
    marks,
    problem,
    sign_in,
    sites,
    text,
    time_text,
    until,
    watching,
)

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
SURE = {"room-1": (0.99, 1.0), "room-2": (0.97, 1.0), "room-3": (0.96, 1.0)}
PHONE = {"width": 390, "height": 844}
ORDER = ["sentence", "doubt", "rooms-card", "map-card", "time-card", "privacy-line"]


def certain(**options: Any) -> FakeSite:
    """The flat with someone in each room, and nothing wrong."""
    return flat(silent={}, states={}, problems=[], alarms=[], zone_odds=dict(SURE), **options)


def go(page: Page, route: str) -> None:
    page.click(f"#routes a[href='#/{route}']")


def test_a_token_signs_in_and_out(browser: Browser) -> None:
    with running_api(sites()) as api, visiting(browser, f"{api.url}#token={TOKEN}", expected=USUAL) as visit:
        page = visit.page
        expect(page.locator("#token")).to_be_focused()
        assert not api.signed_in, "a token in the address is ignored"
        sign_in(page, "cw_wrong")
        expect(page.locator("#sign-in-problem")).not_to_be_empty()
        sign_in(page)
        expect(page.locator("#sentence")).to_contain_text("Three people")
        assert page.input_value("#token") == ""
        go(page, "settings")
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
        with visiting(browser, api.url + address, expected=USUAL) as other:
            expect(other.page.locator("#sign-in-problem")).not_to_be_empty()
            api.codes.add("another")
            other.page.goto(f"{api.url}#code=another")  # which does not reload the page
            expect(other.page.locator("#board")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_home_answers_first_and_says_nothing_twice(browser: Browser, width: int) -> None:
    with watching(browser, given={"flat": certain()}, viewport={"width": width, "height": 844}) as (visit, api):
        page = visit.page
        expect(page.locator("#sentence")).to_have_text(
            "Three people are here: one in room 1, one in room 2, one in room 3."
        )
        expect(page.locator("#sentence")).to_have_attribute("aria-live", "polite")
        for fact in ("Updated", "of the number", "not simulated"):
            expect(page.locator("#doubt")).to_contain_text(fact)
        expect(page.locator("#rooms li")).to_have_count(3)
        expect(page.locator("#rooms li").first).to_contain_text("99 % occupied")
        expect(page.locator("#lanes .occupied").first).to_be_attached()
        expect(page.locator("#banner")).to_be_hidden()
        boxes = [page.locator(f"#{part}, .{part}").first.bounding_box() for part in ORDER]
        assert [box is not None for box in boxes] == [True] * len(ORDER)
        tops = [box["y"] for box in boxes if box]
        assert tops == sorted(tops)
        assert tops[2] < 500, "the rooms begin on the first screen of a phone"
        assert page.locator("#board input:visible, #board table:visible").count() == 0
        assert "epsilon" not in page.inner_text("main")
        lines = [line for line in page.inner_text("#sentence, .privacy-line").split("\n") if line]
        assert len(lines) == len(set(lines))
        newest = api.sites["flat"].times(0, api.now)[0]
        assert page.locator("#plan .mark text").count() == 0
        expect(page.locator("#plan .drawing")).to_have_attribute("aria-label", re.compile(time_text(newest)))
        visit.picture(f"home-{width}")


def test_a_poor_set_up_is_amber_and_a_good_one_says_how_often_it_is_right(browser: Browser) -> None:
    poor = {"zone": "room", "room": 0.5, "usual_room": 0.6, "useless": True}
    for given, fact in (
        (poor, "no better than guessing"),
        (poor | {"room": 0.98, "useless": False}, "98 times in 100"),
    ):
        with watching(browser, given={"flat": certain(forecast=given)}, viewport=PHONE) as (visit, _):
            expect(visit.page.locator("#forecast")).to_contain_text(fact)
            expect(visit.page.locator("#forecast")).to_have_attribute("data-poor", str(given["useless"]).lower())


def test_a_mark_is_drawn_only_in_a_room_that_is_occupied(browser: Browser) -> None:
    odds = {"room-1": (0.6, 0.6), "room-2": (0.97, 1.0), "room-3": (0.02, 0.0)}
    with watching(browser, given={"flat": flat(zone_odds=odds)}) as (visit, _):
        page = visit.page
        expect(page.locator("#rooms [data-id=room-1]")).to_contain_text("probably someone")
        expect(page.locator("#rooms [data-id=room-3]")).to_contain_text("empty")
        rooms = page.eval_on_selector_all("#plan .mark", "all => all.map((one) => one.dataset.room)")
        assert set(rooms) <= {"room-2"}
        assert page.locator("#plan .tint.occupied").count() == 1
        assert page.locator("#plan .tint.perhaps").count() == 1


def test_a_tap_on_the_timeline_goes_back_and_a_button_returns(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, site = visit.page, api.sites["flat"]
    slider = page.locator("#slider")
    expect(page.locator("#lanes rect").first).to_be_attached()
    times = site.times(0, api.now)
    slider.focus()
    for when in times[1:4]:
        slider.press("ArrowLeft")
        expect(slider).to_have_attribute("aria-valuenow", str(when))
    expect(page.locator("#sentence")).to_contain_text(re.compile(r"were (probably )?here"))
    expect(page.locator("#when")).to_contain_text(time_text(times[3]))
    api.advance(PERIOD_MS)
    expect(page.locator("#when")).to_contain_text(
        time_text(times[3])
    )  # a new result does not pull the page out of the past
    page.click("#go-live")
    expect(page.locator("#when")).to_contain_text("Updated")
    box = slider.bounding_box()
    assert box is not None
    slider.click(position={"x": 0.5 * box["width"], "y": 10})
    expect(page.locator("#state-text")).to_contain_text("past")
    slider.press("End")
    expect(page.locator("#state-text")).to_contain_text("live")


def test_history_has_ranges_export_and_what_experts_need(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, site = visit.page, api.sites["flat"]
    go(page, "history")
    page.select_option("#range", "all")
    expect(page.locator("#slider")).to_have_attribute("aria-valuemin", re.compile(r"^\d+$"))
    with page.expect_download() as saved:
        page.click("#export")
    lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "time,room,state,probability"
    assert any(line.split(",")[1:3] == ['"room 2"', "occupied"] for line in lines)
    page.click("#time-card summary")
    expect(page.locator("#finality")).to_contain_text("can still change")
    late = site.times(0, api.now - LAG * PERIOD_MS)[0]
    for _ in range(LAG + 1):
        page.locator("#slider").press("ArrowLeft")
    expect(page.locator("#finality")).to_contain_text("Final")
    assert int(page.get_attribute("#slider", "aria-valuenow") or 0) <= late
    page.click("#go-live")
    page.check("#paths")
    expect(page.locator("#plan .trail").first).to_be_attached()
    page.check("#truth")
    expect(page.locator("#plan .truth")).to_have_count(3)
    page.check("#alone")
    expect(page.locator("#finality")).to_contain_text("this frame alone")
    for box in ("paths", "truth", "alone"):
        page.uncheck(f"#{box}")
    go(page, "home")
    expect(page.locator("#when")).to_contain_text("Updated")
    expect(page.locator("#plan .trail, #plan .truth")).to_have_count(0)


def test_a_lost_connection_is_one_message_and_is_restored(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page = visit.page
    api.cut()
    expect(page.locator("#banner")).to_contain_text("The collector does not answer")
    expect(page.locator("#state")).to_have_attribute("data-state", "lost")
    expect(page.locator("#sentence")).to_contain_text("were")
    api.advance(10 * PERIOD_MS)
    api.mend()
    page.evaluate("dispatchEvent(new Event('online'))")  # sooner than the next retry
    expect(page.locator("#state")).to_have_attribute("data-state", "live")
    newest = api.sites["flat"].times(0, api.now)[0]
    expect(page.locator("#plan .drawing")).to_have_attribute("aria-label", re.compile(time_text(newest)))


def test_an_ended_session_asks_to_sign_in_again(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    api.signed_in = False
    api.advance(PERIOD_MS)
    expect(visit.page.locator("#sign-in-problem")).not_to_be_empty()
    sign_in(visit.page)
    expect(visit.page.locator("#plan .drawing")).to_be_visible()


def test_a_broker_that_is_away_hides_the_devices_that_follow_from_it(browser: Browser) -> None:
    names = [f"s{k:02}" for k in range(1, 13)]
    given = flat(silent=dict.fromkeys(names, 900_000), states={}, problems=[], alarms=[], broker="away")
    with watching(browser, given={"flat": given}, viewport=PHONE) as (visit, api):
        page = visit.page
        expect(page.locator("#banner")).to_contain_text("The broker does not answer")
        assert page.locator("#banner").count() == 1
        go(page, "devices")
        expect(page.locator("#devices-body [data-level=bad]")).to_have_count(0)
        expect(page.locator("#devices-body tr").first).to_contain_text("waits for the broker")
        visit.picture("broker-away")
        given.broker = "ok"
        api.tell("problem", {})
        expect(page.locator("#banner")).to_contain_text("12 of 80 devices need attention")
        expect(page.locator("#devices-body [data-level=bad]")).to_have_count(12)


def test_devices_say_their_state_and_what_to_do_and_can_be_found(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    go(page, "devices")
    rows = page.locator("#devices-body tr")
    expect(rows).to_have_count(80)
    expect(rows.first).to_contain_text("s31")
    expect(rows.nth(1)).to_contain_text("Check its power")
    assert re.findall(r"\d+", text(page, "#devices-summary")) == ["75", "80", "1", "2", "1", "1"]
    listed = page.locator("#problems li").all_inner_texts()
    assert "two values" in listed[0]
    assert any("5 times, s12, s13" in item for item in listed)
    states = {"s31": "alarm", "s17": "bad", "s60": "bad", "s05": "wait", "s44": "unknown", "s01": "good"}
    for sensor, state in states.items():
        expect(page.locator(f"#device-plan [data-sensor={sensor}]")).to_have_class(f"sensor {state}")
    page.check("#only-bad")
    expect(rows).to_have_count(4)
    page.fill("#filter", "offline")
    expect(rows).to_have_count(1)
    page.fill("#filter", "")
    page.uncheck("#only-bad")
    go(page, "home")


@pytest.mark.parametrize(
    ("state", "reason", "shown"),
    [("failing", Reason.FAILING, "unable to measure"), ("skipping", Reason.SKIPPING, "skipping slots")],
)
def test_a_device_that_cannot_measure_is_no_working_one_though_its_readings_arrive(
    browser: Browser, state: str, reason: Reason, shown: str
) -> None:
    given = flat(silent={}, states={"s60": state}, alarms=[], problems=[problem(reason, "s60", 7, START_MS)])
    with watching(browser, given={"flat": given}) as (visit, _):
        go(visit.page, "devices")
        expect(visit.page.locator("#devices-body tr").first).to_contain_text(shown)
        expect(visit.page.locator("#problems li")).to_have_count(1)


def test_over_budget_withdraws_the_guarantee(browser: Browser) -> None:
    over = {"reason": Reason.OVER.value, "last": START_MS - 60_000, "code": "over budget"}
    given = flat(over={"s12": 300}, broken={"s12": [over]}, problems=[], alarms=[])
    with watching(browser, given={"flat": given}) as (visit, _):
        page = visit.page
        expect(page.locator("#banner")).to_contain_text("guarantee does not hold: s12")
        go(page, "privacy")
        expect(page.locator("#guarantee")).to_have_attribute("data-broken", "true")
        assert "are hidden" not in text(page, "#guarantee")
        expect(page.locator("#budget")).to_contain_text("s12 has sent 300 readings")


def test_privacy_says_what_is_hidden_and_shows_the_attackers_view(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    go(page, "privacy")
    expect(page.locator("#guarantee")).to_contain_text("0.1\u00a0m")
    expect(page.locator("#budget")).to_contain_text("As planned")
    expect(page.locator("#longer")).to_contain_text("8 hours")
    expect(page.locator("#attack-plan .mark")).to_have_count(3)
    expect(page.locator("#own-plan .drawing")).to_be_visible()
    page.select_option("#attack-span", "day")
    expect(page.locator("#attack-text")).to_contain_text("of the day up to")
    assert "cannot verify" in text(page, "[aria-label=Guarantee]")
    go(page, "home")


def test_settings_say_where_each_value_stands(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    go(page, "settings")
    shown = text(page, "#settings-body")
    for fact in ("keeps its state for 2 min hold in [motion]", "room 1 label in its [[zone]]", "alpha in [privacy]"):
        assert fact in shown
    page.select_option("#theme", "dark")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    page.reload()
    expect(page.locator("#theme")).to_have_value("dark")
    page.select_option("#theme", "system")
    go(page, "home")


def test_texts_of_devices_never_become_markup(browser: Browser) -> None:
    evil = {"sensor": EVIL, "reason": EVIL, "count": 1, "last": 1, "code": EVIL, "breaks_claim": False}
    with watching(browser, given={"flat": flat(problems=[evil])}) as (visit, _):
        go(visit.page, "devices")
        expect(visit.page.locator("#problems")).to_contain_text(EVIL)
        assert visit.page.locator("#problems img, #problems script").count() == 0


def test_an_alarm_of_the_physics_says_what_to_do_and_goes_when_it_ends(browser: Browser) -> None:
    moved, door = FoundFault("s20", "moved", "s21", START_MS - 60_000), FoundFault("", "door", "2", START_MS - 60_000)
    faults = [asdict(fault) | {"text": fault_text(fault)} for fault in (moved, door)]
    with watching(browser, given={"flat": flat(alarms=[], problems=[], silent={}, states={})}) as (visit, api):
        page = visit.page
        api.sites["flat"].faults = faults
        api.tell("fault", {"site": "flat", **faults[0]})
        expect(page.locator("#banner")).to_contain_text("s20")
        go(page, "devices")
        expect(page.locator("#devices-body tr").first).to_contain_text("position of s21")
        expect(page.locator("#problems")).to_contain_text("Door 2 seems to be shut")
        api.sites["flat"].faults = [fault | {"ended": api.now} for fault in faults]
        api.tell("fault", {"site": "flat", **faults[0]})
        expect(page.locator("#banner")).to_be_hidden()


def test_several_sites_stand_in_a_row_and_open_by_a_click(browser: Browser) -> None:
    with watching(browser, site="hall", viewport=PHONE) as (visit, _):
        page = visit.page
        expect(page.locator("#sites button strong")).to_have_text(["flat", "hall", "pipes", "new"])
        expect(page.locator("#sites button").nth(0)).to_contain_text("people")
        expect(page.locator("#sentence")).to_have_text(re.compile(r"One source is at [\d.]+.m\."))
        expect(page.locator("#plan .area")).to_be_attached()
        page.click("#sites [data-site=pipes]")
        expect(page.locator("#plan .node")).to_have_count(12)
        expect(page.locator("#sentence")).to_have_text(re.compile("One source is at [a-z]+"))
        page.reload()
        expect(page.locator("#plan .node")).to_have_count(12)  # the address keeps the site
        page.click("#sites [data-site=new]")
        expect(page.locator("#sentence")).to_contain_text("0 of 80 devices heard so far")


def test_old_data_are_marked(browser: Browser) -> None:
    stopped = certain()
    with watching(browser, given={"flat": stopped}) as (visit, api):
        page, last = visit.page, stopped.times(0, api.now)
        stopped.times = lambda since, until: [when for when in last if since <= when <= until]  # type: ignore[method-assign]
        api.advance(10 * PERIOD_MS)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("#banner")).to_contain_text("No new picture since")
        expect(page.locator("#state")).to_have_attribute("data-state", "old")
        expect(page.locator("#sentence")).to_contain_text("were here")


def test_a_fast_clock_and_a_solver_that_compiles_are_said(browser: Browser) -> None:
    new = FakeSite(flat_text(name="new"), None, speed=60.0, preparing=True)
    with watching(browser, site="new", given={"new": new}) as (visit, _):
        expect(visit.page.locator("#state-text")).to_contain_text("60 times as fast")
        expect(visit.page.locator("#sentence")).to_contain_text("being compiled")


def test_a_day_of_results_does_not_fill_the_page(browser: Browser) -> None:
    with watching(browser, site="hall", given={"hall": FakeSite(LINE, flat().began or 0, used=30)}) as (visit, api):
        page = visit.page
        expect(page.locator("#lanes rect").first).to_be_attached()
        nodes = page.evaluate("document.getElementsByTagName('*').length")
        for _ in range(5):
            api.advance(1_800_000)
            newest = time_text(api.sites["hall"].times(0, api.now)[0])
            expect(page.locator("#plan .drawing")).to_have_attribute("aria-label", re.compile(newest))
        assert page.evaluate("document.getElementsByTagName('*').length") < nodes + 200


def keep(store: Store, *results: Result) -> None:
    """Store results, each with a reading: a result without readings is not kept."""
    store.readings.add([Reading("hall", "s1", one.time, one.time, 5, one.time) for one in results])
    assert len(store.results.save(results)) == len(results)


def test_the_page_shows_the_data_of_the_real_collector(browser: Browser, tmp_path: Path) -> None:
    period = 2_000
    with served(tmp_path) as (made, url):
        now = int(1000 * time.time())
        keep(made.store, *(result(now - k * period, solved=now - k * period + 900) for k in range(1, 40)))
        made.store.reports.add([DeviceReport("hall", name, "online", 14, 30, now) for name in ("s1", "s2", "s3")])
        made.store.problems.add([ProblemCount("hall", "s2", Reason.LATE, 3, now)])
        address = f"{url}/?site=hall#code={made.code('analyst')}"
        with visiting(browser, address, expected=(*USUAL, "status of 403", "status of 404")) as visit:
            page = visit.page
            page.wait_for_selector("#board[aria-busy=false]")
            expect(page.locator("#sentence")).to_have_text(re.compile(r"One source is at 0\.25.m\."))
            expect(page.locator("#sure")).to_contain_text("97")
            assert list(marks(page).values()) == [(0.25,)]
            news = result(now + period, solved=now + period)
            moved = replace(news, sources=(replace(news.sources[0], at=(0.75,)),))
            keep(made.store, moved)
            made.publish(moved)
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")
            page.locator("#slider").press("Home")
            expect(page.locator("#state-text")).to_contain_text("past")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.250")
            page.click("#go-live")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")
            go(page, "devices")
            expect(page.locator("#problems")).to_contain_text("3 times, s2")
            go(page, "privacy")
            expect(page.locator("#attack-text")).to_contain_text(re.compile(r"all \d+ frames of the"))
            failed = replace(result(now + 2 * period), status="failed: too few", sources=(), counts=None, map=None)
            keep(made.store, failed)
            made.publish(failed)
            last = replace(result(now + 3 * period), sources=moved.sources, counts=(0.2, 0.8))
            keep(made.store, last)
            made.publish(last)
            go(page, "home")
            expect(page.locator("#sure")).to_contain_text("80")
            made.store.tokens.revoke(made.ids["analyst"])
            expect(page.locator("#sign-in-problem")).not_to_be_empty()
            sign_in(page, made.secrets["device"])
            expect(page.locator("#sign-in-problem")).to_contain_text("device")
            sign_in(page, made.secrets["yard"])
            expect(page.locator("#site-name")).to_have_text("yard")
            expect(page.locator("#sentence")).to_contain_text("No picture yet")
            until(lambda: page.is_hidden("#sites"), page)
