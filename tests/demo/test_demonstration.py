"""The whole demonstration: devices, broker, collector, page."""

import json
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from cloakwork.demo import Demonstration, family, load_flat
from cloakwork.demo.household import floor_of
from cloakwork.site import parse_site
from papers.followed_people import staying
from scripts import page_picture
from tests.browser import running_browser, visiting
from tests.collect.page_kit import USUAL, until
from tests.demo.small import SMALL, small_flat

PATIENCE = 600.0  # a busy machine compiles the solvers for minutes


@pytest.fixture(scope="module")
def show() -> Iterator[Demonstration]:
    site = load_flat()
    with Demonstration((site, family(floor_of(site)))) as running:
        running.wait_for(1, PATIENCE)
        yield running


def asked(show: Demonstration, path: str) -> Any:
    asking = {"Authorization": f"Bearer {show.secret}"}
    request = urllib.request.Request(show.service.url + path, headers=asking)  # noqa: S310
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        return json.loads(answer.read())


def test_results_change_and_have_a_truth_beside_them(show: Demonstration) -> None:
    first = asked(show, "/v1/sites/flat/latest")
    end = time.monotonic() + PATIENCE
    while (later := asked(show, "/v1/sites/flat/latest"))["time"] < first["time"] + 2 * show.site.period_ms:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert later["sources"] != first["sources"]
    assert later["map"] != first["map"]
    truths = [asked(show, f"/v1/sites/flat/truth?time={one['time']}") for one in (first, later)]
    assert [len(truth["sources"]) for truth in truths] == [3, 3]
    now = show.progress()
    assert now.people == 3
    assert later["sensors"] == 80, "time waits for the devices: none is late"
    assert now.delay_ms is not None


def test_several_floors_live_in_one_demonstration() -> None:
    floors = [parse_site(SMALL.replace('"small"', f'"{name}"')) for name in ("low", "high")]
    with Demonstration((floors[0], staying([(1.0, 1.0)])), (floors[1], staying([(3.0, 2.0)] * 2))) as both:
        both.wait_for(2, PATIENCE)
        assert both.progress().people == 3
        for name, people in (("low", 1), ("high", 2)):
            latest = asked(both, f"/v1/sites/{name}/latest")
            assert latest["sensors"] == 6
            assert len(asked(both, f"/v1/sites/{name}/truth?time={latest['time']}")["sources"]) == people


def test_what_is_stored_is_noisy(show: Demonstration) -> None:
    result, site = show.wait_for(1, PATIENCE), show.site
    values = show.service.store.frames.values("flat", [result.time])[result.time]
    steps = np.array([values[name] for name in site.sensor_ids])
    noise = (steps * show.watched.cloak.steps - show.worlds["flat"].readings(result.time)) / show.watched.cloak.sigmas
    assert 0.6 < noise.std() < 1.6
    assert (np.abs(noise) > 0.01).mean() > 0.9


def test_the_pictures_of_the_docs_are_of_this_page(show: Demonstration, tmp_path: Path) -> None:
    """They were taken by the same program, from the same demonstration, an hour of the flat later."""
    with running_browser() as browser:
        page_picture.take(show, browser, tmp_path)
    for name in page_picture.VIEWS:
        taken, kept = (Image.open(folder / name) for folder in (tmp_path, page_picture.FOLDER))
        assert taken.size == kept.size
        assert (tmp_path / name).stat().st_size < 150_000
        same = (0, 0, taken.width, 40)  # the header stays as it is
        above = [np.asarray(image.convert("L").crop(same), dtype=float) for image in (taken, kept)]
        assert np.corrcoef(above[0].ravel(), above[1].ravel())[0, 1] > 0.95, "take the pictures of the docs again"


def test_a_newcomer_sees_people_move_and_how_near_the_map_comes(show: Demonstration) -> None:
    with ExitStack() as stack:
        browser = stack.enter_context(running_browser())
        visit = stack.enter_context(
            visiting(browser, show.invite(), expected=USUAL, viewport={"width": 1400, "height": 1000})
        )
        page = visit.page
        expect(page.locator("#sentence")).to_contain_text(re.compile(" (is|are|Nobody) "), timeout=15_000)
        expect(page.locator("#privacy-line")).to_contain_text(re.compile("moved by up to 0.1.m"))
        before = page.get_attribute("#plan .drawing", "aria-label")
        page.click("#routes a[href='#/history']")
        page.click("#time-card summary")
        page.check("#truth")
        expect(page.locator("#plan .truth")).to_have_count(3, timeout=10_000)
        until(lambda: page.get_attribute("#plan .drawing", "aria-label") != before, page)
        visit.picture("demo-later")


def test_a_stopped_show_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = set(threading.enumerate())
    with Demonstration((small_flat(), staying([(1.0, 1.0)]))) as show:
        assert show.wait_for(3, PATIENCE).sensors == 6
        [folder] = tmp_path.iterdir()
        assert folder.name.startswith("cloakwork-demo-")
        assert len(list((folder / "devices" / "small").iterdir())) == 6
    assert list(tmp_path.iterdir()) == []
    assert [thread.name for thread in set(threading.enumerate()) - before if "cloakwork" in thread.name] == []
