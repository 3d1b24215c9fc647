"""Shared by tests of the page: made-up sites, and a visit that is signed in."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.message_problems import CLAIM_BREAKING, Reason
from tests.browser import Visit, visiting
from tests.collect.fake_api import TOKEN, FakeApi, running_api
from tests.collect.fake_sites import GRAPH, LINE, PERIOD_MS, START_MS, FakeSite, flat_text
from tests.waiting import PATIENCE

HOUR_MS = 3_600_000
USUAL = ("status of 401",)  # a console message of Chromium: the first request has no session


def problem(reason: Reason, sensor: str, count: int, last: int) -> dict[str, Any]:
    """A counted problem as the collector sends it."""
    told = {"sensor": sensor, "reason": reason.value, "count": count, "last": last}
    return told | {"code": reason_code(reason), "breaks_claim": reason in CLAIM_BREAKING}


def flat(**options: Any) -> FakeSite:
    """The example flat with 43 frames so far, some sensors in trouble, and reasons for it."""
    now = START_MS
    told: dict[str, Any] = {
        "silent": {"s17": 900_000, "s44": -1},
        "states": {"s05": "spent", "s60": "offline"},
        "problems": [
            problem(Reason.LATE, "s12", 3, now - 300_000),
            problem(Reason.LATE, "s13", 2, now - 90_000),
            problem(Reason.UNKNOWN_SENSOR, "", 12, now),
        ],
        "alarms": [{"sensor": "s31", "seq": 123061282013184, "received": now - 120_000}],
    }
    return FakeSite(flat_text(), now - 43 * PERIOD_MS, **told | options)


def sites() -> dict[str, FakeSite]:
    """One of each kind; the flat comes first, `new` has no result yet."""
    return {
        "flat": flat(),
        "hall": FakeSite(LINE, START_MS - 5 * HOUR_MS, offers_truth=False, used=30),
        "pipes": FakeSite(GRAPH, START_MS - 9 * 24 * HOUR_MS, used=24),
        "new": FakeSite(flat_text(name="new"), None),
    }


def sign_in(page: Page, token: str = TOKEN) -> None:
    page.fill("#token", token)
    page.press("#token", "Enter")


@contextmanager
def watching(
    browser: Browser, *, site: str = "flat", given: Mapping[str, FakeSite] | None = None, **options: Any
) -> Iterator[tuple[Visit, FakeApi]]:
    """A visit that is signed in and shows a site."""
    expected = options.pop("expected", ())
    with ExitStack() as stack:
        api = stack.enter_context(running_api(sites() if given is None else given))
        address = f"{api.url}?site={site}"
        visit = stack.enter_context(visiting(browser, address, expected=(*USUAL, *expected), **options))
        sign_in(visit.page)
        visit.page.wait_for_selector("#board[aria-busy=false]")
        until(lambda: bool(api.listeners), visit.page)
        yield visit, api


def text(page: Page, selector: str) -> str:
    """The text of an element, with plain spaces."""
    return " ".join(page.inner_text(selector).replace("\u00a0", " ").split())


def time_text(when: int) -> str:
    """A time as the page shows it: of the machine's own day."""
    return time.strftime("%H:%M:%S", time.localtime(when / 1000))


def marks(page: Page, holder: str = "#plan") -> dict[str, tuple[float, ...]]:
    """Positions of the marks by their number."""
    found = page.eval_on_selector_all(
        f"{holder} .mark", "marks => marks.map((mark) => [mark.dataset.id, mark.dataset.at])"
    )
    return {name: tuple(float(part) for part in at.split()) for name, at in found}


def until(fact: Callable[[], bool], page: Page) -> None:
    """Wait for a fact that no locator can express."""
    end = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < end, "it did not happen"
        page.wait_for_timeout(50)


def shows(page: Page, found: Sequence[dict[str, Any]]) -> bool:
    """Whether the marks are at these sources: they take a while to move there."""
    return sorted(marks(page).values()) == sorted(tuple(spot["at"]) for spot in found)
