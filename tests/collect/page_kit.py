"""What tests of the page share: made-up sites, and a visit that is signed in."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from tests.browser import Visit, visiting
from tests.collect.fake_api import TOKEN, FakeApi, running_api
from tests.collect.fake_sites import GRAPH, LINE, PERIOD_MS, START_MS, FakeSite, flat_text

HOUR_MS = 3_600_000
# what Chromium itself says of answers that are no success: the first question without a session, and what is not there
USUAL = ("status of 401", "status of 404")


def flat(**options: Any) -> FakeSite:
    """The example flat with 43 frames so far, some sensors in trouble, and reasons for it."""
    now = START_MS
    told: dict[str, Any] = {
        "silent": {"s17": 900_000, "s44": -1},
        "states": {"s05": "spent", "s60": "offline"},
        "problems": [
            {"sensor": "s12", "reason": "late: stored after its frame was due", "count": 3, "last": now - 300_000},
            {"sensor": "s13", "reason": "late: stored after its frame was due", "count": 2, "last": now - 90_000},
            {"sensor": "", "reason": "unknown sensor: the site has none of this name", "count": 12, "last": now},
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


def sign_in(page: Page) -> None:
    page.fill("#token", TOKEN)
    page.press("#token", "Enter")


@contextmanager
def watching(
    browser: Browser, *, site: str = "flat", given: dict[str, FakeSite] | None = None, **options: Any
) -> Iterator[tuple[Visit, FakeApi]]:
    """A visit that is signed in and shows a site."""
    expected = options.pop("expected", ())
    with ExitStack() as stack:
        api = stack.enter_context(running_api(sites() if given is None else given))
        address = f"{api.url}?site={site}"
        visit = stack.enter_context(visiting(browser, address, expected=(*USUAL, *expected), **options))
        sign_in(visit.page)
        visit.page.wait_for_selector("#board[aria-busy=false]")
        yield visit, api


def text(page: Page, selector: str) -> str:
    """What an element says, with plain blanks."""
    return " ".join(page.inner_text(selector).replace("\u00a0", " ").split())


def marks(page: Page, holder: str = "#plan") -> dict[str, tuple[float, ...]]:
    """Where the marks are, by their number."""
    found = page.eval_on_selector_all(
        f"{holder} .mark", "marks => marks.map((mark) => [mark.dataset.id, mark.dataset.at])"
    )
    return {name: tuple(float(part) for part in at.split()) for name, at in found}


def until(fact: Callable[[], bool], page: Page) -> None:
    """Wait for what no locator tells."""
    end = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < end, "it did not happen"
        page.wait_for_timeout(50)


def shows(page: Page, found: Sequence[dict[str, Any]]) -> bool:
    """Whether the marks stand where these sources were found: they move there in a while."""
    return sorted(marks(page).values()) == sorted(tuple(spot["at"]) for spot in found)
