"""The panels around the map: sensors, problems, doubts, charts and zones; and the page with the real collector."""

import re
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from cloakwork.collect.message_problems import Reason
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.storage import DeviceReport, FoundFault, ProblemCount, Reading, RecoveredTrack, Result, Store
from cloakwork.site import parse_site
from tests.browser import Visit, visiting
from tests.collect.access import contrast, violations
from tests.collect.api_kit import result, served, watched
from tests.collect.fake_api import FakeApi
from tests.collect.fake_sites import LINE, PERIOD_MS, START_MS, FakeSite, flat_text
from tests.collect.page_kit import HOUR_MS, USUAL, flat, marks, problem, sign_in, text, time_text, until, watching

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
ZONES = flat_text() + (
    '[[zone]]\nid = "living"\nlabel = "Living room"\nroom = [3.0, 4.0]\n'
    '[[zone]]\nid = "north"\nroom = [8.0, 6.0]\n'
    '[[zone]]\nid = "bed"\nlabel = "<b>Bed</b>"\ncorners = [[9.0, 0.0], [10.0, 0.5]]\n'
)
LINE_ZONES = LINE.replace('name = "hall"', 'name = "flat"') + (
    '[[zone]]\nid = "near"\nbetween = [0.0, 20.0]\n[[zone]]\nid = "far"\nbetween = [20.0, 40.0]\n'
)


