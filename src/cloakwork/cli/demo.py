"""`cloakwork demo`: a simulated flat or office, from its devices to a living map or to one picture."""

import os
import signal
import sys
import time
import webbrowser
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import INIT, argument, option, reads
from cloakwork.cli.output import counted, err, note, program, stop_signal, working
from cloakwork.cli.report import show
from cloakwork.demo import (
    Demonstration,
    DemoProgress,
    Household,
    Staff,
    load_flat,
    load_forecast,
    load_office,
    residents_of,
    sensors_of,
    this_morning,
    usual_port,
)
from cloakwork.errors import InputError
from cloakwork.physics import Rooms
from cloakwork.site import Site, load_plan, load_site, plan_beside

LOOK_S = 1.0
LATE_MS = 180_000  # of simulated time: seconds here
OFFICE_SPEED = 20.0
STOPPED = "stopped; all data is removed"


def demo(
    path: Annotated[
        Path | None,
        argument("Your own site, with simulated people; else a flat.", metavar="[SITE]", callback=reads(INIT)),
    ] = None,
    once: Annotated[
        bool, option("Draw one picture and exit; the default without a terminal or with CI=true.", "--once")
    ] = False,
    out: Annotated[Path, option("Folder for that picture.", "--out")] = Path("out"),
    building: Annotated[
        bool, option("Two floors of an office with 30 people instead of the flat.", "--building")
    ] = False,
    browser: Annotated[bool, option("Open the map in a browser.", "--browser/--no-browser")] = True,
) -> None:
    """Run a flat, your site or the office until stopped, or draw one picture."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary files are removed
    picture = once or not sys.stdout.isatty() or os.environ.get("CI") == "true"
    try:
        if building:
            if once or path is not None:
                raise InputError("--building shows two floors live: leave out --once and SITE.")
            floors = [(site, Staff(_rooms(site), seed=k)) for k, site in enumerate(load_office())]
            _live(
                Demonstration(*floors, begins_s=floors[0][1].begins_s, speed=OFFICE_SPEED, port=usual_port()), browser
            )
            return
        site = load_flat() if path is None else load_site(path)
        if site.not_followed:
            raise InputError(f"{site.name}: people cannot be followed here, because {site.not_followed}.")
        people = Household(_rooms(site)) if path is None else residents_of(site)
        if picture:
            _draw(site, people, out)
            return
        beside = None if path is None else plan_beside(path)
        known = load_forecast() if beside is None else load_plan(beside).forecast if beside.is_file() else None
        _live(Demonstration((site, people), begins_s=people.begins_s, port=usual_port(), forecast=known), browser)
    except KeyboardInterrupt:
        note(STOPPED)


def _rooms(site: Site) -> Rooms:
    if site.physics.floor is None:
        raise TypeError(f"{site.name} is no floor plan")
    return site.physics.floor


def _draw(site: Site, people: Household, out: Path) -> None:
    from cloakwork.cli.demo_picture import FRAMES, draw_morning, explain, follow_morning  # noqa: PLC0415 - a live map needs no Matplotlib

    began = time.perf_counter()
    note(
        f"planning the noise of {counted(site.physics.sensors, 'sensor')}, and following people through "
        f"{FRAMES} simulated readings ..."
    )
    with working("following", FRAMES) as progress:
        cloak = site.cloak()
        morning = follow_morning(site, cloak, people, this_morning(people.begins_s), progress=progress)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "demo.png"
    with working("drawing"):
        draw_morning(picture, site, morning)
    with working("computing what an observer learns"):
        explained = list(explain(site, cloak, morning))
    show(*explained)
    note(
        f"drew {picture} in {time.perf_counter() - began:.1f} s. For a live map with devices, a broker and a "
        f"collector, run {program()} demo in a terminal. Next, try: {program()} init, then {program()} plan site.toml"
    )


def _live(demonstration: Demonstration, browser: bool) -> None:
    sensors = counted(sum(site.physics.sensors for site, _ in demonstration.floors), "sensor")
    note(f"planning the noise of {sensors}, and starting a device for each, a broker and a collector ...")
    with ExitStack() as stack:
        with working("starting"):
            live = stack.enter_context(demonstration)
        show(f"The map: {live.invite()}")
        note(sensors_of(live.site))
        note(f"that address works once, within ten minutes; later, sign in at {live.service.url}/ with {live.secret}")
        note(
            f"time runs {live.clock.speed:g} times faster there: a reading a minute is one in "
            f"{60 / live.clock.speed:g} s here. People live {live.floors[0][1].origin}. To "
            "compare, tick `Simulated truth` in History, under Advanced. Ctrl-C stops the demo and removes its data"
        )
        stopping = stop_signal()
        with err.status(_status_line(live.progress())) as line:
            shown = not browser
            while not stopping.wait(LOOK_S):
                if live.service.failed:
                    raise RuntimeError("the HTTP server ended unexpectedly")
                now = live.progress()
                if now.frames and not shown:
                    shown = True
                    _open(live.invite())
                line.update(_status_line(now))
    note(STOPPED)


def _status_line(now: DemoProgress) -> str:
    moment = f"{datetime.fromtimestamp(now.time / 1000):%H:%M} there"
    people = "1 person" if now.people == 1 else f"{now.people} people"
    if now.preparing:
        return f"{moment}: compiling the solvers, which takes up to a minute the first time"
    if now.delay_ms is None:
        return f"{moment}: {people}, {counted(now.readings, 'reading')}, waiting for the first map"
    behind = f"map {now.delay_ms / 60_000:.0f} min behind" if now.delay_ms > LATE_MS else "map up to date"
    return f"{moment}: {people}, {counted(now.readings, 'reading')}, {counted(now.frames, 'frame')} followed, {behind}"


def _open(address: str) -> None:
    """Open the page if there is a screen: a text browser would take over the terminal."""
    screen = sys.platform in {"darwin", "win32"} or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen and not os.environ.get("SSH_CONNECTION"):
        webbrowser.open(address)
