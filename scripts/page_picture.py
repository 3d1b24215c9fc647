"""Takes the pictures of the live page for the docs, from the real demonstration: `python -m scripts.page_picture`.

Devices, broker, collector and page run as in `cloakwork demo`, and Chromium shows the page. It takes a few minutes.
A test of the demonstration takes the same pictures, earlier in the day, and compares them with those of the docs.
"""

import io
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from cloakwork.demo import Demonstration, family, load_flat
from cloakwork.physics import FloorPlan
from tests.browser import running_browser, visiting

FOLDER = Path(__file__).parent.parent / "docs" / "images"
FRAMES, ROOMS = 70, 3  # minutes in the flat, so that there is a past, and rooms that are occupied
VIEWS = {"page.png": {"width": 1280, "height": 1080}, "page-phone.png": {"width": 390, "height": 1240}}
COLOURS = 160  # so that the file stays small
USUAL = ("status of 401",)  # a console message of Chromium: the first request has no session


def main() -> None:
    """Run the demonstration, and save the page on a laptop and on a phone."""
    site = load_flat()
    if not isinstance(site.physics, FloorPlan):
        raise TypeError("the flat is a floor plan")
    with Demonstration((site, family(site.physics.rooms))) as show:
        show.wait_for(FRAMES, 900)
        while sum(bool(zone.occupied) for zone in show.wait_for(1, 60).zones or ()) < ROOMS:
            time.sleep(0.2)
        with running_browser() as browser:
            take(show, browser, FOLDER)


def take(show: Demonstration, browser: Browser, folder: Path) -> None:
    """Save pictures of the page of a demonstration as it is now."""
    for name, view in VIEWS.items():
        with visiting(browser, show.invite(), expected=USUAL, viewport=view) as visit:
            visit.page.wait_for_selector("#board[aria-busy=false]")
            visit.page.wait_for_selector("#lanes rect")
            picture = visit.page.screenshot()
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(folder / name, optimize=True)


if __name__ == "__main__":
    main()
