"""`cloakwork sensor`: one device, or with --check its readings at rest and on a ramp, which are sent nowhere."""

import importlib.util
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakwork.cli.arguments import INIT, argument, option, reads
from cloakwork.cli.output import note, stop_signal, working
from cloakwork.cli.report import show
from cloakwork.device import Agent, CommandReading, ConstantReading, FileReading, ReadingSource
from cloakwork.errors import InputError, PlanError, ReadingError
from cloakwork.sensor.board import UNSTATED, check_resolution
from cloakwork.sensor.check import COUNT, FEWEST, Readings, lines
from cloakwork.sensor.check import check as check_device
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.store import Folder
from cloakwork.site import load_any_plan, load_any_site, load_site, plan_beside


def sensor(
    path: Annotated[Path, argument("The site file, or the folder of a device.", metavar="SITE", callback=reads(INIT))],
    source: Annotated[
        str | None, option("command:PROGRAM, file:PATH, simulated, or simulated:AT with a site file; else measure.py.")
    ] = None,
    sensor_id: Annotated[str | None, option("Id of the sensor.", "--id")] = None,
    home_assistant: Annotated[bool, option("Announce the sensor to Home Assistant.", "--home-assistant")] = False,
    check: Annotated[
        bool, option("Only read, at rest and on a ramp, send nothing, and compare with the plan.", "--check")
    ] = False,
    readings: Annotated[int, option("Readings that --check takes.", min=FEWEST)] = COUNT,
) -> None:
    """Work as one device until stopped, or check one."""
    site = None if path.is_dir() else path
    folder = path if site is None else _folder(site, sensor_id)
    config = _config(folder)
    if sensor_id is not None and sensor_id != config["sensor"]:
        raise InputError(f"--id {sensor_id}: {folder} is the folder of {config['sensor']}.")
    if site is not None and plan_beside(site).exists():
        with suppress(PlanError, OSError):  # the device needs only its folder, whatever became of the plan
            if load_any_plan(plan_beside(site)).digest != config["plan"]:
                note(f"{folder} is of another plan than {plan_beside(site)}: provision it again to use that one")
    measured: Any = load_measure(folder) if source is None else make_source(source, config, site)
    if check:
        if isinstance(measured, ConstantReading):
            raise InputError("--check: a simulated source has no noise to check. Check measure.py, or another source.")
        if source is not None:
            _try(source, measured, folder, config)
        _check(folder, config, measured.read, readings)
        return
    _try(source, measured, folder, config)
    schedule = config["schedule"]
    limit = "without a budget: for audits, never where people are"
    if schedule["allowed"]:
        limit = f"at most {schedule['allowed']:,} in a window"
    every = f"a reading every {schedule['period_ms'] / 1000:g} s"
    note(f"{config['sensor']} of {config['site']}: {every}, cloaked here, {limit}")
    stopping = stop_signal()
    Agent(folder, measured, home_assistant=home_assistant, note=note).run(stopping.is_set)
    note("stopped")


def _folder(site: Path, sensor: str | None) -> Path:
    """The folder of a provisioned sensor."""
    if sensor is None:
        raise InputError("--id: give the id of the sensor, or give its provisioned folder instead of the site file.")
    folder = site.parent / "devices" / sensor
    if not folder.is_dir():
        if sensor not in load_any_site(site).sensor_ids:
            raise InputError(f"--id {sensor}: {site} has no such sensor.")
        raise InputError(
            f"{folder}: this sensor is not provisioned yet. Provision it with: "
            f"cloakwork provision {shlex.quote(str(site))} --id {shlex.quote(sensor)}"
        )
    return folder


def _config(folder: Path) -> dict[str, Any]:
    try:
        return dict(loads((folder / "device.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise InputError(f"{folder}: there is no device.json here. Give a folder that provision wrote.") from None


@dataclass(frozen=True)
class MeasureFile:
    """Takes readings with the `read` of a folder's measure.py."""

    read: Callable[[], Any]


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
    except Exception as problem:
        note(traceback.format_exc())
        raise InputError(
            f"{path}: it cannot be loaded ({type(problem).__name__}; in full above). If it is for a board, check it "
            'there: mpremote exec "import check".'
        ) from None
    finally:
        sys.path.remove(str(folder))
    if not callable(getattr(module, "read", None)):
        raise InputError(f"{path}: it has no function read(). Write one that returns two whole numbers.")
    return MeasureFile(module.read)


def make_source(text: str, config: dict[str, Any], site: Path | None) -> ReadingSource:
    """A source by its name: `command:PROGRAM`, `file:PATH`, `simulated` or `simulated:AT`."""
    kind, _, rest = text.partition(":")
    if kind == "command" and rest:
        return CommandReading(rest, config["schedule"]["late_ms"] / 1000)
    if kind == "file" and rest:
        return FileReading(Path(rest))
    if kind == "simulated":
        return ConstantReading(_simulated(rest, config, site))
    raise InputError(f"--source {text}: give command:PROGRAM, file:PATH, simulated, or simulated:AT with a site file.")


def _simulated(at: str, config: dict[str, Any], path: Path | None) -> float:
    """The reading of the sensor with one source there, or with none."""
    if not at:
        numerator, denominator = config["step"]
        return float(config["fallback"] * numerator / denominator)
    if config["values"]:
        if at not in {"0", "1"}:
            raise InputError(f"--source simulated:{at}: a binary sensor reads simulated:0 or simulated:1.")
        return float(at)
    if path is None:
        raise InputError("--source simulated:AT needs the site file: give it instead of the folder, with --id.")
    from cloakwork.cli.simulate import parse_source  # noqa: PLC0415 - a device without sources needs no model
    from cloakwork.physics import sources  # noqa: PLC0415

    site = load_site(path)
    place, weight = parse_source(at, site.physics.space)
    readings = site.physics.apply(sources(site.physics, [place], [weight])) + site.baselines
    return float(readings[site.sensor_ids.index(config["sensor"])])


def _try(text: str | None, measured: MeasureFile | ReadingSource, folder: Path, config: dict[str, Any]) -> None:
    """Measure once and discard the result, to detect a broken source before anything is sent."""
    if isinstance(measured, MeasureFile):
        try:
            check_resolution(config, measured.read)  # as the device's own main.py does
        except SensorError as problem:
            raise InputError(f"{folder}: {problem}") from None
        return
    named = f"--source {(text or '').partition(':')[0]}"
    if config["resolution"] is None and not isinstance(measured, ConstantReading):
        raise InputError(f"{named}: {UNSTATED}")
    try:
        measured.read()
    except subprocess.TimeoutExpired as problem:
        raise InputError(f"{named}: it takes longer than the {problem.timeout:g} s allowed.") from None
    except subprocess.CalledProcessError as problem:
        raise InputError(f"{named}: the program ended with exit code {problem.returncode}.") from None
    except (OSError, ReadingError) as problem:
        raise InputError(f"{named}: {getattr(problem, 'strerror', None) or problem}") from None


def _check(folder: Path, config: dict[str, Any], read: Callable[[], Any], count: int) -> None:
    """Check a provisioned device; ends the command with code 1 if it is not ready."""

    def take(number: int) -> Readings:
        taken = Readings()
        with working("reading", number) as progress:
            taken.take(read, number, config["schedule"]["late_ms"], progress)
        return taken

    try:
        held = Folder(str(folder)).lock()
    except SensorError as problem:
        raise InputError(f"{folder}: {problem}", path=str(folder)) from None
    report = check_device(config, take, count, note)
    if held is not None:
        held.close()
    show(*lines(report))
    if not report["ready"]:
        raise typer.Exit(1)
