"""How sensors and service are, and what to doubt: the parts of the page below the map."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from cloakwork.collect.problems import Reason
from tests.browser import running_browser
from tests.collect.access import contrast, structure
from tests.collect.fake_sites import LINE, START_MS, FakeSite
from tests.collect.page_kit import HOUR_MS, flat, text, watching


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


def test_sensors_sort_and_show_their_state(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        rows = page.locator("#sensors-body tr:not([hidden])")
        expect(rows).to_have_count(80)
        expect(rows.first).to_contain_text("alarm")
        assert text(page, "#sensors-words") == (
            "75 of 80 sensors at work; 1 with an alarm, 2 silent or offline, 1 waiting, 1 not heard yet."
        )
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


def test_problems_are_told_with_their_reasons(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        page = visit.page
        expect(page.locator("#worries li")).to_have_count(3)
        told = page.locator("#worries li").all_inner_texts()
        assert "one number came with two values" in told[0]
        assert "s31" in told[0]
        assert any("5 times, s12, s13" in one for one in told)
        assert any("12 times, no known sensor" in one for one in told)


def test_over_budget_is_an_alarm_and_the_claim_is_not_made(browser: Browser) -> None:
    over = {"reason": Reason.OVER.value, "last": START_MS - 60_000}
    given = flat(
        over={"s12": 300},
        broken={"s12": [over]},
        problems=[{"sensor": "s12", "reason": Reason.OVER.value, "count": 240, "last": over["last"]}],
        alarms=[],
    )
    with watching(browser, given={"flat": given}) as (visit, api):
        page = visit.page
        claim = page.locator("#claim")
        expect(claim).to_contain_text("does not hold for what is shown here: s12 has sent more readings")
        expect(claim).to_have_attribute("data-broken", "true")
        assert "hidden to within" not in text(page, ".privacy")
        expect(page.locator("#meaning")).to_be_hidden()
        assert text(page, "#budget") == "300 of 60 readings used in the last hour by s12."
        expect(page.locator("#plan [data-sensor=s12]")).to_have_class("sensor alarm")
        expect(page.locator("#sensors-body tr").first).to_contain_text("over budget")
        expect(page.locator("#worries li").first).to_have_attribute("data-kind", "alarm")
        assert structure(page) == []
        assert contrast(page) == []
        visit.picture("over-budget")
        given.over.clear()
        api.advance(5 * HOUR_MS)
        page.wait_for_timeout(200)
        page.evaluate("dispatchEvent(new Event('online'))")
        api.tell("problem", {})
        expect(claim).to_contain_text("hidden to within", timeout=15_000)
        expect(claim).to_have_attribute("data-broken", "false")


def test_one_sensor_with_many_alarms_hides_none_of_anothers(browser: Browser) -> None:
    many = [{"sensor": "s01", "seq": k, "received": START_MS - k} for k in range(3)]
    other = {"sensor": "s31", "seq": 7, "received": START_MS - 9_000_000}
    with watching(browser, given={"flat": flat(alarms=[*many, other])}) as (visit, _):
        page = visit.page
        told = page.locator("#worries li[data-kind=alarm]").all_inner_texts()
        assert len(told) == 2
        assert "s01, number 0 and 2 others" in told[0]
        assert "s31, number 7" in told[1]
        expect(page.locator("#plan [data-sensor=s31]")).to_have_class("sensor alarm")


def test_the_page_does_not_vouch_for_devices(browser: Browser) -> None:
    with watching(browser) as (visit, _):
        assert "this page cannot see" in text(visit.page, "footer")


def test_the_view_of_a_window_is_named_after_it_and_says_when_it_was_cut(browser: Browser) -> None:
    with watching(browser, given={"flat": flat(cut=True)}) as (visit, _):
        page = visit.page
        page.check("#layer-attack")
        expect(page.locator("#attack-caption")).to_contain_text("With this window's data: 43 frames")
        expect(page.locator("#attack-caption")).to_contain_text("the last of them")
        expect(page.locator("#told-attack")).to_contain_text("Data that are kept for longer say more")
        visit.picture("window-data")


def test_what_devices_say_is_text_and_nothing_else(browser: Browser) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    given = flat(problems=[{"sensor": evil, "reason": evil, "count": 1, "last": 1}], alarms=[])
    with watching(browser, given={"flat": given}) as (visit, _):
        expect(visit.page.locator("#worries")).to_contain_text(evil)
        assert visit.page.locator("#worries img, #worries script").count() == 0


def test_doubts_about_a_map_are_told(browser: Browser) -> None:
    given = flat()
    usual = given.result
    given.result = lambda time, **options: usual(time, **options) | {"fit": 1e-6, "set_aside": ["s03"]}  # type: ignore[method-assign]
    with watching(browser, given={"flat": given}) as (visit, _):
        told = text(visit.page, "#told-doubts")
        assert "2 sensors of 80 missing" in told
        assert "s03" in told
        assert "do not fit the model" in told


def test_charts_have_their_numbers_as_tables(browser: Browser) -> None:
    given = {"hall": FakeSite(LINE, flat().began or 0, used=30)}
    with watching(browser, site="hall", given=given) as (visit, _):
        page = visit.page
        expect(page.locator("#charts .curve")).to_have_count(3)
        page.click("#charts summary >> nth=2")
        rows = page.locator("#charts table >> nth=2").locator("tbody tr")
        expect(rows.first).to_contain_text("30")
        assert rows.count() <= 60


def test_the_page_keeps_no_more_than_it_needs(browser: Browser) -> None:
    """A day of play must not fill a wall screen's memory: results with maps are dropped, the oldest first."""
    with watching(browser, site="hall", given={"hall": FakeSite(LINE, flat().began or 0)}) as (visit, api):
        page = visit.page
        expect(page.locator("#plan .mark")).to_have_count(1)
        nodes = page.evaluate("document.getElementsByTagName('*').length")
        for _ in range(5):
            api.advance(HOUR_MS // 2)
            page.wait_for_timeout(200)
        assert page.evaluate("document.getElementsByTagName('*').length") < nodes + 200
