"""The report of an audit: what people read, what programs read, and that nothing in it can do harm."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakwork.auditing import Audit, PrivacyCurve, Verdict, Witness
from cloakwork.auditing.audit_report import NEVER, NEVER_PURE, AuditReport, Subject
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
    "viewbox",
}
ATTRIBUTES |= {"x", "y", "x1", "x2", "y1", "y2", "width", "height", "rx", "points", "transform"}


def made(
    *,
    verdict: Verdict = Verdict.VIOLATION,
    event: str = "the output is above 12",
    counts: tuple[int, int] = (320, 100),
    direction: str = "0->1",
    **changed: Any,
) -> Audit:
    epsilons = np.linspace(0.0, 3.0, 31)
    estimate = 0.4 * np.exp(-2 * epsilons)
    broken = verdict is Verdict.VIOLATION
    told: dict[str, Any] = {
        "verdict": verdict,
        "epsilon": 1.0,
        "delta": 0.0,
        "confidence": 0.95,
        "epsilon_lower": 1.08 if broken else 0.2,
        "delta_lower": 0.01 if broken else 0.0,
        "witness": Witness(event=event, direction=direction, counts=counts, reports=10_000, source="half-lines")
        if broken
        else None,
        "reports_used": 12_400,
        "ceiling": 500_000,
        "independent": verdict is not Verdict.WITHHELD,
        "dependence": "on input 0, reports repeat" if verdict is Verdict.WITHHELD else "",
        "profile": PrivacyCurve(
            epsilons=epsilons,
            estimate=estimate,
            lower=np.maximum(estimate - 0.02, 0),
            upper=estimate + 0.02,
            events="unions of ranges",
            reports=12_000,
        ),
        "events": ("half-lines", "single values"),
    }
    return Audit(**(told | changed))


def report(audit: Audit, **told: Any) -> AuditReport:
    return AuditReport(audit=audit, subject=Subject(**({"name": "The sensor s07 of hall"} | told)))


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


def test_the_first_paragraph_says_it_all_in_plain_words() -> None:
    said = report(made()).summary
    assert said.startswith("The sensor s07 of hall promises")
    assert "at most 2.72 times as likely with one as with the other." in said
    assert "We took 12,400 reports with each." in said
    assert "the output is above 12 in 3.2 % of the reports with input 0, and in 1 % of the reports with input 1" in said
    assert "That is 3.2 times as often, where the promise allows 2.72 times (2.72 %)." in said
    assert "Some of that may be luck; with 95 % confidence, something is at least 2.944 times as likely" in said
    assert "with one as with the other, where at most 2.72 times was promised." in said
    assert (
        "whose reports do not depend on each other would look like this by chance in at most 5 of 100 audits." in said
    )
    assert said.endswith("We conclude that this one does not keep it.")


def test_a_violation_that_may_have_another_cause_convicts_nobody() -> None:
    found = report(made(), doubt="Either the device or the set-up.")
    assert found.headline == "The claim does not hold, or the set-ups differ too much"
    assert "Either the device or the set-up." in found.summary
    assert "We conclude" not in found.summary
    assert "the set-ups differed by more than was stated" in found.not_excluded()[0]
    page = found.to_html()
    assert f"<h1>{found.headline}</h1>" in page
    assert f"<title>{found.headline}" in page
    clear = report(made(verdict=Verdict.NONE_FOUND), doubt="Either the device or the set-up.")
    assert (clear.headline, "Either" in clear.summary) == ("No violation was found", False)


def test_what_weakens_an_audit_is_in_the_first_paragraph() -> None:
    found = report(made(verdict=Verdict.NONE_FOUND), cautions=("It tested little.",))
    assert found.summary.endswith("did not show it broken. It tested little.")


def test_the_direction_says_which_input_is_compared_with_which() -> None:
    said = report(made(counts=(100, 320), direction="1->0"), inputs=("cold", "warm")).summary
    assert "in 1 % of the reports with cold, and in 3.2 % of the reports with warm" in said
    assert "That is 3.2 times as often, where the promise allows 2.72 times" in said


def test_delta_is_part_of_what_is_allowed() -> None:
    said = report(made(delta=0.01, counts=(500, 100))).summary
    assert "give or take a probability of 1 %" in said
    assert f"allows {100 * (math.e * 0.01 + 0.01):.3g} times ({100 * (math.e * 0.01 + 0.01):.3g} %)" in said


@pytest.mark.parametrize(
    ("delta", "said"), [(0.0, "never happens with the other."), (0.002, "may happen in at most 0.2 % with the other.")]
)
def test_what_never_happens_with_one_input_is_not_divided_by(delta: float, said: str) -> None:
    summary = report(made(delta=delta, counts=(320, 0))).summary
    assert said in summary
    assert "none of the reports with input 1" in summary


def test_a_witness_that_no_longer_shows_the_excess_is_not_said_to() -> None:
    assert "times as often" not in report(made(counts=(100, 100))).summary


def test_no_violation_is_never_called_a_proof() -> None:
    found = report(made(verdict=Verdict.NONE_FOUND, delta=0.001))
    assert "We found nothing that breaks the promise by more than chance explains." in found.summary
    assert "does not prove the promise" in found.summary
    assert "could be as large as 0.0742" in found.not_excluded()[0]
    everything = str(found) + found.to_html() + json.dumps(found.to_json())
    assert not re.search(r"\bverified\b|\bis safe\b|\bpassed\b", everything)


def test_a_withheld_verdict_gives_no_bounds_and_no_picture_and_says_what_was_seen() -> None:
    found = report(made(verdict=Verdict.WITHHELD, epsilon_lower=0.0))
    assert "on input 0, reports repeat" in " ".join(found.found())
    assert "says nothing about the claim" in found.summary
    page = read(found.to_html())
    assert not {"svg", "figure"} & set(page.tags)
    for word in ("at least", "band", "cross", "confidence", "false alarm"):
        assert word not in page.seen + str(found)


def test_bounds_are_said_to_be_as_sure_as_they_are() -> None:
    assert "hold with 95 % confidence" in report(made()).not_excluded()[-1]
    assert "With 95 % confidence: at delta = 0, epsilon is at least 1.08." in report(made()).found()
    nothing = report(made(verdict=Verdict.NONE_FOUND, epsilon_lower=0.0)).found()
    assert "At delta = 0, these reports show no epsilon above 0." in nothing


def test_where_the_band_speaks_against_the_claim_and_the_bets_do_not_it_says_which_counts() -> None:
    # the band of the picture is from 0.034 to 0.075 at epsilon 1
    above, within = (report(made(verdict=Verdict.NONE_FOUND, delta=delta)) for delta in (0.03, 0.05))
    assert "The verdict rests on the bets alone" in " ".join(above.found())
    assert "The verdict rests on the bets alone" not in " ".join(within.found())
    assert "The verdict rests on the bets alone" not in " ".join(report(made()).found())


def test_what_an_audit_can_never_prove_is_on_every_report() -> None:
    for verdict in Verdict:
        found = report(
            made(verdict=verdict, epsilon_lower=1.08 if verdict is Verdict.VIOLATION else 0.0), limits=("L.",)
        )
        page = read(found.to_html()).seen
        for line in (*NEVER, "L.", NEVER_PURE):
            assert line in page
            assert line in str(found)
    assert NEVER_PURE not in str(report(made(delta=0.01)))


def test_the_page_needs_nothing_and_lets_nothing_in() -> None:
    evil = report(
        made(event=f"the output is {EVIL}", events=(EVIL,)),
        name=EVIL,
        inputs=(EVIL, EVIL),
        claim=(EVIL,),
        notes=(EVIL,),
        limits=(EVIL,),
    )
    page = evil.to_html()
    found = read(page)
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    assert "<" not in found.script
    assert found.seen.count("<script>alert(1)</script>") > 5
    assert json.loads(found.script)["subject"]["name"] == EVIL
    assert not re.search(r"https?://|url\(|@import", page)


def test_json_holds_the_audit_and_the_sentences() -> None:
    found = report(made(), notes=("N.",))
    assert "The event that the output is above 12 was found among half-lines." in found.found()
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert values["verdict"] == "violation"
    assert values["claim"] == {"epsilon": 1.0, "delta": 0.0}
    assert values["witness"]["counts"] == [320, 100]
    assert values["summary"] == found.summary
    assert values["never_proved"] == list(found.never())
    assert "N." in values["found"]


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 0.0, "epsilon_lower": 0.1},
        {"epsilon": 600.0, "epsilon_lower": 601.0},
        {"delta": 0.999},
        {"confidence": 0.99999},
        {
            "profile": PrivacyCurve(
                epsilons=np.array([0.0, 1.0]),
                estimate=np.zeros(2),
                lower=np.zeros(2),
                upper=np.ones(2),
                events="none yet",
                reports=0,
            )
        },
    ],
)
def test_extreme_claims_make_a_page_too(changed: dict[str, Any]) -> None:
    page = report(made(**changed)).to_html()
    assert "$" not in read(page).seen
    assert not re.search(r'="[^"]*(nan|inf)\b', page)


def test_a_real_browser_shows_it_in_both_schemes_and_prints_it_on_one_page(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(made(event=f"the output is {EVIL}"), name=EVIL).to_html(), encoding="utf-8")
    usual = tmp_path / "usual.html"
    long = "A sentence of the usual length, which says what was planned, what was stated, and what came of it at last. "
    told = {"claim": (3 * long,), "notes": (long, 2 * long), "limits": (2 * long, long), "doubt": 2 * long}
    usual.write_text(report(made(delta=0.01), **told).to_html(), encoding="utf-8")
    with running_browser() as browser:
        for scheme in ("light", "dark"):
            with visiting(browser, file.as_uri(), color_scheme=scheme, viewport={"width": 420, "height": 800}) as visit:
                visit.picture(f"audit-{scheme}")
                assert visit.page.evaluate("document.documentElement.scrollWidth") <= 420
                assert visit.page.locator("svg").count() == 2
                assert visit.page.title().startswith("The claim does not hold")
        with visiting(browser, usual.as_uri()) as visit:
            printed = visit.page.pdf(format="A4")
    assert len(re.findall(rb"/Type /Page\b", printed)) == 1
