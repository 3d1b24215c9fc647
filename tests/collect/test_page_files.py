"""The files of the page, and the fake collector of its tests, against what the real collector sends."""

import re
from typing import Any

from pydantic import TypeAdapter

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.event_hub import EventKind
from cloakwork.collect.api.routes_data import TimelineBody, TracksBody
from cloakwork.collect.api.routes_sites import HealthBody, SiteBody
from cloakwork.collect.api.site_geometry import GeometryBody
from cloakwork.collect.message_problems import CLAIM_BREAKING
from cloakwork.collect.storage import Result
from tests.collect.fake_api import PAGE
from tests.collect.fake_sites import START_MS
from tests.collect.page_kit import flat

MAX_BYTES = 140_000
MARKUP = (PAGE / "index.html").read_text(encoding="utf-8")
CODE_FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.glob("*.js")}
ALL_CODE = "".join(CODE_FILES.values())


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    files = sorted(PAGE.iterdir())
    assert sum(file.stat().st_size for file in files) < MAX_BYTES
    for file in files:
        content = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'\s)]+", content)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set(), file.name


def test_the_page_needs_no_looser_content_security_policy() -> None:
    assert re.findall(r"<script(?![^>]*\bsrc=)", MARKUP) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", MARKUP) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", ALL_CODE) == []


def test_the_code_refers_to_ids_and_files_that_exist() -> None:
    known = set(re.findall(r'\bid="([^"]+)"', MARKUP))
    assert set(re.findall(r'\$\("([^"]+)"\)', ALL_CODE)) <= known
    for name in re.findall(r'(?:href|src)="static/([^"]+)"', MARKUP) + re.findall(r'from "\./([^"]+)"', ALL_CODE):
        assert (PAGE / name).is_file(), name


def test_the_page_listens_to_the_events_that_the_collector_sends() -> None:
    lists = re.findall(r"for \(const kind of \[([^\]]+)\]", CODE_FILES["api.js"])
    heard = {name for listed in lists for name in re.findall(r'"(\w+)"', listed)}
    assert heard == set(EventKind) - {EventKind.END}, "the end of a stream closes it, which EventSource reports"


def test_the_fake_collector_answers_like_the_real_one() -> None:
    site, now = flat(), START_MS
    when = site.times(0, now)[0]
    answers: list[tuple[type, dict[str, Any]]] = [
        (SiteBody, site.info | {"now": now}),
        (GeometryBody, site.geometry),
        (HealthBody, site.health(now)),
        (Result, site.result(when, now=now)),
        (Result, site.alone(when)),
        (TimelineBody, site.timeline(None, now)),
        (TracksBody, {"items": site.tracks(when - 600_000, now)}),
    ]
    for model, answer in answers:
        real: TypeAdapter[Any] = TypeAdapter(model)
        known = real.dump_python(real.validate_python(answer), mode="json")
        assert unknown_keys(answer, known) == [], model.__name__


def unknown_keys(answer: Any, known: Any) -> list[str]:
    """Keys of a made-up answer that the real one would not have."""
    if isinstance(answer, dict):
        inside = [key for name in answer.keys() & known.keys() for key in unknown_keys(answer[name], known[name])]
        return sorted(answer.keys() - known.keys()) + inside
    if isinstance(answer, list):
        return [key for one, other in zip(answer, known, strict=True) for key in unknown_keys(one, other)]
    return []


def test_every_problem_that_breaks_the_claim_has_a_text() -> None:
    breaking = CODE_FILES["problems.js"].partition("BROKEN = {")[2].partition("};")[0]
    assert re.findall(r'^  "([a-z ]+)":', breaking, flags=re.MULTILINE) == [reason_code(one) for one in CLAIM_BREAKING]
