"""`cloakwork provision`."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import (
    KEYS,
    RARE,
    Authority,
    BrokerUrl,
    Json,
    PasswordFile,
    PlanFile,
    PlannedSite,
    option,
    reads,
)
from cloakwork.cli.output import note, print_json, working
from cloakwork.cli.planned_noise import checked_plan, refuse_impossible
from cloakwork.cli.report import show
from cloakwork.device import TIME_SERVER, Provisioned, Target, check_device
from cloakwork.device import provision as provision_device
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, parse_broker
from cloakwork.site import BitSite, FrozenPlan, Site, load_any_site, plan_beside


def provision(
    path: PlannedSite,
    sensors: Annotated[
        list[str] | None, option("Id of a sensor; repeat it for several.", "--id", metavar="SENSOR")
    ] = None,
    every: Annotated[bool, option("All sensors of the site.", "--all")] = False,
    out: Annotated[
        Path | None, option("Folder to write; by default devices/SENSOR next to the site file.", "--out")
    ] = None,
    keys: Annotated[
        Path | None, option("Key file: its holder can remove the noise.", "--keys", callback=reads(KEYS))
    ] = None,
    plan: PlanFile = None,
    broker: BrokerUrl = "mqtt://localhost",
    password_file: PasswordFile = None,
    ca: Authority = None,
    time_server: Annotated[
        str, option("Time server of the device, the same for all of a site.", metavar="HOST", panel=RARE)
    ] = TIME_SERVER,
    bench: Annotated[bool, option("For audits: own key and site name, no budget.", "--bench", panel=RARE)] = False,
    period: Annotated[
        float | None, option("Reading period of a --bench device, if not as planned.", metavar="SECONDS", panel=RARE)
    ] = None,
    target: Annotated[Target, option("Program to write for it; for a gateway, none.")] = Target.MICROPYTHON,
    json: Json = False,
) -> None:
    """Write the folders of devices. In --broker and --password-file, {id} stands for the id of each sensor."""
    site = load_any_site(path)
    refuse_impossible(site, path)
    frozen = checked_plan(site, path, plan or plan_beside(path))
    if every == bool(sensors):
        raise InputError(f"give{' either' if every else ''} --id SENSOR, which may be repeated, or --all.")
    if out is not None and (every or len(sensors or ()) > 1):
        raise InputError(f"--out {out} is the folder of one device: give one --id, or leave it out.")
    if re.search(r"[{}]", broker.replace("{id}", "")):
        raise InputError("--broker: only {id} stands for something, the id of each sensor.")
    folders = {
        sensor: out or path.parent / "devices" / (f"{sensor}-bench" if bench else sensor)
        for sensor in (frozen.ids if every else sensors or ())
    }
    brokers = {
        sensor: parse_broker(
            broker.replace("{id}", sensor),
            password_file=password_file and Path(str(password_file).replace("{id}", sensor)),
            authority=ca,
        )
        for sensor in folders
    }
    made: dict[str, Provisioned] = {}
    with working("provisioning", len(folders)) as progress:
        for sensor, folder in folders.items():  # before the first is written
            check_device(frozen, sensor, folder)
        for sensor, folder in folders.items():
            made[sensor] = provision_device(
                frozen,
                sensor,
                folder,
                broker=brokers[sensor],
                keys=keys,
                unit=site.unit,
                resolution=site.resolution_of(sensor),
                bench=bench,
                period=period,
                time_server=time_server,
                target=target,
            )
            progress(len(made))
    if json:
        devices = [{"sensor": sensor} | asdict(device) for sensor, device in made.items()]
        left_open = list(map(str, site.left_open))
        values = {"plan": frozen.digest, "forecast": frozen.forecast, "left_open": left_open, "devices": devices}
        print_json(values)
        return
    at = site.physics.sensor_positions if isinstance(site, Site) and site.physics.floor else None
    places = {} if at is None else dict(zip(site.sensor_ids, at.tolist(), strict=True))
    for sensor, device in made.items():
        sizes = f"{device.configuration:,} bytes of configuration, {device.code:,} bytes of code"
        where = "; {} hangs at x = {:g}, y = {:g} m".format(sensor, *places[sensor]) if places else ""
        show(f"wrote {device.folder}: {sizes}{where}")
    _note_next(site, frozen, made, keyed=keys is not None, brokers=list(brokers.values()), target=target)


def _note_next(
    site: Site | BitSite,
    frozen: FrozenPlan,
    made: Mapping[str, Provisioned],
    *,
    keyed: bool,
    brokers: list[BrokerAddress],
    target: Target,
) -> None:
    """Note what is left open, what is unsafe, and what comes next."""
    if frozen.forecast is not None:
        note(f"expect of the map: {frozen.forecast.sentence}")
    for sentence in site.left_open:
        note(f"the guarantee leaves this open: {sentence}")
    if not keyed:
        note("without --keys the noise comes from the device's own generator, and no one can remove it")
    if any(broker.password is not None and not broker.tls for broker in brokers):
        note("with mqtt:// the password crosses the network in clear text; use mqtts:// with --ca")
    after = "; then delete the folder here: it holds a key" if keyed else ""
    sensor, device = next(iter(made.items()))
    resolution, runs = site.resolution_of(sensor), f"cloakwork sensor {shlex.quote(str(device.folder))}"
    if target in {Target.C, Target.ESPHOME}:
        note(f"README.md in the folder says how to build it and how to store its first state{after}")
    elif resolution is None or target is not Target.MICROPYTHON:
        note(f"on a computer: {runs} --source {'simulated' if resolution is None else 'command:PROGRAM'}")
    else:
        note(f"on a computer: edit measure.py, then {runs}")
        note(f"on a board: edit measure.py, copy the folder onto it, import check, reset{after}")
        note("before it starts, check it at rest: give --check to cloakwork sensor, or run check.py in the folder")
