"""`cloakwork sensor`."""

import shlex
import subprocess
from contextlib import suppress
from json import loads
from pathlib import Path
from typing import Annotated, Any

from cloakwork.cli.arguments import INIT, Authority, Json, PasswordFile, argument, option, reads
from cloakwork.cli.output import note, stop_signal
from cloakwork.cli.sensor_check import MeasureFile, check_device, load_measure
from cloakwork.device import Agent, CommandReading, ConstantReading, FileReading, ReadingSource, parse_time_server
from cloakwork.errors import InputError, PlanError, ReadingError
from cloakwork.mqtt import parse_broker
from cloakwork.sensor.board import UNSTATED, check_resolution
from cloakwork.sensor.check import COUNT, FEWEST
from cloakwork.sensor.errors import SensorError
from cloakwork.site import load_any_plan, load_any_site, load_site, plan_beside


def sensor(
    path: Annotated[Path, argument("The site file, or the folder of a device.", metavar="SITE", callback=reads(INIT))],
    source: Annotated[
        str | None, option("command:PROGRAM, file:PATH, simulated, or simulated:AT with a site file; else measure.py.")
    ] = None,
    sensor_id: Annotated[str | None, option("Id of the sensor.", "--id")] = None,
    broker: Annotated[str | None, option("Broker to use instead of the folder's.")] = None,
    time_server: Annotated[str | None, option("Time server to use instead of the folder's.", metavar="HOST")] = None,
    password_file: PasswordFile = None,
    ca: Authority = None,
    home_assistant: Annotated[bool, option("Announce the sensor to Home Assistant.", "--home-assistant")] = False,
    check: Annotated[
        bool, option("Only read, at rest and on a ramp, send nothing, and compare with the plan.", "--check")
    ] = False,
    readings: Annotated[int, option("Readings that --check takes.", min=FEWEST)] = COUNT,
    json: Json = False,
) -> None:
    """Work as one device until stopped, or check one."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder.")
    folder = path if path.is_dir() else _folder(path, sensor_id)
    config = _config(folder)
    if sensor_id is not None and sensor_id != config["sensor"]:
        raise InputError(f"--id {sensor_id}: {folder} is the folder of {config['sensor']}.")
    site = None if path.is_dir() else path
    if site is not None and plan_beside(site).exists():
        with suppress(PlanError, OSError):  # the device needs only its folder, whatever became of the plan
            if load_any_plan(plan_beside(site)).digest != config["plan"]:
                note(f"{folder} is of another plan than {plan_beside(site)}: provision it again to use that one")
    if check:
        if source is not None and source.startswith("simulated"):
            raise InputError("--check: a simulated source has no noise to check. Check measure.py, or another source.")
        measured = load_measure(folder) if source is None else make_source(source, config, site)
        check_device(folder, config, measured, count=readings, json=json)
        return
    if json:
        raise InputError("--json is for --check: a device that runs has no result to print.")
    if broker is None and (password_file is not None or ca is not None):
        raise InputError("--password-file and --ca need --broker; without it the folder's own settings apply.")
    reached = None if broker is None else parse_broker(broker, password_file=password_file, authority=ca)
    measured = (
        _from_file(folder, config) if source is None else _tried(source, make_source(source, config, site), config)
    )
    schedule = config["schedule"]
    note(
        f"{config['sensor']} of {config['site']}: a reading every {schedule['period_ms'] / 1000:g} s, "
        "cloaked here"
        + (
            f", at most {schedule['allowed']:,} in a window"
            if schedule["allowed"]
            else ", without a budget: for audits, never where people are"
        )
    )
    stopping = stop_signal()
    server = None if time_server is None else parse_time_server(time_server)
    agent = Agent(folder, measured, broker=reached, time_server=server, home_assistant=home_assistant, note=note)
    agent.run(stopping.is_set)
    note("stopped")


def _from_file(folder: Path, config: dict[str, Any]) -> MeasureFile:
    """The folder's measure.py, as the device's own main.py uses it."""
    measured = load_measure(folder)
    try:
        check_resolution(config, measured.read)
    except SensorError as problem:
        raise InputError(f"{folder}: {problem}") from None
    return measured


def _tried(text: str, source: ReadingSource, config: dict[str, Any]) -> ReadingSource:
    """Measure once and discard the result, to detect a broken source before anything is sent."""
    kind = text.partition(":")[0]
    if config["resolution"] is None and not isinstance(source, ConstantReading):
        raise InputError(f"--source {kind}: {UNSTATED}")
    try:
        source.read()
    except subprocess.TimeoutExpired as problem:
        raise InputError(f"--source {kind}: it takes longer than the {problem.timeout:g} s allowed.") from None
    except subprocess.CalledProcessError as problem:
        raise InputError(f"--source {kind}: the program ended with exit code {problem.returncode}.") from None
    except OSError as problem:
        raise InputError(f"--source {kind}: {problem.strerror}.") from None
    except ReadingError as problem:
        raise InputError(f"--source {kind}: {problem}") from None
    return source


def _folder(path: Path, sensor: str | None) -> Path:
    if sensor is None:
        raise InputError("--id: give the id of the sensor, or give its provisioned folder instead of the site file.")
    folder = path.parent / "devices" / sensor
    if not folder.is_dir():
        if sensor not in load_any_site(path).sensor_ids:
            raise InputError(f"--id {sensor}: {path} has no such sensor.")
        raise InputError(
            f"{folder}: this sensor is not provisioned yet. Provision it with: "
            f"cloakwork provision {shlex.quote(str(path))} --id {shlex.quote(sensor)}"
        )
    return folder


def _config(folder: Path) -> dict[str, Any]:
    try:
        found = loads((folder / "device.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{folder}: there is no device.json here. Give a folder that provision wrote.") from None
    return dict(found)


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
    row = site.sensor_ids.index(config["sensor"])
    place, weight = parse_source(at, site.physics.space)
    return float((site.physics.apply(sources(site.physics, [place], [weight])) + site.baselines)[row])
