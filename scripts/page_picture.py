"""Takes the README's picture of the live page, from the real demonstration: `python -m scripts.page_picture`.

Devices, broker, collector and page run as in `cloakwork demo`, and Chromium shows the page. It takes a few minutes.
A test of the demonstration takes the same picture, earlier in the day, and compares the layout with the README's.
"""

import io
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from cloakwork.demo import Demonstration, Household, load_flat
from cloakwork.physics import FloorPlan
from tests.browser import running_browser, visiting

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "page.png"
FRAMES, ROOMS = 70, 3  # minutes in the flat, so that there is a past, and rooms that are occupied
VIEW = {"width": 1280, "height": 800}
COLOURS = 160  # so that the file stays small
USUAL = ("status of 401",)  # a console message of Chromium: the first request has no session


def main() -> None:
    """Run the demonstration, and save the page with the simulated truth beside the marks."""
    site = load_flat()
    if not isinstance(site.physics, FloorPlan):
        raise TypeError("the flat is a floor plan")
    with Demonstration((site, Household(site.physics.rooms))) as show:
        show.wait_for(FRAMES, 900)
        while sum(bool(zone.occupied) for zone in show.wait_for(1, 60).zones or ()) < ROOMS:
            time.sleep(0.2)
        with running_browser() as browser:
            take(show, browser, PICTURE)


def take(show: Demonstration, browser: Browser, file: Path) -> None:
    """Save a picture of the page of a demonstration as it is now."""
    with visiting(browser, show.invite(), expected=USUAL, viewport=VIEW) as visit:
        visit.page.wait_for_selector("#board[aria-busy=false]")
        visit.page.check("#layer-truth")
        visit.page.wait_for_selector("#plan .truth")
        picture = visit.page.screenshot()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
