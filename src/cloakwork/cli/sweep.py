"""`cloakwork plan --sweep`: how well people are followed at many settings, and which to choose."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakwork.cli.output import (
    as_json,
    bar,
    check_picture,
    counted,
    note,
    noting_kept,
    refuse_unwritable,
    say,
    table,
)
from cloakwork.errors import InputError
from cloakwork.site import FRAMES, Estimate, Need, Site, Tradeoff, TradeoffRow, tradeoff

PEOPLE = (
    " Simulated people sit 5 to 40 minutes, walk to another seat, stay 2 to 6 hours and are away for 0.5 to 3; those "
    "who walk sit 10 to 60 seconds."
)
Sweep = Annotated[bool, typer.Option("--sweep", help="Instead, simulate people at many settings and compare.")]


def _compared(what: str, example: str) -> Any:
    return typer.Option(metavar="LIST", help=f"With --sweep: {what} to compare, such as {example}.")


Alphas = Annotated[str | None, _compared("moves to hide, in the unit of the site,", "0.1,0.3")]
Epsilons = Annotated[str | None, _compared("epsilons of a window", "1,2,4")]
Readings = Annotated[str | None, _compared("numbers of readings in a window", "1,10")]
Sensors = Annotated[str | None, _compared("numbers of sensors", "20,40,80")]
Resolutions = Annotated[str | None, _compared("steps of the hardware, in the unit of a reading,", "0.01,0.1")]
Needs = Annotated[
    list[str] | None,
    typer.Option("--need", metavar="TEXT", help='With --sweep: what for, such as "room 95%" or "count 90% live".'),
]
Frames = Annotated[int | None, typer.Option(min=1, help="With --sweep: frames of each simulation, at least 24.")]
Kept = Annotated[
    Path | None,
    typer.Option("--kept", metavar="FILE", help="With --sweep: file of finished simulations, to stop and go on."),
]
Plot = Annotated[Path | None, typer.Option("--plot", help="With --sweep: file to draw the comparison in.")]


@dataclass(frozen=True)
class SweepOptions:
    """The options that go with --sweep."""

    alpha: str | None = None
    epsilon: str | None = None
    readings: str | None = None
    sensors: str | None = None
    resolution: str | None = None
    need: Sequence[str] | None = None
    frames: int | None = None
    plot: Path | None = None
    scheduler: str | None = None
    kept: Path | None = None

    def refuse_any(self) -> None:
        """Refuse options that mean nothing without --sweep."""
        given = [name for name, value in vars(self).items() if value]
        if given:
            raise InputError(f"--{given[0]} goes with --sweep: add it, or leave this option out.", option=given[0])


def sweep(site: Site, path: Path, options: SweepOptions, *, json: bool) -> None:
    """Compare settings, and print or draw the result."""
    if options.plot is not None:
        check_picture(options.plot)
        refuse_unwritable("--plot", options.plot, path, *site.files.values())
    if options.kept is not None:
        refuse_unwritable("--kept", options.kept, path, *site.files.values())
    needs = [Need.parse(text) for text in options.need or ()]
    keeping = noting_kept(options.kept, "Finished simulations")
    with keeping, _progress(on_cluster=options.scheduler is not None) as progress:
        found = tradeoff(
            site,
            alpha=_numbers("alpha", options.alpha),
            epsilon=_numbers("epsilon", options.epsilon),
            readings=_whole("readings", options.readings),
            sensors=_whole("sensors", options.sensors),
            resolution=_numbers("resolution", options.resolution),
            frames=options.frames or FRAMES,
            workers=os.cpu_count() or 1,
            scheduler=options.scheduler,
            kept=options.kept,
            progress=progress,
        )
    best = found.recommend(*needs)
    if options.plot is not None:
        from cloakwork.cli.draw import draw_tradeoff  # noqa: PLC0415 - Matplotlib is slow to load

        draw_tradeoff(options.plot, site.name, found, unit="metres" if site.length_unit else "")
    if json:
        as_json(_values(site, found, best))
        return
    _print(site, found)
    for sentence in _advice(site, found, best, options.need):
        say(f"{sentence}\n")


def _numbers(name: str, text: str | None) -> list[float]:
    """Read numbers above 0 with commas between them."""
    try:
        values = [] if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(0 < value < math.inf for value in values):
        raise InputError(f"--{name} {text}: give numbers above 0 with commas between them, such as 0.1,0.2.", text=text)
    return values


def _whole(name: str, text: str | None) -> list[int]:
    values = _numbers(name, text)
    if any(value != int(value) for value in values):
        raise InputError(f"--{name} {text}: give whole numbers with commas between them, such as 10,20.", text=text)
    return [int(value) for value in values]


@contextmanager
def _progress(*, on_cluster: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, with a note of how long it takes once the first simulations are done."""
    began = time.monotonic()
    with bar("simulating people") as show:
        told = False
        known: int | None = None  # simulations that an earlier run finished

        def progress(done: int, total: int) -> None:
            nonlocal began, told, known
            show(done, total)
            if known is None:
                began, known = time.monotonic(), done
                where = "the cluster" if on_cluster else counted(os.cpu_count() or 1, "core")
                note(f"{counted(total - done, 'simulation')} on {where}{f', {done} kept' if done else ''}")
            elif not told and known + (os.cpu_count() or 1) <= done < total:
                told = True
                left = (time.monotonic() - began) / (done - known) * (total - done) / 60
                note(f"about {max(1, math.ceil(left))} min left")

        yield progress


