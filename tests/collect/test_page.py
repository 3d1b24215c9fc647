"""The page in a real browser, with a real collector whose clock the test moves."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import DeviceReport, FoundFault, PhysicsCheck
from cloakwork.mqtt import BrokerState
from tests.browser import Visit, visiting
from tests.collect.page_kit import (
    FLAT,
    FRAMES,
    GRAPH,
    LAG,
    LINE,
    NEW,
    START_MS,
    USUAL,
    Home,
    collecting,
    go,
    sign_in,
    text,
    time_text,
    watching,
)

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
PHONE = {"width": 390, "height": 844}
ORDER = ["sentence", "doubt", "rooms-card", "map-card", "time-card", "privacy-line"]


def test_a_token_signs_in_and_out_and_not_from_the_address(browser: Browser) -> None:
    home = Home()
    expected = (*USUAL, "status of 403")
    with collecting(home) as url, visiting(browser, f"{url}/", expected=expected) as visit:
        page, secrets = visit.page, home.made.secrets
        page.goto(f"{url}/#token={secrets['analyst']}")
        expect(page.locator("#token")).to_be_focused()
        sign_in(page, "cw_wrong")
        expect(page.locator("#sign-in-problem")).to_contain_text("unknown")
        sign_in(page, secrets["device"])
        expect(page.locator("#sign-in-problem")).to_contain_text("device")
        sign_in(page, secrets["analyst"])
        expect(page.locator("#sentence")).to_contain_text("Three people")
        assert page.input_value("#token") == ""
        go(page, "settings")
        page.click("#sign-out")
        expect(page.locator("#sign-in")).to_be_visible()
        expect(page.locator("#board")).to_be_hidden()


def test_a_code_in_the_address_signs_in_once_and_is_removed_from_it(browser: Browser) -> None:
    home = Home()
    with collecting(home) as url:
        code = home.made.code("analyst")
        with visiting(browser, f"{url}/#code={code}", expected=USUAL) as visit:
            expect(visit.page.locator("#board")).to_be_visible()
            assert code not in visit.page.url
            assert code not in visit.page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        with visiting(browser, f"{url}/#code={code}", expected=USUAL) as other:
            expect(other.page.locator("#sign-in-problem")).to_contain_text("has been used")
            other.page.goto(f"{url}/#code={home.made.code('analyst')}")  # which does not reload the page
            expect(other.page.locator("#board")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_home_answers_first_and_says_nothing_twice(browser: Browser, width: int) -> None:
    home = Home()
    with watching(browser, home, viewport={"width": width, "height": 844}) as visit:
        page = visit.page
        expect(page.locator("#sentence")).to_have_text(
            "Three people are here: one in room 1, one in room 2, one in room 3."
        )
        for fact in ("Updated", "of the number", "not simulated"):
            expect(page.locator("#doubt")).to_contain_text(fact)
        expect(page.locator("#rooms li")).to_have_count(3)
        expect(page.locator("#rooms li").first).to_contain_text("99 % occupied")
        expect(page.locator("#lanes .occupied").first).to_be_attached()
        expect(page.locator("#plan .tint.occupied")).to_have_count(3)
        expect(page.locator("#plan .mark")).to_have_count(3)
        expect(page.locator("#banner")).to_be_hidden()
        boxes = [page.locator(f"#{part}, .{part}").first.bounding_box() for part in ORDER]
        tops = [box["y"] for box in boxes if box]
        assert len(tops) == len(ORDER)
        assert tops == sorted(tops)
        assert tops[2] < 500, "the rooms begin on the first screen of a phone"
        assert page.locator("#board input:visible, #board table:visible, #plan .mark text").count() == 0
        assert "epsilon" not in page.inner_text("main")
        lines = [line for line in page.inner_text("#sentence, .privacy-line").split("\n") if line]
        assert len(lines) == len(set(lines))
        visit.picture(f"home-{width}")
        home.advance()
        drawing = page.locator("#plan .drawing")
        expect(drawing).to_have_attribute("aria-label", re.compile(time_text(home.times()[0])))


def test_a_tap_on_the_timeline_goes_back_and_a_button_returns(flat_visit: tuple[Visit, Home]) -> None:
    visit, home = flat_visit
    page, slider = visit.page, visit.page.locator("#slider")
    expect(page.locator("#lanes rect").first).to_be_attached()
    times = home.times()
    slider.focus()
    for when in times[1:4]:
        slider.press("ArrowLeft")
        expect(slider).to_have_attribute("aria-valuenow", str(when))
    expect(page.locator("#sentence")).to_contain_text(re.compile(r"were (probably )?here"))
    expect(page.locator("#when")).to_contain_text(time_text(times[3]))
    home.advance()
    expect(page.locator("#lanes rect").first).to_be_attached()
    expect(page.locator("#when")).to_contain_text(time_text(times[3]))  # a new result does not end the past
    page.click("#go-live")
    expect(page.locator("#when")).to_contain_text("Updated")
    box = slider.bounding_box()
    assert box is not None
    slider.click(position={"x": 0.9 * box["width"], "y": 10})
    expect(page.locator("#state-text")).to_contain_text("past")
    slider.press("End")
    expect(page.locator("#state-text")).to_contain_text("live")


def test_history_has_ranges_export_and_what_experts_need(flat_visit: tuple[Visit, Home]) -> None:
    page = flat_visit[0].page
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
    page.check("#paths")
    expect(page.locator("#plan .trail")).to_have_count(3 * (LAG + 2))  # final points of a window, and the newest
    page.check("#truth")
    expect(page.locator("#plan .truth")).to_have_count(3)
    page.check("#alone")
    expect(page.locator("#finality")).to_contain_text("this frame alone")
    for box in ("paths", "truth", "alone"):
        page.uncheck(f"#{box}")
    for _ in range(LAG + 2):
        page.locator("#slider").press("ArrowLeft")
    expect(page.locator("#finality")).to_contain_text("Final")
    go(page, "home")
    expect(page.locator("#when")).to_contain_text("Updated")
    expect(page.locator("#plan .trail, #plan .truth")).to_have_count(0)


def test_a_lost_connection_is_one_message_and_is_restored(flat_visit: tuple[Visit, Home]) -> None:
    page, home = flat_visit[0].page, flat_visit[1]
    page.context.set_offline(True)
    expect(page.locator("#banner")).to_contain_text("The collector does not answer")
    expect(page.locator("#state")).to_have_attribute("data-state", "lost")
    expect(page.locator("#sentence")).to_contain_text("were")
    home.advance(10)
    page.context.set_offline(False)
    expect(page.locator("#state")).to_have_attribute("data-state", "live")
    drawing = page.locator("#plan .drawing")
    expect(drawing).to_have_attribute("aria-label", re.compile(time_text(home.times()[0])))


def test_an_ended_session_asks_to_sign_in_again(flat_visit: tuple[Visit, Home]) -> None:
    page, home = flat_visit[0].page, flat_visit[1]
    home.made.context.access._sessions.clear()  # noqa: SLF001 - as after half a day
    expect(page.locator("#sign-in-problem")).to_contain_text("Your session has ended")
    sign_in(page, home.made.secrets["analyst"])
    expect(page.locator("#plan .drawing")).to_be_visible()


def test_a_broker_that_is_away_hides_the_devices_that_follow_from_it(browser: Browser) -> None:
    home = Home(silent=[f"s{k:02}" for k in range(1, 13)])
    with watching(browser, home, viewport=PHONE) as visit:
        page, broker = visit.page, home.made.broker
        expect(page.locator("#banner")).to_be_hidden()
        broker.state = BrokerState(False, home.now, "it is away")
        expect(page.locator("#banner")).to_contain_text("The broker does not answer")
        go(page, "devices")
        expect(page.locator("#devices-body [data-level=bad]")).to_have_count(0)
        expect(page.locator("#devices-body tr").first).to_contain_text("waits for the broker")
        visit.picture("broker-away")
        broker.state = BrokerState(True, home.now, "")
        reports = [DeviceReport("flat", name, "offline", 0, 60, home.now) for name in home.silent]
        home.made.store.reports.add(reports)
        expect(page.locator("#banner")).to_contain_text("12 of 80 devices need attention")
        expect(page.locator("#devices-body [data-level=bad]")).to_have_count(12)


def test_devices_say_their_state_and_what_to_do_and_can_be_found(browser: Browser) -> None:
    home = Home(silent=["s17", "s44"])
    with watching(browser, home) as visit:
        page = visit.page
        home.trouble()
        go(page, "devices")
        rows = page.locator("#devices-body tr")
        expect(rows.first).to_contain_text("s31")
        expect(rows.nth(1)).to_contain_text("Check its power")
        assert re.findall(r"\d+", text(page, "#devices-summary")) == ["73", "80", "1", "4", "1", "1"]
        listed = page.locator("#problems li").all_inner_texts()
        assert "two values" in listed[0]
        assert any("5 times, s12, s13" in item for item in listed)
        states = {"s31": "alarm", "s17": "bad", "s60": "bad", "s05": "wait", "s44": "unknown", "s01": "good"}
        for sensor, state in states.items():
            expect(page.locator(f"#device-plan [data-sensor={sensor}]")).to_have_class(f"sensor {state}")
        for sensor, shown in (("s61", "unable to measure"), ("s62", "skipping slots"), ("s60", "offline")):
            page.fill("#filter", shown)
            expect(rows).to_have_count(1)
            expect(rows.first).to_contain_text(sensor)
        page.fill("#filter", "")
        page.check("#only-bad")
        expect(rows).to_have_count(6)


def test_over_budget_withdraws_the_guarantee(browser: Browser) -> None:
    home = Home()
    with watching(browser, home) as visit:
        page = visit.page
        home.made.store.reports.add([DeviceReport("flat", "s12", "online", 300, 60, home.now)])
        home.problem(Reason.OTHER_BUDGET, "s13", 1)
        expect(page.locator("#banner")).to_contain_text("guarantee does not hold: s12 has sent more")
        expect(page.locator("#banner")).to_contain_text("s13 reports another budget")
        go(page, "privacy")
        expect(page.locator("#guarantee")).to_have_attribute("data-broken", "true")
        assert "are hidden" not in text(page, "#guarantee")
        expect(page.locator("#budget")).to_contain_text("s12 has sent 300 readings")


def test_privacy_says_what_is_hidden_and_shows_the_attackers_view(flat_visit: tuple[Visit, Home]) -> None:
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


def test_settings_say_where_each_value_stands(flat_visit: tuple[Visit, Home]) -> None:
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
    home = Home()
    with watching(browser, home) as visit:
        home.problem(EVIL, EVIL, 1)
        go(visit.page, "devices")
        expect(visit.page.locator("#problems")).to_contain_text(EVIL)
        assert visit.page.locator("#problems img, #problems script").count() == 0


def test_an_alarm_of_the_physics_says_what_to_do_and_goes_when_it_ends(browser: Browser) -> None:
    home = Home()
    with watching(browser, home) as visit:
        page = visit.page
        for ended in (None, START_MS):
            moved, door = (FoundFault(*what, START_MS, ended) for what in (("s20", "moved", "s21"), ("", "door", "2")))
            check = PhysicsCheck("flat", "model", START_MS + bool(ended), b"", (moved, door))
            home.made.store.checks.save(check, after=START_MS if ended else None)
            if ended is None:
                expect(page.locator("#banner")).to_contain_text("s20")
                go(page, "devices")
                expect(page.locator("#devices-body tr").first).to_contain_text("position of s21")
                expect(page.locator("#problems")).to_contain_text("Door 2 seems to be shut")
        expect(page.locator("#banner")).to_be_hidden()


def test_several_sites_stand_in_a_row_and_open_by_a_click(browser: Browser) -> None:
    home = Home([FLAT, LINE, GRAPH, NEW])
    with watching(browser, home, site="hall", viewport=PHONE, expected=("status of 404",)) as visit:
        page = visit.page
        expect(page.locator("#sites button strong")).to_have_text(["flat", "hall", "pipes", "new"])
        expect(page.locator("#sites button").nth(0)).to_contain_text("people")
        expect(page.locator("#sentence")).to_have_text(re.compile(r"One source is at [\d.]+.m\."))
        expect(page.locator("#plan .area")).to_be_attached()
        page.click("#sites [data-site=pipes]")
        expect(page.locator("#plan .node")).to_have_count(6)
        expect(page.locator("#sentence")).to_have_text(re.compile("One source is at [a-z]+"))
        page.reload()
        expect(page.locator("#plan .node")).to_have_count(6)  # the address keeps the site
        page.click("#sites [data-site=new]")
        expect(page.locator("#sentence")).to_contain_text("0 of 24 devices heard so far")


def test_old_data_are_marked(browser: Browser) -> None:
    home = Home()
    with watching(browser, home) as visit:
        page = visit.page
        home.now += 10 * 60_000
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("#banner")).to_contain_text("No new picture since")
        expect(page.locator("#state")).to_have_attribute("data-state", "old")
        expect(page.locator("#sentence")).to_contain_text("were here")


def test_hours_of_results_do_not_fill_the_page(browser: Browser) -> None:
    home = Home([LINE])
    with watching(browser, home, site="hall") as visit:
        page = visit.page
        expect(page.locator("#lanes rect").first).to_be_attached()
        nodes = page.evaluate("document.getElementsByTagName('*').length")
        for _ in range(5):
            home.advance(FRAMES)
            newest = time_text(home.times()[0])
            expect(page.locator("#plan .drawing")).to_have_attribute("aria-label", re.compile(newest))
        assert page.evaluate("document.getElementsByTagName('*').length") < nodes + 200
