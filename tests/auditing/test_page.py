"""The report of an audit: what people read, what programs read, and that nothing in it can do harm."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork.auditing import Audit, AuditReport, PrivacyCurve, Subject, Verdict, Witness
from tests.browser import running_browser, visiting

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&'\"$title"
ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "type",
    "id",
    "class",
    "role",
    "aria-label",
}
EPSILONS = np.linspace(0.0, 3.0, 31)
ESTIMATE = 0.4 * np.exp(-2 * EPSILONS)
VIOLATION = Audit(
    verdict=Verdict.VIOLATION,
    epsilon=1.0,
    delta=0.0,
    confidence=0.95,
    epsilon_lower=1.08,
    delta_lower=0.01,
    witness=Witness(
        event="the output is above 12", direction="0->1", counts=(320, 100), reports=10_000, source="half-lines"
    ),
    reports_used=12_400,
    ceiling=500_000,
    dependence="",
    profile=PrivacyCurve(
        epsilons=EPSILONS,
        estimate=ESTIMATE,
        lower=np.maximum(ESTIMATE - 0.02, 0),
        upper=ESTIMATE + 0.02,
        events="unions of ranges",
        reports=12_000,
    ),
    events=("half-lines", "single values"),
)
NONE_FOUND = replace(VIOLATION, verdict=Verdict.NONE_FOUND, witness=None, epsilon_lower=0.2, delta_lower=0.0)
WITHHELD = replace(NONE_FOUND, verdict=Verdict.WITHHELD, dependence="on input 0, reports repeat", epsilon_lower=0.0)


def report(audit: Audit, **words: Any) -> AuditReport:
    return AuditReport(audit=audit, subject=Subject(**({"name": "The sensor s07 of hall"} | words)))


def seen(event: str, counts: tuple[int, int], direction: str = "0->1") -> Audit:
    witness = Witness(event=event, direction=direction, counts=counts, reports=10_000, source="half-lines")
    return replace(VIOLATION, witness=witness)


class Text(HTMLParser):
    """The elements of a page, and the text that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.seen = ""
        self.script = ""
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._within = tag

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.script += data
        elif self._within != "style":
            self.seen += data

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - elements with text hold no others here
        self._within = ""


def read(page: str) -> Text:
    found = Text()
    found.feed(page)
    return found


def test_a_violation_that_may_have_another_cause_convicts_nobody() -> None:
    found = report(VIOLATION, doubt="Either the device or the set-up.")
    assert found.headline == "The claim does not hold, or the set-ups differ too much"
    assert "Either the device or the set-up." in found.summary
    assert "We conclude" not in found.summary
    assert "the set-ups differed by more than was stated" in found.sections()["not_excluded"][0]
    assert f"<h1>{found.headline}</h1>" in found.to_html()
    clear = report(NONE_FOUND, doubt="Either the device or the set-up.")
    assert (clear.headline, "Either" in clear.summary) == ("No violation was found", False)


def test_no_violation_is_never_called_a_proof() -> None:
    found = report(replace(NONE_FOUND, delta=0.001), cautions=("It tested little.",))
    assert "We found nothing that breaks the promise by more than chance explains." in found.summary
    assert found.summary.endswith("did not show it broken. It tested little.")
    assert "could be as large as 0.0742" in found.sections()["not_excluded"][0]
    everything = str(found) + found.to_html() + json.dumps(found.to_json())
    assert not re.search(r"\bverified\b|\bis safe\b|\bpassed\b", everything)


def test_the_page_needs_nothing_and_lets_nothing_in() -> None:
    audit = replace(seen(f"the output is {EVIL}", (320, 100)), events=(EVIL,))
    evil = report(audit, name=EVIL, inputs=(EVIL, EVIL), claim=(EVIL,), notes=(EVIL,), limits=(EVIL,))
    page = evil.to_html()
    found = read(page)
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    assert "<" not in found.script
    assert found.seen.count("<script>alert(1)</script>") > 5
    assert json.loads(found.script)["subject"]["name"] == EVIL
    assert not re.search(r"https?://|url\(|@import", page)


def test_a_real_browser_shows_it_in_both_schemes(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    evil = report(seen(f"the output is {EVIL}", (320, 100)), name=EVIL)
    file.write_text(evil.to_html(), encoding="utf-8")
    with running_browser() as browser:
        for scheme in ("light", "dark"):
            with visiting(browser, file.as_uri(), color_scheme=scheme, viewport={"width": 420, "height": 800}) as visit:
                visit.picture(f"audit-{scheme}")
                assert visit.page.evaluate("document.documentElement.scrollWidth") <= 420
                assert visit.page.title().startswith("The claim does not hold")
