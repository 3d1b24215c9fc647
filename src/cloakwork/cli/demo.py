"""`cloakwork demo`: a simulated flat, from its devices to a living map or to one picture."""

import os
import signal
import sys
import time
import webbrowser
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from cloakwork.cli.output import bar, counted, err, note, program, say
from cloakwork.demo import Demonstration, DemoProgress, Household, load_flat, this_morning, usual_port
from cloakwork.physics import FloorPlan

LOOK_S = 1.0
LATE_MS = 180_000  # in the flat: three seconds here
STOPPED = "stopped; all data is removed"


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Draw one picture and exit; the default without a terminal or with CI=true.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for that picture.")] = Path("out"),
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the map in a browser.")] = True,
) -> None:
    """Run the flat until stopped, or draw it once."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary files are removed
    try:
        if once or not sys.stdout.isatty() or os.environ.get("CI") == "true":
            _draw(out)
        else:
            _live(browser=browser)
    except KeyboardInterrupt:
        note(STOPPED)


def _draw(out: Path) -> None:
    from cloakwork.cli.demo_picture import MINUTES, Morning, show_picture  # noqa: PLC0415 - a live map needs no Matplotlib

    began = time.perf_counter()
    site = load_flat()
    note(
        f"planning the noise of {counted(site.physics.sensors, 'sensor')}, and following people through "
        f"{MINUTES} simulated minutes (the first run compiles the solvers, which takes up to a minute) ..."
    )
    with bar("following", 60_000 * MINUTES // site.period_ms) as progress:
        morning = Morning(site, this_morning(), progress=progress)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "demo.png"
    show_picture(picture, morning)
    note(
        f"drew {picture} in {time.perf_counter() - began:.1f} s. For a live map with devices, a broker and a "
        f"collector, run {program()} demo in a terminal. Next, try: {program()} init, then {program()} plan site.toml"
    )


def _live(*, browser: bool) -> None:
    site = load_flat()
    if not isinstance(site.physics, FloorPlan):
        raise TypeError("the flat is a floor plan")
    sensors = counted(site.physics.sensors, "sensor")
    note(f"planning the noise of {sensors}, and starting a device for each, a broker and a collector ...")
    household = Household(site.physics.rooms)
    with Demonstration(site, household, port=usual_port()) as show:
        say(f"The map: {show.invite()}")
        note(f"that address works once, within ten minutes; later, sign in at {show.service.url}/ with {show.secret}")
        note(
            f"time in the flat runs {show.clock.speed:g} times faster: a reading a minute is one a second here. People "
            f"live {household.origin}. Tick `Simulated truth` on the page to compare the map with it. Ctrl-C stops the "
            "demo and removes its data"
        )
        stopping = Event()  # not an exception, which could be raised where it is lost
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        with err.status(_status_line(show.progress())) as line:
            shown = not browser
            while not stopping.wait(LOOK_S):
                if show.service.failed:
                    raise RuntimeError("the HTTP server ended unexpectedly")
                now = show.progress()
                if now.frames and not shown:
                    shown = True
                    _open(show.invite())
                line.update(_status_line(now))
    note(STOPPED)


def _status_line(now: DemoProgress) -> str:
    moment = f"{datetime.fromtimestamp(now.time / 1000):%H:%M} in the flat"
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
