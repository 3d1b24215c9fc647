"""The files of the page: small, safe, and in step with what the collector sends."""

import re
from importlib.resources import files
from pathlib import Path

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.message_problems import CLAIM_BREAKING

PAGE = Path(str(files("cloakwork.collect").joinpath("page")))
MAX_BYTES = 140_000
MARKUP = (PAGE / "index.html").read_text(encoding="utf-8")
CODE_FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.glob("*.js")}
ALL_CODE = "".join(CODE_FILES.values())


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    pages = sorted(PAGE.iterdir())
    assert sum(file.stat().st_size for file in pages) < MAX_BYTES
    for file in pages:
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


def test_every_problem_that_breaks_the_claim_has_a_text() -> None:
    breaking = CODE_FILES["problems.js"].partition("BROKEN = {")[2].partition("};")[0]
    assert re.findall(r'^  "([a-z ]+)":', breaking, flags=re.MULTILINE) == [reason_code(one) for one in CLAIM_BREAKING]
