"""`cloakwork sheet`: a page for tenants, whose numbers are those of the plan, in each language."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from scipy import special, stats

from cloakwork.cli.sheet import TEXTS
from cloakwork.privacy import Flip
from cloakwork.site import load_site
from tests.cli.conftest import SITE, Run
from tests.cli.test_plan import ROOMS
from tests.parts import needs

BITS = """name = "rooms"
[bits]
epsilon = 2.0
delta = 1e-5
window = "10min"
readings_per_window = 10
[[zone]]
id = "left"
[[zone]]
id = "right"
[[sensor]]
id = "door"
zone = "left"
[[sensor]]
id = "desk"
zone = "right"
"""
# everything that a sheet may have to say: a claim about one sensor, and stays
FULL = (
    ROOMS
    + 'scope = "sensor"\nwindow = "10min"\nreadings_per_window = 10\n'
    + '[privacy.stay]\nlength = "8h"\nepsilon = 20.0\ndelta = 1e-5\n'
)


@pytest.fixture
def site(succeed: Run, tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE + 'window = "10min"\nreadings_per_window = 10\n')
    succeed("plan", "--no-simulation", path, "--out", tmp_path / "site.plan.json")
    return path


def sheets(succeed: Run, site: Path, *words: object) -> Iterator[tuple[str, str]]:
    """The sheet of a site in each language."""
    out = site.with_name("sheet.html")
    for language in TEXTS:
        succeed("sheet", site, "--out", out, "--language", language, *words)
        yield language, out.read_text(encoding="utf-8")


def percentages(page: str) -> list[float]:
    return [float(text.replace(",", ".")) for text in re.findall(r"([\d.,]+) %", page)]


def test_a_sheet_has_the_numbers_of_the_plan_and_what_the_operator_says(succeed: Run, site: Path) -> None:
    explained = " ".join(succeed("plan", "--no-simulation", site).out.split())
    right = re.findall(r"right in at most ([\d.]+) %", explained)[0]
    for language, source in sheets(succeed, site, "--key-holder", "Ms <Key>", "--contact", "Mr Ask"):
        page = unescape(re.sub(r"<(?!Key)[^>]+>", " ", source))
        stated = right.replace(".", TEXTS[language]["decimal"])
        assert page.count(f"{stated} %") == 2, "in the sentence and in the row of the window"
        assert "Ms <Key>" in page
        assert "Mr Ask" in page
        assert "{" not in page.split("}")[-1]
        assert len(re.findall(r"<tr>", source)) == 4, "heads, the window, a day, a year"


def test_a_sheet_of_bits_has_the_numbers_of_its_randomised_response(succeed: Run, tmp_path: Path) -> None:
    site = tmp_path / "rooms.toml"
    site.write_text(BITS)
    succeed("plan", "--no-simulation", site, "--out", tmp_path / "rooms.plan.json")
    flip = Flip(epsilon=2.0, delta=1e-5, readings_per_window=10, sensors=2)  # here, or in the other room
    # the best guess counts the true reports of both sensors
    false = stats.binom(20, flip.other)
    right = 100 * (false.cdf(9) + false.pmf(10) / 2)
    for _, page in sheets(succeed, site):
        stated = percentages(page)
        assert any(0 <= 100 * flip.other - wrong < 0.11 for wrong in stated)
        assert sum(right <= each < right + 0.1 for each in stated) == 2, "in the sentence and in the row of the window"
        assert len(re.findall(r"<tr>", page)) == 4


def test_a_sheet_tells_how_well_long_stays_are_hidden(succeed: Run, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    window = 'window = "10min"\nreadings_per_window = 10\n'
    site.write_text(ROOMS + window + '[privacy.stay]\nlength = "8h"\nepsilon = 20.0\ndelta = 1e-5\n')
    succeed("plan", "--no-simulation", site, "--out", tmp_path / "site.plan.json")
    cloak = load_site(site).cloak()
    assert cloak.stay is not None
    right = 100 * special.ndtr(cloak.stay_mu(cloak.stay.readings) / 2)
    for _, page in sheets(succeed, site):
        assert page.count("8 h") == 2, "what is hidden, and what is not"
        assert any(right <= each < right + 0.1 for each in percentages(page))


def test_every_language_has_every_text() -> None:
    for texts in TEXTS.values():
        assert texts.keys() == TEXTS["en"].keys()
        for key, text in texts.items():
            assert type(text) is type(TEXTS["en"][key])
            fields = re.findall(r"\{\w+\}", str(text))
            assert sorted(fields) == sorted(re.findall(r"\{\w+\}", str(TEXTS["en"][key]))), key


def test_a_browser_prints_one_page(succeed: Run, site: Path) -> None:
    needs("chromium")
    file, pdf = site.with_name("sheet.html"), site.with_name("sheet.pdf")
    site.write_text(FULL)
    site.with_name("site.plan.json").unlink()
    succeed("plan", "--no-simulation", site, "--out", site.with_name("site.plan.json"))
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))))
    options = ("--headless", "--no-sandbox", "--no-pdf-header-footer", f"--user-data-dir={site.with_name('profile')}")
    for language, _ in sheets(succeed, site):
        subprocess.run([browser, *options, f"--print-to-pdf={pdf}", file.as_uri()], capture_output=True, check=True)
        assert re.findall(rb"/Type\s*/Page\b(?!s)", pdf.read_bytes()) == [b"/Type /Page"], language
