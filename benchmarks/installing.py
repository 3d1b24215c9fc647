"""The studio of docs/guides/install-sensors.md.

Its physics is what a walk there finds, on a day that swings by four degrees.
"""

import math
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.table import Table

from cloakwork.accuracy import Habits, simulated_day
from cloakwork.physics import FloorPlan
from cloakwork.privacy import Cloak
from cloakwork.readings.frame_recovery import site_tracker
from cloakwork.recovery import FrameEstimate
from cloakwork.site import Site, parse_site
from cloakwork.site.tracking_quality import Quality, ZoneNumbers

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "install-sensors.md"
FOUND = {"reach = 1.0": "reach = 1.6", "footprint = 0.3": "footprint = 0.5", "strength = 3.0": "strength = 5.0"}
TOLERANCE = "[physics.tolerance]\ndiffusion = 0.08\ngain = 0.15\n\n"  # what a simulated walk of 18 spots left open
SWING = 2.0  # degrees either way over a day
NOISE_FLOOR, STEP = 0.04, 1 / 16
LAG = 10  # frames
FRAMES, SEEDS = 600, 4


def studio() -> Site:
    """The site of the page after its walk."""
    [text] = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for guess, found in FOUND.items():
        text = text.replace(guess, found)
    return parse_site(text.replace("[sources]", TOLERANCE + "[sources]"))


def followed(site: Site, cloak: Cloak, truth: FloorPlan, *, frames: int, seed: int) -> tuple[Quality, Quality]:
    """How well up to three people are followed while the day gets warmer and colder: at once, and frames later.

    The baselines are those of the site, `truth` is the true physics, and the sensors round.
    """
    rng, times = np.random.default_rng([seed, 2]), site.period_ms / 1000 * np.arange(frames)
    hours = times[-1] / 3600 + 0.1
    people = simulated_day(site.physics.space, 3, seed=seed, hours=hours, habits=Habits()).places_at(times)
    true = np.array([truth.matrix[:, row[row >= 0]].sum(axis=1) for row in people])
    true += SWING * np.sin(2 * np.pi * times / 86_400)[:, None] + NOISE_FLOOR * rng.standard_normal(true.shape)
    sent = np.rint(true / STEP) * STEP + cloak.sigmas * rng.standard_normal(true.shape)
    tracker = site_tracker(site, cloak, lag=LAG)
    live: list[FrameEstimate] = []
    settled: list[FrameEstimate] = []
    for row, time in zip(sent, times.tolist(), strict=True):
        live.append(tracker.step(row, time))
        settled += live[-1].final
    zones, judged = ZoneNumbers.of(site), slice(LAG, len(settled))  # the first frames know too little of the offsets
    found = [zones.quality(each[judged], people[judged], site.physics.space.distance_table) for each in (live, settled)]
    return found[0], found[1]


def _day(seed: int) -> tuple[Quality, Quality]:
    site = studio()
    assert isinstance(site.physics, FloorPlan)
    return followed(site, site.cloak(), site.physics, frames=FRAMES, seed=seed)


def run() -> tuple[Table, bool]:
    """The table; there is no goal."""
    with ProcessPoolExecutor() as pool:
        days = list(pool.map(_day, range(SEEDS)))
    hours = FRAMES * studio().period_ms / 3_600_000
    table = Table(
        "share",
        "at once",
        "ten minutes later",
        "lowest and highest",
        title=f"The studio, {SEEDS} days of {hours:.0f} hours",
    )
    for what, name in (
        ("room", "people in the right room"),
        ("count", "right number of people"),
        ("rooms", "all rooms right"),
    ):
        live, settled = ([getattr(each[k], what).value for each in days] for k in (0, 1))
        table.add_row(name, _mean(live), _mean(settled), f"{100 * min(settled):.0f} to {100 * max(settled):.0f} %")
    return table, True


def _mean(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.0f} ± {100 * np.std(values, ddof=1) / math.sqrt(len(values)):.0f} %"
