"""`cloakwork provision`."""

import re
import shlex
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
    SiteFile,
    option,
    reads,
)
from cloakwork.cli.output import note, print_json, say, working
from cloakwork.cli.planned_noise import checked_plan, refuse_impossible
from cloakwork.device import TIME_SERVER, Provisioned, Target, check_device
from cloakwork.device import provision as provision_device
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, parse_broker
from cloakwork.site import BitSite, FrozenPlan, Site, load_any_site, plan_beside

FLASH = 64 * 1024


def provision(
    path: SiteFile,
    sensors: Annotated[
        list[str] | None, option("Id of a sensor; repeat it for several.", "--id", metavar="SENSOR")
    ] = None,
    every: Annotated[bool, option("All sensors of the site.", "--all")] = False,
    out: Annotated[
        Path | None, option("Folder to write; by default devices/SENSOR beside the site file.", "--out")
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
    if every:
        _check_new(folders)
    brokers = {
        sensor: parse_broker(
            broker.replace("{id}", sensor),
            password_file=password_file and Path(str(password_file).replace("{id}", sensor)),
            authority=ca,
        )
        for sensor in folders
    }
    made = []
    with working("provisioning", len(folders)) as progress:
        for sensor, folder in folders.items():  # before the first is written
            check_device(frozen, sensor, folder)
        for sensor, folder in folders.items():
            device = provision_device(
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
            made.append((sensor, device))
            progress(len(made))
            if not json:
                _say_written(site, sensor, device)
    if json:
        print_json(
            {
                "plan": frozen.digest,
                "forecast": frozen.forecast,
                "left_open": list(map(str, site.left_open)),
                "devices": [_described(sensor, device) for sensor, device in made],
            }
        )
        return
    _say_next(site, made, frozen, keyed=keys is not None, brokers=list(brokers.values()), target=target)


def _check_new(folders: dict[str, Path]) -> None:
    """Refuse folders that exist: they may be of another plan or broker."""
    old = [sensor for sensor, folder in folders.items() if folder.exists()]
    if old:
        others = " ".join(f"--id {sensor}" for sensor in folders if sensor not in old)
        raise InputError(
            f"{len(old)} of {len(folders)} sensors have a folder already, such as {folders[old[0]]}, and none is "
            "overwritten. Stop these devices and move their folders away, and all are written again"
            + (f"; or provision only the others: {others}" if others else ".")
        )


def _described(sensor: str, made: Provisioned) -> dict[str, object]:
    sizes = {"configuration_bytes": made.configuration, "code_bytes": made.code}
    return {"sensor": sensor, "folder": str(made.folder), "generation": made.generation, **sizes}


def _say_written(site: Site | BitSite, sensor: str, made: Provisioned) -> None:
    say(f"wrote {made.folder}: {made.configuration:,} bytes of configuration, {made.code:,} bytes of code")
    if isinstance(site, Site) and site.physics.floor and site.physics.sensor_positions is not None:
        x, y = site.physics.sensor_positions[site.sensor_ids.index(sensor)].tolist()
        note(f"{sensor} hangs at x = {x:g}, y = {y:g} m")
    if made.configuration > FLASH:
        note(f"the configuration is larger than {FLASH:,} bytes: a small board may not have room for it")


def _say_next(
    site: Site | BitSite,
    made: list[tuple[str, Provisioned]],
    frozen: FrozenPlan,
    *,
    keyed: bool,
    brokers: list[BrokerAddress],
    target: Target,
) -> None:
    sensor, device = made[0]
    resolution = site.resolution_of(sensor)
    if frozen.forecast is not None:
        note(f"expect of the map: {frozen.forecast.sentence}")
    for sentence in site.left_open:
        note(f"the guarantee leaves this open: {sentence}")
    if not keyed:
        note("without --keys the noise comes from the device's own generator, and no one can remove it")
    if any(broker.password is not None and not broker.tls for broker in brokers):
        note("with mqtt:// the password crosses the network in clear text; use mqtts:// with --ca")
    if any(broker.user is not None and broker.password is None for broker in brokers):
        note("--broker names a user, and there is no password: give --password-file")
    if len(brokers) > 1 and brokers[0].user is not None and len({broker.user for broker in brokers}) == 1:
        note(f"all devices are the user {brokers[0].user} at the broker; with {{id}} each has its own")
    after = "; then delete the folder here: it holds a key" if keyed else ""
    if target in {Target.C, Target.ESPHOME}:
        note(f"README.md in the folder says how to build it and how to store its first state{after}")
        return
    runs = f"cloakwork sensor {shlex.quote(str(device.folder))}"
    if resolution is None or target is not Target.MICROPYTHON:
        source = "simulated" if resolution is None else "command:PROGRAM"
        note(f"on a computer: {runs} --source {source}")
    else:
        note(f"on a computer: edit measure.py, then {runs}")
        note(f"on a board: edit measure.py, copy the folder onto it, import check, reset{after}")
        note("before it starts, check it at rest: give --check to cloakwork sensor, or run check.py in the folder")
