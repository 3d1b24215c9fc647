"""`cloakwork sensor --check`: reads beside the device, at rest and on a ramp, and judges it. Nothing is sent."""

import importlib.util
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import typer

from cloakwork.cli.output import note, print_json, say, working
from cloakwork.errors import InputError
from cloakwork.sensor.check import Readings, check, lines
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.store import Folder

HANGS_S = 30.0  # without an end of a reading


@dataclass(frozen=True)
class MeasureFile:
    """Takes readings with the `read` of a folder's measure.py."""

    read: Callable[[], Any]


class ProgramReadings(Readings):
    """Readings that may come from a program: explains one that fails by the last line of its standard error."""

    def explain(self, cause: Any) -> None:
        if isinstance(cause, subprocess.CalledProcessError):
            said = cause.stderr.decode("utf-8", "replace").strip().splitlines()
            self.add_text(
                f"the program ended with exit code {cause.returncode}" + (f": {said[-1][:200]}" if said else "")
            )
        elif not isinstance(cause, subprocess.TimeoutExpired):  # which counts as slow, and there is no more to say
            super().explain(cause)


def check_device(folder: Path, config: dict[str, Any], measured: Any, *, count: int, json: bool) -> None:
    """Check a provisioned device; ends the command with code 1 if it is not ready."""
    try:
        held = Folder(str(folder)).lock()
    except SensorError as problem:
        raise InputError(f"{folder}: {problem}", path=str(folder)) from None
    try:
        late_ms = config["schedule"]["late_ms"]
        report = check(config, lambda number: _take(measured.read, number, late_ms), count, note)
    finally:
        if held is not None:
            held.close()
    if json:
        print_json(report)
    else:
        say("\n".join(lines(report)))
    if not report["ready"]:
        raise typer.Exit(1)


def _take(read: Callable[[], Any], count: int, late_ms: int) -> Readings:
    """Read in a thread, since a program of the user may never return."""
    taken = ProgramReadings()
    with working("reading", count) as show:
        worker = Thread(target=taken.take, args=(read, count, late_ms, show), daemon=True)
        worker.start()
        begun = -1
        while worker.is_alive() and begun != taken.turn:
            begun = taken.turn
            worker.join(max(HANGS_S, 2 * late_ms / 1000))
            taken.hanging = worker.is_alive() and begun == taken.turn
    return taken


def load_measure(folder: Path) -> MeasureFile:
    """Load a folder's measure.py; an error in the file is shown in full."""
    path = folder / "measure.py"
    spec = importlib.util.spec_from_file_location("measure", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: there is no such file. Give --source, or a folder that provision wrote.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
        return MeasureFile(module.read)
    except Exception as problem:
        note(traceback.format_exc())
        raise InputError(
            f"{path}: it cannot be loaded ({type(problem).__name__}; in full above). If it is for a board, check it "
            'there: mpremote exec "import check".'
        ) from None
    finally:
        sys.path.remove(str(folder))
