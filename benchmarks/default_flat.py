"""How well people are followed in the flat of `cloakwork init`.

The README and docs/guides/plan-a-site.md have the figures.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib.resources import files
from statistics import mean, stdev

from rich.table import Table

from cloakwork.site import Followed, Quality, Site, parse_site
from cloakwork.site.tracking_quality import follow_simulated, usual_habits

FRAMES, SEEDS = 600, 4
PAUSES = (10.0, 60.0)  # seconds for which people who walk sit down
_FIGURES = ("room", "rooms", "count", "spot")


@dataclass(frozen=True)
class Case:
    """One variant of the flat."""

    epsilon: float = 4.0
    lag: float = 3.0
    walking: bool = False
    stay: bool = True

    @property
    def words(self) -> str:
        """The variant in words."""
        people = "walk" if self.walking else "sit"
        return f"{people}, epsilon {self.epsilon:g}, lag {self.lag:g} min{'' if self.stay else ', no table for stays'}"

    def site(self) -> Site:
        """The site file of `cloakwork init` with the changes of this variant."""
        text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
        text = re.sub(r"^epsilon = [\d.]+", f"epsilon = {self.epsilon}", text, count=1, flags=re.MULTILINE)
        text = text.replace('lag = "3min"', f"lag = {60 * self.lag}")
        if not self.stay:
            text = re.sub(r"^\[privacy\.stay\]\n(?:.+\n)+", "", text, flags=re.MULTILINE)
        return parse_site(text)


CASES = (
    *(Case(epsilon=epsilon) for epsilon in (4.0, 2.0, 6.0)),
    *(Case(lag=lag) for lag in (0.0, 1.0, 10.0)),
    Case(stay=False),
    Case(walking=True),
)


def run() -> tuple[Table, bool]:
    """The table; there is no goal."""
    table = Table(
        title=f"The flat of init: means of {SEEDS} simulations of {FRAMES} minutes, at once / ten minutes later"
    )
    for column in ("variant", "right room, %", "all rooms right, %", "right count, %", "median distance, m"):
        table.add_column(column, justify="right")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = {case: [pool.submit(_followed, case, seed) for seed in range(SEEDS)] for case in CASES}
        for case, found in runs.items():
            followed = [one.result() for one in found]
            table.add_row(case.words, *(_cell(followed, figure) for figure in _FIGURES))
    return table, True


def _followed(case: Case, seed: int) -> Followed:
    site = case.site()
    cloak = site.cloak()
    habits = usual_habits(site)
    if case.walking:
        habits = replace(habits, sit=PAUSES)
    return follow_simulated(site, cloak.sigmas, frames=FRAMES, seed=seed, habits=habits, offsets=cloak.offsets)


def _cell(followed: Sequence[Followed], figure: str) -> str:
    return " / ".join(_mean([getattr(kind, figure).value for kind in kinds], figure) for kinds in _kinds(followed))


def _kinds(followed: Sequence[Followed]) -> tuple[list[Quality], list[Quality]]:
    return [one.live for one in followed], [one.settled for one in followed]


def _mean(values: Sequence[float], figure: str) -> str:
    scale = 1 if figure == "spot" else 100
    error = scale * stdev(values) / len(values) ** 0.5
    return f"{scale * mean(values):.3g} ± {error:.2g}"
