"""`cloakwork provision`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import Authority, BrokerUrl, Json, PasswordFile, PlanFile, SensorId, SiteFile
from cloakwork.cli.output import as_json, note, say
from cloakwork.device import TIME_SERVER, Target
from cloakwork.device import provision as provision_device
from cloakwork.errors import InputError
from cloakwork.mqtt import parse_broker
from cloakwork.physics import FloorPlan
from cloakwork.site import Site, load_plan, load_site, plan_beside

FLASH = 64 * 1024


def provision(
    path: SiteFile,
    sensor: SensorId,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write; by default devices/ID beside the site file.")
    ] = None,
    keys: Annotated[Path | None, typer.Option("--keys", help="Key file: its holder can remove the noise.")] = None,
    plan: PlanFile = None,
    broker: BrokerUrl = "mqtt://localhost",
    password_file: PasswordFile = None,
    ca: Authority = None,
    time_server: Annotated[
        str, typer.Option(metavar="HOST", help="Time server of the device, the same for all of a site.")
    ] = TIME_SERVER,
    bench: Annotated[bool, typer.Option("--bench", help="For audits: own key and site name, no budget.")] = False,
    period: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Reading period of a --bench device, if not as planned.")
    ] = None,
    target: Annotated[Target, typer.Option(help="Program to write for it; for a gateway, none.")] = Target.MICROPYTHON,
    json: Json = False,
) -> None:
    """Write the folder of one device."""
    site = load_site(path)
    file = plan or plan_beside(path)
    if not file.exists():
        raise InputError(
            f"{file}: there is no frozen plan yet. Write one with: "
            f"cloakwork plan {shlex.quote(str(path))} --out {shlex.quote(str(file))}"
        )
    frozen = load_plan(file)
    frozen.cloak(site, file=file)  # refuses a plan of another site, or of this one before it changed
    folder = out or path.parent / "devices" / (f"{sensor}-bench" if bench else sensor)
    reached = parse_broker(broker, password_file=password_file, authority=ca)
    resolution = site.resolution_of(sensor)
    made = provision_device(
        frozen,
        sensor,
        folder,
        broker=reached,
        keys=keys,
        unit="" if sensor in site.binary_ids else site.unit,
        resolution=resolution,
        bench=bench,
        period=period,
        time_server=time_server,
        target=target,
    )
    if json:
        as_json(
            {
                "folder": str(made.folder),
                "generation": made.generation,
                "plan": frozen.digest,
                "configuration_bytes": made.configuration,
                "code_bytes": made.code,
            }
        )
        return
    say(f"wrote {made.folder}: {made.configuration:,} bytes of configuration, {made.code:,} bytes of code")
    if isinstance(site.physics, FloorPlan) and sensor in site.sensor_ids:
        x, y = site.physics.sensor_positions[site.sensor_ids.index(sensor)].tolist()
        note(f"{sensor} hangs at x = {x:g}, y = {y:g} m")
    if made.configuration > FLASH:
        note(f"the configuration is larger than {FLASH:,} bytes: a small board may not have room for it")
    if resolution is None:
        note(
            "the site file does not state the step of the hardware (resolution under [privacy]), so this device "
            "accepts simulated readings only"
        )
    if keys is None:
        note("without --keys the noise comes from the device's own generator, and no one can remove it")
    if reached.password is not None and not reached.tls:
        note("with mqtt:// the password crosses the network in clear text; use mqtts:// with --ca")
    after = "" if keys is None else "; then delete the folder here: it holds a key"
    if target in {Target.C, Target.ESPHOME}:
        note(f"README.md in the folder says how to build it and how to store its first state{after}")
        return
    runs = f"cloakwork sensor {shlex.quote(str(made.folder))}"
    if resolution is None or target is not Target.MICROPYTHON:
        source = "simulated" if resolution is None else "command:PROGRAM"
        note(f"on a computer: {runs} --source {source}")
    else:
        note(f"on a computer: edit measure.py, then {runs}")
        note(f"on a board: edit measure.py, copy the folder onto it, import check, reset{after}")
        _advise_a_check(site)


def _advise_a_check(site: Site) -> None:
    if site.spec.privacy.design != "shared":  # a check looks at one sensor
        note("before it starts, check it at rest: give --check to cloakwork sensor, or run check.py in the folder")