def test_sensors_sort_and_show_their_state(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    rows = page.locator("#sensors-body tr:not([hidden])")
    expect(rows).to_have_count(80)
    expect(rows.first).to_contain_text("alarm")
    assert re.findall(r"\d+", text(page, "#sensors-summary")) == ["75", "80", "1", "2", "1", "1"]
    page.click("#sensors-head button:has-text('Noise')")
    head = page.locator("#sensors-head th:has-text('Noise')")
    expect(head).to_have_attribute("aria-sort", "ascending")
    noise = [float(cell.split()[0]) for cell in page.locator("#sensors-body td:nth-child(4)").all_inner_texts()]
    assert noise == sorted(noise)
    page.click("#sensors-head button:has-text('Noise')")
    expect(head).to_have_attribute("aria-sort", "descending")
    page.check("#only-bad")
    expect(rows).to_have_count(4)
    states = {"s31": "alarm", "s17": "bad", "s60": "bad", "s05": "wait", "s44": "unknown", "s01": "good"}
    for sensor, state in states.items():
        expect(page.locator(f"#plan [data-sensor={sensor}]")).to_have_class(f"sensor {state}")


def test_problems_are_counted_by_code(flat_visit: tuple[Visit, FakeApi]) -> None:
    page = flat_visit[0].page
    expect(page.locator("#problems li")).to_have_count(5)
    items = page.locator("#problems li").all_inner_texts()
    assert "two values" in items[0]
    assert "s31" in items[0]
    assert [item for item in items if "check the device" in item] == items[1:3], "sensors that are away come next"
    assert all(name in item for name, item in zip(("s17", "s60"), items[1:3], strict=True))
    assert any("5 times, s12, s13" in item for item in items)
    assert any("12 times, no known sensor" in item for item in items)


def test_a_sensor_that_never_sent_has_no_last_reading(browser: Browser) -> None:
    given = flat(states={"s60": "offline"}, reported={"s44": 55_000, "s60": 55_000}, alarms=[], problems=[])
    with watching(browser, given={"flat": given}) as (visit, _):
        page = visit.page
        expect(page.locator("#problems li")).to_have_count(2)
        [item] = page.locator("#problems li", has_text="s60").all_inner_texts()
        assert "no reading so far" in item
        expect(page.locator("#plan [data-sensor=s44]")).to_have_class("sensor unknown")
        row = page.locator("#sensors-body tr", has_text="s44")
        assert row.locator("td").all_inner_texts()[:2] == ["no reading yet", "none"]


@pytest.mark.parametrize(
    ("state", "reason", "shown", "why"),
    [
        ("failing", Reason.FAILING, "unable to measure", "measure.py raises errors"),
        ("skipping", Reason.SKIPPING, "skipping slots", "stores its state too slowly"),
    ],
)
def test_a_sensor_that_cannot_measure_is_no_working_one_though_its_readings_arrive(
    browser: Browser, state: str, reason: Reason, shown: str, why: str
) -> None:
    given = flat(silent={}, states={"s60": state}, alarms=[], problems=[problem(reason, "s60", 7, START_MS)])
    with watching(browser, given={"flat": given}) as (visit, _):
        page = visit.page
        expect(page.locator("#problems li")).to_have_count(2)
        assert f"Sensor s60 is {shown}" in page.locator("#problems li").first.inner_text()
        expect(page.locator("#problems li").last).to_contain_text(why)
        expect(page.locator("#plan [data-sensor=s60]")).to_have_class("sensor bad")
        row = page.locator("#sensors-body tr", has_text="s60")
        assert shown in row.locator("td").first.inner_text()


def test_rooms_without_names_are_numbered_and_follow_the_moment_shown(flat_visit: tuple[Visit, FakeApi]) -> None:
    visit, api = flat_visit
    page, site = visit.page, api.sites["flat"]
    expect(page.locator("#lanes li")).to_have_count(4)
    assert zone_lines(page)[0].startswith("room 1: ")
    assert page.locator("#plan .room").all_text_contents() == ["room 1", "room 2", "room 3"]

    def shows_zones_of(when: int) -> bool:
        chances = [zone["probability"] for zone in site.result(when, now=api.now)["zones"]]
        sure = [round(100 * max(chance, 1 - chance)) for chance in chances]
        return all(f"{min(p, 99)} %" in line for p, line in zip(sure, zone_lines(page), strict=True))

    live, before, *_ = site.times(0, api.now)
    page.click("#back")
    expect(page.locator("#state-text")).to_contain_text("Past")
    until(lambda: shows_zones_of(before), page)
    page.click("#go-live")
    until(lambda: shows_zones_of(live), page)
    visit.picture("zones-rooms")


def test_over_budget_is_an_alarm_and_withdraws_the_claim(browser: Browser) -> None:
    last = START_MS - 60_000
    over = {"reason": Reason.OVER.value, "last": last, "code": "over budget"}
    given = flat(
        over={"s12": 300},
        broken={"s12": [over]},
        problems=[problem(Reason.OVER, "s12", 240, last)],
        alarms=[],
    )
    with watching(browser, given={"flat": given}) as (visit, api):
        page = visit.page
        claim = page.locator("#claim")
        expect(claim).to_have_attribute("data-broken", "true")
        expect(claim).to_contain_text("s12")
        assert "are hidden" not in text(page, ".privacy")
        expect(page.locator("#meaning")).to_be_hidden()
        assert text(page, "#budget").startswith("300 of 60")
        expect(page.locator("#budget-bar")).to_have_attribute("data-over", "true")
        expect(page.locator("#plan [data-sensor=s12]")).to_have_class("sensor alarm")
        expect(page.locator("#sensors-body tr").first).to_contain_text("over budget")
        expect(page.locator("#problems li").first).to_have_attribute("data-kind", "alarm")
        assert violations(page) == []
        assert contrast(page) == []
        visit.picture("over-budget")
        given.over.clear()
        api.advance(5 * HOUR_MS)
        api.tell("problem", {})
        expect(claim).to_have_attribute("data-broken", "false")
        expect(claim).to_contain_text("are hidden")


def test_texts_of_devices_never_become_markup_and_no_alarm_hides_another(browser: Browser) -> None:
    alarms = [{"sensor": "s01", "seq": k, "received": START_MS - k} for k in range(3)]
    alarms.append({"sensor": "s31", "seq": 7, "received": START_MS - 9_000_000})
    evil = {"sensor": EVIL, "reason": EVIL, "count": 1, "last": 1, "code": EVIL, "breaks_claim": False}
    with watching(browser, given={"flat": flat(alarms=alarms, problems=[evil])}) as (visit, _):
        page = visit.page
        items = page.locator("#problems li[data-kind=alarm]").all_inner_texts()
        assert len(items) == 2
        assert "s01, number 0 and 2 others" in items[0]
        assert "s31, number 7" in items[1]
        expect(page.locator("#plan [data-sensor=s31]")).to_have_class("sensor alarm")
        expect(page.locator("#problems")).to_contain_text(EVIL)
        assert page.locator("#problems img, #problems script").count() == 0


def test_doubts_about_a_map_are_shown(browser: Browser) -> None:
    given = flat()
    usual = given.result
    doubts = {"fit": 1e-6, "doubtful": True, "set_aside": ["s03"], "status": "stopped"}
    given.result = lambda time, **options: usual(time, **options) | doubts  # type: ignore[method-assign]
    with watching(browser, given={"flat": given}) as (visit, _):
        items = visit.page.locator("#estimate-doubts li").all_inner_texts()
        assert len(items) == 5
        del items[1]  # a possible source
        for item, fact in zip(items, ("stopped", "2 of 80", "s03", "p = 0.000001"), strict=True):
            assert fact in item or "p = 1e-6" in item


def test_a_day_of_results_does_not_fill_the_page(browser: Browser) -> None:
    """A day of results must not fill the memory of a wall screen."""
    with watching(browser, site="hall", given={"hall": FakeSite(LINE, flat().began or 0, used=30)}) as (visit, api):
        page = visit.page
        expect(page.locator("#lanes .count")).not_to_have_count(0)
        nodes = page.evaluate("document.getElementsByTagName('*').length")
        for _ in range(5):
            api.advance(HOUR_MS // 2)
            newest = api.sites["hall"].times(0, api.now)[0]
            expect(page.locator("#live-caption")).to_contain_text(time_text(newest))
        assert page.evaluate("document.getElementsByTagName('*').length") < nodes + 200


def zone_lines(page: Page) -> list[str]:
    """Each zone with its text, without the lane of the count."""
    rows = page.locator("#lanes li:not([data-id=''])").all()
    parts = [(row.locator("strong").inner_text(), row.locator(".say").inner_text()) for row in rows]
    return [": ".join(part).replace("\u00a0", " ") for part in parts]


def zoned(*odds: tuple[float | None, float], site: str = ZONES) -> dict[str, FakeSite]:
    """A site whose zones have these probabilities and expected numbers."""
    names = [zone.id for zone in parse_site(site).zones]
    return {"flat": FakeSite(site, START_MS - 5 * PERIOD_MS, zone_odds=dict(zip(names, odds, strict=True)))}


def test_each_zone_has_a_line_with_its_probability(browser: Browser) -> None:
    with watching(browser, given=zoned((0.993, 1.9), (0.38, 0.4), (None, 0.83))) as (visit, _):
        page = visit.page
        expect(page.locator("#lanes li")).to_have_count(4)
        assert zone_lines(page) == ["Living room: about 2, 99 %", "north: no one, 62 %", "<b>Bed</b>: weight 0.83"]
        assert page.locator('#lanes li:not([data-id=""])[data-there="true"]').count() == 1
        assert page.get_by_role("list", name="Rooms").count() == 1
        assert "Living room (2)" in text(page, "#estimate-views")
        assert "north" not in text(page, "#estimate-views")
        assert "near north" in text(page, "#estimate-sources"), "a mark never contradicts the list of zones"
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == []
            assert contrast(page) == []
            visit.picture(f"zones-{scheme}")


def test_a_source_on_a_line_is_no_person_and_a_phone_shows_all_zones_and_sensors(browser: Browser) -> None:
    given = zoned((0.95, 1.0), (0.05, 0.1), site=LINE_ZONES)
    with watching(browser, given=given, viewport={"width": 360, "height": 740}) as (visit, _):
        page = visit.page
        expect(page.locator("#lanes li")).to_have_count(3)
        assert zone_lines(page) == ["near: a source, 95 %", "far: no source, 95 %"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tops = page.eval_on_selector_all(".top > *", "all => all.map((one) => one.offsetTop + one.offsetHeight / 2)")
        assert max(tops) - min(tops) < 5, "the header is one row"
        assert page.eval_on_selector(".scroll", "table => table.scrollWidth <= table.clientWidth"), "the table fits"
        visit.picture("zones-phone")


def keep(store: Store, *results: Result) -> None:
    """Store results, each with a reading: a result without readings is not kept."""
    store.readings.add([Reading("hall", "s1", one.time, one.time, 5, one.time) for one in results])
    assert len(store.results.save(results)) == len(results)


def test_the_page_shows_the_data_of_the_real_collector(browser: Browser, tmp_path: Path) -> None:
    period = 2_000
    with served(tmp_path) as (made, url):
        now = int(1000 * time.time())
        keep(made.store, *(result(now - k * period, solved=now - k * period + 900) for k in range(1, 40)))
        used = {"s1": 30, "s2": 14, "s3": 15}  # s1 reports its whole budget: the stored readings leave the window soon
        made.store.reports.add([DeviceReport("hall", name, "online", count, 30, now) for name, count in used.items()])
        made.store.problems.add([ProblemCount("hall", "s2", Reason.LATE, 3, now)])
        address = f"{url}/?site=hall#code={made.code('analyst')}"
        with visiting(browser, address, expected=(*USUAL, "status of 403")) as visit:
            page = visit.page
            page.wait_for_selector("#board[aria-busy=false]")
            expect(page.locator("#estimate-views")).to_contain_text(re.compile("1 source97.% sure"))
            assert marks(page) == {"a": (0.25,)}
            expect(page.locator("#estimate-sources")).to_contain_text(re.compile(r"at 0\.25.m\s*97.% sure"))
            expect(page.locator("#budget")).to_have_text(re.compile("^30 of 30 readings"))
            expect(page.locator("#problems")).to_contain_text("3 times, s2")
            expect(page.locator("#service")).to_contain_text("Broker connected")
            assert re.findall(r"\d+", text(page, "#sensors-summary")) == ["1", "4", "3"], (
                "three have reported, but sent no reading"
            )
            expect(page.locator("#truth-choice")).to_be_hidden()

            news = result(now + period, solved=now + period)
            moved = replace(news, sources=(replace(news.sources[0], at=(0.75,)),))
            keep(made.store, moved)
            made.publish(moved)
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")

            page.locator("#slider").press("Home")
            expect(page.locator("#state-text")).to_contain_text("Past")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.250")
            page.click("#go-live")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")
            page.check("#layer-attack")
            expect(page.locator("#attack-text")).to_contain_text(re.compile(r"all \d+ frames of the"))
            failed = replace(result(now + 2 * period), status="failed: too few", sources=(), counts=None, map=None)
            keep(made.store, failed)
            made.publish(failed)
            last = replace(result(now + 3 * period), sources=moved.sources, counts=(0.2, 0.8))
            keep(made.store, last)
            made.publish(last)
            expect(page.locator("#estimate-views")).to_contain_text(re.compile("1 source80.%"))
            page.locator("#slider").press("ArrowLeft")
            expect(page.locator("#plan .drawing")).to_have_attribute("aria-label", re.compile("97.% sure"))

            made.store.tokens.revoke(made.ids["analyst"])
            expect(page.locator("#sign-in-problem")).not_to_be_empty()
            sign_in(page, made.secrets["device"])
            expect(page.locator("#sign-in-problem")).to_contain_text("device")
            expect(page.locator("#board")).to_be_hidden()
            sign_in(page, made.secrets["yard"])
            expect(page.locator("#no-map")).to_contain_text("No map yet")
            assert page.locator("#site option").all_inner_texts() == ["yard"], "a token of one site shows that site"
            page.click("#sign-out")
            expect(page.locator("#sign-in")).to_be_visible()


def followed(when: int, at: float, *, settled: bool = False) -> Result:
    """A source with the label 4 that is there, and a doubt with the label 6."""
    bare = result(when, solved=when + 500)
    track = RecoveredTrack(4, when - 60_000, "3", (at,), 1.0, 0.1, 0.97, 0.9)
    tracks = (track, replace(track, label=6, at=(0.9,), probability=0.2))
    return replace(
        bare, sources=(replace(bare.sources[0], at=(at,), label=4),), tracks=tracks, settled=settled, labels=6
    )


def test_the_page_follows_what_the_real_collector_follows(browser: Browser, tmp_path: Path) -> None:
    period = 2_000
    with served(tmp_path) as (made, url):
        now = int(1000 * time.time())
        lag = watched().lag
        times = [now - k * period for k in range(lag + 8, 0, -1)]
        given = [followed(when, 0.25 + 0.01 * k, settled=k < 8) for k, when in enumerate(times)]
        keep(made.store, *given)
        address = f"{url}/?site=hall#code={made.code('analyst')}"
        with visiting(browser, address, expected=USUAL) as visit:
            page = visit.page
            expect(page.locator("#plan .mark:not(.doubt)")).to_have_attribute("data-id", "4")
            expect(page.locator("#plan .mark.doubt")).to_have_attribute("data-id", "6")
            expect(page.locator("#plan .trail").first).to_be_attached()
            expect(page.locator("#lanes .count")).not_to_have_count(0)
            expect(page.locator('[data-view="Settled"]')).to_contain_text(time_text(times[7]))
            until(lambda: "followed for 1 min" in text(page, "#estimate-sources"), page)
            expect(page.locator("#longer")).to_contain_text("8 hours")
            page.click("#go-settled")
            expect(page.locator("#plan .mark:not(.doubt)")).to_have_attribute("data-at", "0.320")
            again = replace(followed(times[8], 0.5, settled=True), solved=now)
            assert len(made.store.results.save([again])) == 1
            made.publish(again)
            expect(page.locator("#plan .mark:not(.doubt)")).to_have_attribute("data-at", "0.500")
            page.click("#go-live")
            expect(page.locator("#live-caption")).to_contain_text("can still change")


def test_an_alarm_of_the_physics_appears_says_what_to_do_and_goes_when_it_ends(browser: Browser) -> None:
    moved, door = FoundFault("s20", "moved", "s21", START_MS - 60_000), FoundFault("", "door", "2", START_MS - 60_000)
    faults = [asdict(fault) | {"text": fault_text(fault)} for fault in (moved, door)]
    with watching(browser, given={"flat": flat(alarms=[])}) as (visit, api):
        page, listed = visit.page, visit.page.locator(".problem-list [data-kind=alarm]")
        expect(listed).to_have_count(0)
        api.sites["flat"].faults = faults
        api.tell("fault", {"site": "flat", **faults[0]})
        expect(listed).to_have_count(2)
        shown = text(page, ".problem-list")
        for fact in ("Sensor s20 reads as if it were at the position of s21", "Door 2 seems to be shut", "1 min ago"):
            assert fact in shown
        assert shown.count("its readings do not count until") == 1, "a door has no readings"
        expect(page.locator("#plan .sensor.alarm")).to_have_count(1)
        expect(page.locator("#sensors-body tr[data-level=alarm]")).to_contain_text("changed")
        expect(page.locator("#announce")).to_contain_text("New alarm.")
        visit.picture("fault")
        api.sites["flat"].faults = [fault | {"ended": api.now} for fault in faults]
        api.tell("fault", {"site": "flat", **faults[0]})
        expect(listed).to_have_count(0)
        expect(page.locator("#plan .sensor.alarm")).to_have_count(0)
        api.sites["flat"].faults = [faults[0] | {"sensor": "s60"}]
        api.tell("fault", {"site": "flat", **faults[0]})
        expect(page.locator("#sensors-body tr[data-level=alarm]")).to_contain_text("changed, offline")
        expect(page.locator(".problem-list")).to_contain_text("Sensor s60 is changed, offline: check the device")
