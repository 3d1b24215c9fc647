"""`cloakwork plan --sweep`: how well people are followed at many settings, and which to choose."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cloakwork.cli.output import counted, print_json, say, working
from cloakwork.cli.report import table
from cloakwork.errors import InputError
from cloakwork.site import FRAMES, Estimate, Need, Site, Tradeoff, TradeoffRow, tradeoff

PEOPLE = "Simulated people sit 5 to 40 minutes, walk to another seat, stay 2 to 6 hours and are away for 0.5 to 3."
SETTINGS = {"alpha": float, "epsilon": float, "readings": int, "sensors": int, "resolution": float}


def sweep(
    site: Site,
    *,
    tried: Sequence[str],
    need: Sequence[str],
    frames: int | None,
    json: bool,
) -> None:
    """Compare settings, and print the result."""
    needs, settings = [Need.parse(text) for text in need], dict(map(_setting, tried))
    with working("simulating people") as progress:
        found = tradeoff(site, **settings, frames=frames or FRAMES, workers=os.cpu_count() or 1, progress=progress)
    best = found.recommend(*needs)
    if json:
        print_json(_values(site, found, best))
        return
    _print(site, found)
    for sentence in _advice(site, found, best, need):
        say(f"{sentence}\n")


def _setting(text: str) -> tuple[str, Any]:
    """Read the name of a setting and the values to compare.

    >>> _setting("sensors=20,40")
    ('sensors', [20, 40])
    """
    name, _, values = text.partition("=")
    try:
        numbers = [SETTINGS[name](value) for value in values.split(",")]
    except (KeyError, ValueError):
        numbers = []
    if not numbers or not all(0 < number < math.inf for number in numbers):
        names = ", ".join(SETTINGS)
        raise InputError(f"--try {text}: give NAME=LIST, such as epsilon=1,2,4. Names: {names}.", text=text)
    return name, numbers


def _values(site: Site, found: Tradeoff, best: TradeoffRow | None) -> dict[str, object]:
    """The comparison as plain values; shares from 0 to 1, None for what was never seen."""
    rows = [
        {
            **asdict(row.setting),
            "mu": row.mu,
            "noise": {"least": float(row.sigmas.min()), "most": float(row.sigmas.max())},
            "followed": row.followed,
            "useless": row.useless,
        }
        for row in found.rows
    ]
    return {
        "site": site.name,
        "delta": site.spec.privacy.delta,
        "window_seconds": found.window,
        "zone": found.zone,
        "frames": found.frames,
        "settings": rows,
        "recommended": best and best.setting,
    }


def _print(site: Site, found: Tradeoff) -> None:
    unit = site.length_unit
    columns = (
        "alpha, epsilon",
        "readings",
        "sensors",
        "step",
        f"right {found.zone}",
        f"all {found.zone}s right",
        "right count",
        "median distance",
    )
    rows = []
    for row in found.rows:
        live, settled, setting = row.followed.live, row.followed.settled, row.setting
        rows.append(
            (
                f"{setting.alpha:g}{unit and ' ' + unit}, {setting.epsilon:g}",
                f"{setting.readings:,}",
                f"{setting.sensors:,}",
                "exact" if setting.resolution is None else f"{setting.resolution:g}",
                _shares(live.room, settled.room),
                _shares(live.rooms, settled.rooms),
                _shares(live.count, settled.count),
                f"{live.spot.value:.2g} / {settled.spot.value:.2g} {unit}".rstrip(),
            )
        )
    minutes = found.window / 60
    table(f"Following people at {site.name}: at once / one window ({minutes:g} min) later, in %", columns, rows)
    guess = found.rows[0].followed.guess
    say(
        f"(Standard errors are those of the second figure, from {counted(found.frames, 'frame')}. Always to answer "
        f"{guess.where!r} names the right {found.zone} of {100 * guess.room:.0f} % of people, and always the same "
        f"number of people is right in {100 * guess.count:.0f} % of frames.{_people(site)})\n"
    )


def _people(site: Site) -> str:
    """How simulated people move, where they do."""
    return "" if math.isinf(site.motion.mean_sit_s) else f" {PEOPLE}"


def _shares(live: Estimate, settled: Estimate) -> str:
    return f"{100 * live.value:.0f} / {100 * settled.value:.0f} ± {100 * settled.error:.0f}"


def _advice(site: Site, found: Tradeoff, best: TradeoffRow | None, needs: Sequence[str]) -> Iterator[str]:
    """Say which setting to choose, and which are useless."""
    purpose = ", ".join(needs or ["room 95%"])
    if best is None:
        yield (
            f"No setting is sure to meet {purpose}. Allow a larger epsilon or a smaller alpha, or a longer view: more "
            "frames make the errors smaller."
        )
    else:
        setting = best.setting
        yield (
            f"For {purpose}, the strongest of these claims is alpha = {setting.alpha:g} with epsilon = "
            f"{setting.epsilon:g} and delta = {site.spec.privacy.delta:g} for {counted(setting.readings, 'reading')} "
            f"in {found.window / 60:g} minutes."
        )
    for row in found.rows:
        if warning := found.warning(row):
            yield f"Warning: {warning}."
