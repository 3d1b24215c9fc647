"""`cloakwork keys new | list | export | revoke`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import cloakwork.keys as key_store
from cloakwork.cli.arguments import Json, KeyFile, SensorId, SiteFile, option, writes
from cloakwork.cli.output import note, print_json
from cloakwork.cli.report import Table, show
from cloakwork.keys import Generation, KeyRing, load_keys
from cloakwork.sensor.keystream import EPOCH
from cloakwork.site import load_any_site

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
SHORT = 12  # digits of a digest that a person compares


@keys.command()
def new(
    site: SiteFile,
    out: Annotated[Path, option("Key file to write.", "--out", callback=writes())] = Path("keys.json"),
) -> None:
    """Create the keys of a site."""
    name = load_any_site(site).name
    key_store.save_keys(key_store.new_keys(name), out)
    note(f"wrote the keys of {name} to {out}")
    note(
        "Anyone with this file can remove the noise from every reading of the site. Store it where only the trusted "
        "party has access, never with the readings, and back it up each time you provision: only this file has a "
        "device's key."
    )


@keys.command("list")
def list_devices(file: KeyFile, json: Json = False) -> None:
    """List the provisioned devices and their state. Never shows a key."""
    ring = load_keys(file)
    devices: list[dict[str, Any]] = [
        {
            "sensor": sensor,
            "generation": key.number,
            "kind": str(key.kind),
            "plan": key.plan,
            "made": _iso_time(key.made),
            "state": _state(ring, sensor, key),
            "revoked": None if key.revoked is None else _iso_time(key.revoked),
        }
        for sensor in ring.sensors
        for key in ring.generations(sensor)
    ]
    if json:
        print_json({"site": ring.site, "devices": devices})
    elif devices:
        short = (
            {**each, "plan": each["plan"][:SHORT], "made": each["made"][:16].replace("T", " ")} for each in devices
        )
        heads = ("sensor", "generation", "kind", "plan", "made", "state")
        rows = ([str(each[head]) for head in heads] for each in short)
        show(f"Devices of {ring.site}, times in UTC", Table.of(heads, rows))
    else:
        show(f"{ring.site}: no device has been provisioned with these keys yet")


@keys.command()
def export(
    file: KeyFile, sensor: SensorId, out: Annotated[Path, option("File to write.", "--out", callback=writes())]
) -> None:
    """Write the keys that unveil one sensor, and no other."""
    exported = load_keys(file).export(sensor)
    key_store.save_keys(exported, out)
    numbers = ", ".join(str(key.number) for key in exported.generations(sensor))
    note(f"wrote the keys of {sensor}, generations {numbers}, to {out}")
    note(f"Anyone with this file can remove the noise from the readings of {sensor}, and of no other sensor.")


@keys.command()
def revoke(file: KeyFile, sensor: SensorId) -> None:
    """Mark a lost or stolen device: its readings from now on are not unveiled."""
    before = {key.number for key in load_keys(file).generations(sensor) if key.revoked is not None}
    ring = key_store.revoke(file, sensor)
    revoked = [key for key in ring.generations(sensor) if key.number not in before]
    if not revoked:
        note(f"{sensor} was revoked already; nothing has changed")
        return
    numbers = ", ".join(str(key.number) for key in revoked)
    moment = _iso_time(revoked[0].revoked or 0)
    note(f"revoked {sensor}, generations {numbers}, at {moment}; no later reading is unveiled")
    show(
        "Next steps:\n"
        f"- Remove the password of {sensor} at the broker: until then, anyone with the device can send in its name.\n"
        f"- Provision a new device for {sensor}: it gets a new generation, and with it a new key.\n"
        "- Export its keys again for everyone who has an export: theirs do not know of the loss.\n"
        f"A finder can remove the noise of at most the last {EPOCH} readings: a device keeps only its present key."
    )


def _state(ring: KeyRing, sensor: str, key: Generation) -> str:
    if key.revoked is not None:
        return "revoked"
    return "in use" if ring.in_use(sensor, key) else "replaced"


def _iso_time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"  # beyond any calendar
