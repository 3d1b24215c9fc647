"""The page over the real interface: what one tells is what the other shows."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading, Result, Store
from tests.browser import running_browser, visiting
from tests.collect.api_kit import result, served
from tests.collect.page_kit import USUAL, marks, text

PERIOD_MS = 2_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


def keep(store: Store, *results: Result) -> None:
    """Results, and a reading of each: without readings there is nothing that they could be of."""
    store.readings.add([Reading("hall", "s1", one.time, one.time, 5, one.time) for one in results])
    assert store.results.save(results) == len(results)


def test_the_page_shows_what_the_collector_tells(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as (made, url):
        now = int(1000 * time.time())
        past = [result(now - k * PERIOD_MS, solved=now - k * PERIOD_MS + 900) for k in range(1, 40)]
        keep(made.store, *past)
        used = {
            "s1": 30,
            "s2": 14,
            "s3": 15,
        }  # s1 all that it may: of what was counted here, less is of the last minute with time
        made.store.reports.add([DeviceReport("hall", name, "online", count, 30, now) for name, count in used.items()])
        made.store.problems.add([ProblemCount("hall", "s2", "late: stored after its frame was due", 3, now)])
        with visiting(browser, f"{url}/?site=hall#code={made.code('analyst')}", expected=USUAL) as visit:
            page = visit.page
            expect(page.locator("#told-count")).to_have_text(re.compile("One source, 97.%"))
            assert marks(page) == {"1": (0.25,)}
            assert text(page, "#told-sources").startswith("Mark 1 at 0.25 m 97 % sure there is one")
            expect(page.locator("#budget")).to_have_text(re.compile("^30 of 30 readings used in the last minute"))
            expect(page.locator("#worries")).to_contain_text("stored after its frame was due")
            expect(page.locator("#service")).to_contain_text("Broker connected")
            assert text(page, "#sensors-words") == "3 of 4 sensors at work; 1 not heard yet."
            expect(page.locator("#truth-choice")).to_be_hidden()

            news = result(now + PERIOD_MS, solved=now + PERIOD_MS)
            moved = replace(news, sources=(replace(news.sources[0], at=(0.75,)),))
            keep(made.store, moved)
            made.hub.publish_result(moved)
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")

            page.locator("#slider").press("Home")
            expect(page.locator("#state-words")).to_contain_text("Past")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.250")
            page.click("#go-live")
            expect(page.locator("#plan .mark")).to_have_attribute("data-at", "0.750")
            page.check("#layer-attack")
            expect(page.locator("#attack-caption")).to_contain_text(
                re.compile(r"\d+ frames put together"), timeout=30_000
            )
            lost = replace(result(now + 2 * PERIOD_MS), status="failed: too few", sources=(), counts=None, map=None)
            keep(made.store, lost)
            made.hub.publish_result(lost)
            last = replace(result(now + 3 * PERIOD_MS), sources=moved.sources, counts=(0.2, 0.8))
            keep(made.store, last)
            made.hub.publish_result(last)
            expect(page.locator("#told-count")).to_have_text(re.compile("One source, 80.%"))
            page.locator("#slider").press("ArrowLeft")
            expect(page.locator("#told-count")).to_have_text(re.compile("One source, 97.%"))
            page.click("#sign-out")
            expect(page.locator("#sign-in")).to_be_visible()


def test_a_revoked_token_ends_the_visit(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as (made, url):
        keep(made.store, result())
        with visiting(browser, f"{url}/?site=hall#code={made.code('analyst')}", expected=USUAL) as visit:
            expect(visit.page.locator("#plan .mark")).to_have_count(1)
            made.store.tokens.revoke(made.ids["analyst"])
            expect(visit.page.locator("#sign-in-problem")).to_contain_text("session has ended")


def test_a_token_of_a_device_opens_nothing(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as (made, url), visiting(browser, url, expected=(*USUAL, "status of 403")) as visit:
        visit.page.fill("#token", made.secrets["device"])
        visit.page.press("#token", "Enter")
        expect(visit.page.locator("#sign-in-problem")).to_contain_text("it can only send readings")
        expect(visit.page.locator("#board")).to_be_hidden()


def test_a_token_of_one_site_shows_that_site_alone(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as stack:
        made, url = stack.enter_context(served(tmp_path))
        address = f"{url}/?site=hall#code={made.code('yard')}"
        visit = stack.enter_context(visiting(browser, address, expected=USUAL))
        expect(visit.page.locator("#nothing")).to_contain_text("No map yet")
        assert visit.page.locator("#site option").all_inner_texts() == ["yard"]