def _values(site: Site, found: Tradeoff, best: TradeoffRow | None) -> dict[str, object]:
    """The comparison as plain values; shares from 0 to 1, None for what was never seen."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [
        {
            **asdict(row.setting),
            "mu": row.mu,
            "noise": {"least": float(row.sigmas.min()), "most": float(row.sigmas.max())},
            "sitting": plain(asdict(row.sitting)),
            "walking": None if row.walking is None else plain(asdict(row.walking)),
            "useless": row.useless,
        }
        for row in found.rows
    ]
    return {
        "site": site.name,
        "delta": site.spec.privacy.delta,
        "window_seconds": found.window,
        "zone": found.zone,
        "simulations": found.simulations,
        "frames": found.frames,
        "settings": rows,
        "recommended": None if best is None else asdict(best.setting),
    }


def _print(site: Site, found: Tradeoff) -> None:
    unit = site.length_unit
    moving = any(row.walking is not None for row in found.rows)
    walks = ("walking: right " + found.zone,) if moving else ()
    columns = (
        "alpha, epsilon",
        "readings",
        "sensors",
        "step",
        f"right {found.zone}",
        f"all {found.zone}s right",
        "right count",
        "median distance",
        *walks,
    )
    rows = []
    for row in found.rows:
        live, settled, setting = row.sitting.live, row.sitting.settled, row.setting
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
                *((_shares(row.walking.live.room, row.walking.settled.room),) if row.walking else ()),
            )
        )
    minutes = found.window / 60
    table(f"Following people at {site.name}: at once / one window ({minutes:g} min) later, in %", columns, rows)
    guess = found.rows[0].sitting.guess
    say(
        f"(Standard errors are those of the second figure. {counted(found.simulations, 'simulation')} of "
        f"{counted(found.frames, 'frame')}; settings with the same noise share one. Always to answer {guess.where!r} "
        f"names the right {found.zone} of {100 * guess.room:.0f} % of people, and always the same number of people is "
        f"right in {100 * guess.count:.0f} % of frames.{PEOPLE if moving else ''})\n"
    )


def _shares(live: Estimate, settled: Estimate) -> str:
    return f"{100 * live.value:.0f} / {100 * settled.value:.0f} ± {100 * settled.error:.0f}"


def _advice(site: Site, found: Tradeoff, best: TradeoffRow | None, needs: Sequence[str] | None) -> Iterator[str]:
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
