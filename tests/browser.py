"""A real browser (Debian's Chromium, steered by Playwright) that notes what a page must not do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.parts import needs, program

SCREENS = "CLOAKWORK_SCREENS"
PATIENCE_MS = 60_000  # for what a page should show: a busy machine may take long


@contextmanager
def running_browser() -> Iterator[Browser]:
    needs("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page that is open, with the complaints of its console and the requests that went elsewhere."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    strayed: list[str] = field(default_factory=list)

    def picture(self, name: str, *, whole: bool = True) -> None:
        """Save a picture of the page for a person to look at, if the environment names a folder for it."""
        if folder := os.environ.get(SCREENS):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


@contextmanager
def visiting(browser: Browser, url: str, *, expected: tuple[str, ...] = (), **options: Any) -> Iterator[Visit]:
    """Open a page in a fresh profile; at the end it must not have complained, nor asked anyone but its own server.

    `expected` are parts of console messages that the test itself provokes.
    """
    context = browser.new_context(**options)
    page = context.new_page()
    visit = Visit(page, url)
    origin = urlsplit(url).netloc

    def heard(text: str) -> None:
        if not any(part in text for part in expected):
            visit.complaints.append(text)

    page.on("console", lambda told: heard(told.text) if told.type in {"error", "warning"} else None)
    page.on("pageerror", lambda problem: heard(str(problem)))
    page.on("request", lambda asked: visit.strayed.append(asked.url) if urlsplit(asked.url).netloc != origin else None)
    try:
        page.goto(url)
        yield visit
    finally:
        context.close()
    assert visit.complaints == []
    assert visit.strayed == []
