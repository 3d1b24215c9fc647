"""Accessibility checks of a page: screen reader, keyboard and contrast."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

CHECKS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").rstrip().rstrip(";")


def structure(page: Page) -> list[str]:
    """Names, labels, captions, headings, ids and sizes that are missing or wrong."""
    wrong: list[str] = page.evaluate(CHECKS, "structure")
    return wrong


def contrast(page: Page) -> list[str]:
    """Words with a contrast below 4.5 (3 where they are large), and meaningful shapes below 3: WCAG 2.2, AA."""
    wrong: list[str] = page.evaluate(CHECKS, "contrast")
    return wrong


def tab_through(page: Page, most: int = 80) -> list[dict[str, Any]]:
    """What the Tab key comes to on a page that was just loaded, in order, until it begins anew."""
    found: list[dict[str, Any]] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        at: dict[str, Any] = page.evaluate(CHECKS, "focus")
        if at["tag"] == "body" or at in found[:1]:
            break
        found.append(at)
    return found
