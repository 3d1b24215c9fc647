"""Writes docs/tables/parts.txt, for the page on devices: `python -m scripts.parts`.

Each part has the figures of its data sheet, or none where we did not find one. The plan that results from them is that
of the site of `cloakwork init` with equal noise and the part's step, noise floor and time of measuring.
"""

from math import radians, tan
from pathlib import Path
from typing import NamedTuple

from cloakwork.site import Site
from scripts.assumptions import example_site

FILE = Path(__file__).parent.parent / "docs" / "tables" / "parts.txt"
CEILING = 2.5  # metres
BITS = "[bits](../science/bits.md), no plan"


class Part(NamedTuple):
    """A part: its step and noise floor in degrees, the angles of its view, and the seconds that one measurement takes.

    None stands for what we did not find; `s` marks figures of a data sheet, `m` measured ones, `a` assumed ones.
    """

    name: str
    step: float | None = None
    own: float | None = None
    own_mark: str = "s"
    view: tuple[float, float] | None = None
    pixels: int = 1  # along the first side of the view
    seconds: float | None = None
    reads: str = ""  # instead of a temperature


SENSIRION = 175 / 65535  # degrees for one of 16 bits
PARTS = (
    Part("MLX90640, narrow lens", own=0.1, view=(55, 35), pixels=32, seconds=1.0),
    Part("MLX90640, wide lens", own=0.1, view=(110, 75), pixels=32, seconds=1.0),
    Part("MLX90641, narrow lens", own=0.1, view=(55, 35), pixels=16, seconds=0.25),
    Part("MLX90641, wide lens", own=0.1, view=(110, 75), pixels=16, seconds=0.25),
    Part("AMG8833", step=0.25, own=0.35, own_mark="m", view=(60, 60), pixels=8, seconds=0.1),
    Part("DS18B20, 12 bits", step=0.0625, seconds=0.75),
    Part("the same, if a check shows its noise", step=0.0625, own=0.04, own_mark="a", seconds=0.75),
    Part("SHT31, high repeatability", step=SENSIRION, own=0.04 / 3, seconds=0.015),
    Part("SHT41", step=SENSIRION, seconds=0.0083),
    Part("TMP117, no averaging", step=1 / 128, own=1 / 128, seconds=0.0155),
    Part("PIR motion detector", reads="one bit", view=(120, 120)),
    Part("LD2410C (mmWave)", reads="presence, distance", view=(120, 120)),
)


def planned(site: Site, part: Part) -> tuple[str, str]:
    """The noise of the plan, and what the step adds to that of exact readings."""
    if part.step is None or part.seconds is None:
        return (BITS, "") if part.reads else ("step unknown: check it", "")
    late = max(part.seconds, site.schedule.late_ms / 1000)
    stated = {"resolution": part.step, "noise_floor": part.own, "late": late}
    spec = site.spec.model_copy(update={"privacy": site.spec.privacy.model_copy(update=stated)})
    cloak = Site(spec, site.folder).cloak()
    cost = 100 * cloak.resolution_cost
    return f"{cloak.sigmas[0]:.2f}", "under 0.1 %" if cost < 0.1 else f"{cost:.1f} %" if cost < 10 else f"{cost:.0f} %"


def row(site: Site, part: Part) -> str:
    """The line of one part, in Markdown."""
    step = part.reads or ("not found" if part.step is None else f"{part.step:.3g}")
    own = "" if part.reads else "not found" if part.own is None else f"{part.own:.2g} ({part.own_mark})"
    if part.own and part.step:
        own += f", {part.own / part.step:.1f} steps"
    floor = ""
    if part.view is not None:
        wide, high = (2 * CEILING * tan(radians(angle / 2)) for angle in part.view)
        floor = f"{wide:.1f} x {high:.1f} m"
        if part.pixels > 1:
            floor += f", pixels of {2 * CEILING * tan(radians(part.view[0] / part.pixels / 2)):.2f} m"
    seconds = "" if part.seconds is None else f"{part.seconds:g} s"
    return f"| {' | '.join((part.name, step, own, floor, seconds, *planned(site, part)))} |"


def table() -> list[str]:
    """The lines of the table, in Markdown."""
    site = example_site()
    head = (
        "part",
        "step, °C",
        "noise floor, °C",
        "sees, on the floor",
        "one reading takes",
        "noise of the plan",
        "for the step",
    )
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(row(site, part) for part in PARTS)]


if __name__ == "__main__":
    FILE.write_text("\n".join([*table(), ""]), encoding="utf-8")
