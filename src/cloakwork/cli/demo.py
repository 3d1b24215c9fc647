"""`cloakwork demo`: a simulated flat, from its devices to a living map or to one picture."""

import os
import signal
import sys
import time
import webbrowser
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from cloakwork.cli.demo_picture import PEOPLE, show_picture
from cloakwork.cli.output import counted, err, note, say
from cloakwork.demo import (
    POSITIONS,
    Demonstration,
    DemoProgress,
    Movement,
    data_file,
    load_flat,
    recorded,
    staying,
    usual_port,
    walking,
)
from cloakwork.physics import FloorPlan
from cloakwork.site import Site

FRAMES = 3  # that --once waits for: the first ones may arrive while the solvers are still compiling
PATIENCE = 600.0  # seconds: a busy machine may miss many frames
LOOK_S = 1.0
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
    began = time.perf_counter()
    site = load_flat()
    _announce(site)
    with Demonstration(site, staying(tuple(PEOPLE.values()))) as show:
        period = site.period_ms / 1000
        note(
            f"taking {counted(FRAMES, 'frame')}, one every {period:.0f} s (the first run compiles the solvers, which "
            "takes some seconds) ..."
        )
        result = show.wait_for(FRAMES, PATIENCE)
        out.mkdir(parents=True, exist_ok=True)
        picture = out / "demo.png"
        show_picture(picture, show.watched, result, show.store.frames.values(site.name, [result.time])[result.time])
    note(
        f"drew {picture} in {time.perf_counter() - began:.1f} s; for a live map run `cloakwork demo` in a terminal. "
        "Next, try: cloakwork init, then cloakwork plan site.toml"
    )


def _live(*, browser: bool) -> None:
    site = load_flat()
    _announce(site)
    movement = _movement(site)
    with Demonstration(site, movement, port=usual_port()) as show:
        say(f"The map: {show.invite()}")
        note(f"that address works once, within ten minutes; later, sign in at {show.service.url}/ with {show.secret}")
        note(
            f"simulated people move {movement.origin}. Tick `Simulated truth` on the page to compare the map with it, "
            "and `With this window's data` to combine all frames of a minute, which suits people who sit still. "
            "Ctrl-C stops the demo and removes its data"
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


def _announce(site: Site) -> None:
    sensors = counted(site.physics.sensors, "sensor")
    note(f"planning the noise of {sensors}, and starting a device for each, a broker and a collector ...")


def _movement(site: Site) -> Movement:
    """Recorded movement if the data folder has it, else simulated walks."""
    flat, path = site.physics, data_file(POSITIONS)
    if not isinstance(flat, FloorPlan):
        raise TypeError("the flat is a floor plan")
    if path is None:
        return walking(flat.rooms)
    return recorded(path, flat.rooms, most=site.spec.sources.max_count or 1)


def _status_line(now: DemoProgress) -> str:
    people = "1 person" if now.people == 1 else f"{now.people} people"
    behind = "waiting for the first frame" if now.delay_ms is None else f"map {now.delay_ms / 1000:.1f} s behind"
    return f"{people}, {counted(now.readings, 'reading')}, {counted(now.frames, 'frame')} recovered, {behind}"


def _open(address: str) -> None:
    """Open the page if there is a screen: a text browser would take over the terminal."""
    screen = sys.platform in {"darwin", "win32"} or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen and not os.environ.get("SSH_CONNECTION"):
        webbrowser.open(address)
