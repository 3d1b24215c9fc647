"""Accessibility checks of a page: axe for what a screen reader and a keyboard need, our own for drawings."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.parts import AXE, needs, node_package

CHECKS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").rstrip().rstrip(";")
# of axe: all rules of WCAG 2.2 AA, and those that it calls good practice
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
  const tell = ({ id, impact, nodes }) => nodes.map(({ html }) => `${impact} ${id}: ${html.slice(0, 120)}`);
  return violations.flatMap(tell);
}"""


def violations(page: Page) -> list[str]:
    """What axe finds wrong, each with its impact and rule."""
    needs(AXE)
    folder = node_package(AXE)
    assert folder is not None
    if not page.evaluate("() => 'axe' in globalThis"):  # evaluated, because the page's policy forbids foreign scripts
        page.evaluate((folder / "axe.min.js").read_text(encoding="utf-8"))
    wrong: list[str] = page.evaluate(RUN, RULES)
    return wrong


def contrast(page: Page) -> list[str]:
    """Words of drawings with a contrast below 4.5, and meaningful shapes below 3: WCAG 2.2, AA."""
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
