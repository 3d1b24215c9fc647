"""`cloakwork plan --sweep`: how well people are followed at many settings, and which to choose."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cloakwork.cli.output import counted, working
from cloakwork.cli.report import Row, Table, render
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
    render(SweepReport(site, found, found.recommend(*needs), ", ".join(need or ["room 95%"])), json=json)


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


@dataclass(frozen=True, eq=False)
class SweepReport:
    """The settings that were compared, and the best one for a purpose."""

    site: Site
    found: Tradeoff
    best: TradeoffRow | None
    purpose: str

    def as_dict(self) -> Mapping[str, Any]:
        """The comparison as plain values; shares from 0 to 1, None for what was never seen."""
        rows = [
            {
                **asdict(row.setting),
                "mu": row.mu,
                "noise": {"least": float(row.sigmas.min()), "most": float(row.sigmas.max())},
                "followed": row.followed,
                "useless": row.useless,
            }
            for row in self.found.rows
        ]
        return {
            "site": self.site.name,
            "delta": self.site.spec.privacy.delta,
            "window_seconds": self.found.window,
            **{name: getattr(self.found, name) for name in ("zone", "frames")},
            "settings": rows,
            "recommended": self.best and self.best.setting,
        }

    def rows(self) -> Iterator[Row]:
        """The table, how to read it, which setting to choose, and which are useless."""
        found, guess = self.found, self.found.rows[0].followed.guess
        minutes = found.window / 60
        yield f"Following people at {self.site.name}: at once / one window ({minutes:g} min) later, in %"
        right = f"right {found.zone}"
        heads = ("alpha, epsilon", "readings", "sensors", "step", right, f"all {found.zone}s right", "right count")
        yield Table.of((*heads, "median distance"), map(self._cells, found.rows))
        yield ""
        people = "" if math.isinf(self.site.motion.mean_sit_s) else f" {PEOPLE}"
        yield (
            f"(Standard errors are those of the second figure, from {counted(found.frames, 'frame')}. Always to answer "
            f"{guess.where!r} names the right {found.zone} of {100 * guess.room:.0f} % of people, and always the same "
            f"number of people is right in {100 * guess.count:.0f} % of frames.{people})"
        )
        yield ""
        if self.best is None:
            yield (
                f"No setting is sure to meet {self.purpose}. Allow a larger epsilon or a smaller alpha, or a longer "
                "view: more frames make the errors smaller."
            )
        else:
            setting = self.best.setting
            yield (
                f"For {self.purpose}, the strongest of these guarantees is alpha = {setting.alpha:g} with epsilon = "
                f"{setting.epsilon:g} and delta = {self.site.spec.privacy.delta:g} for "
                f"{counted(setting.readings, 'reading')} in {minutes:g} minutes."
            )
        yield from (f"Warning: {warning}." for warning in map(found.warning, found.rows) if warning)

    def _cells(self, row: TradeoffRow) -> Iterator[str]:
        live, settled, setting, unit = row.followed.live, row.followed.settled, row.setting, self.site.length_unit
        yield f"{f'{setting.alpha:g} {unit}'.rstrip()}, {setting.epsilon:g}"
        yield f"{setting.readings:,}"
        yield f"{setting.sensors:,}"
        yield "exact" if setting.resolution is None else f"{setting.resolution:g}"
        for name in ("room", "rooms", "count"):
            yield _shares(getattr(live, name), getattr(settled, name))
        yield f"{live.spot.value:.2g} / {settled.spot.value:.2g} {unit}".rstrip()


def _shares(live: Estimate, settled: Estimate) -> str:
    return f"{100 * live.value:.0f} / {100 * settled.value:.0f} ± {100 * settled.error:.0f}"
