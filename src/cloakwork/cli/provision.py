"""`cloakwork provision`."""

import shlex
from pathlib import Path

from cloakwork.cli.output import as_json, note, say
from cloakwork.device import provision
from cloakwork.errors import InputError
from cloakwork.mqtt import parse_broker
from cloakwork.site import load_plan, load_site, plan_beside

FLASH = 64 * 1024


def run_provision(
    path: Path,
    sensor: str,
    *,
    out: Path | None,
    keys: Path | None,
    plan: Path | None,
    broker: str,
    password_file: Path | None,
    ca: Path | None,
    bench: bool,
    period: float | None,
    json: bool,
) -> None:
    """Write the folder of one device."""
    site = load_site(path)
    file = plan or plan_beside(path)
    if not file.exists():
        raise InputError(
            f"{file}: there is no frozen plan yet. Write it with: "
            f"cloakwork plan {shlex.quote(str(path))} --out {shlex.quote(str(file))}"
        )
    frozen = load_plan(file)
    frozen.cloak(site, file=file)  # refuses a plan of another site, or of this one before it changed
    folder = out or path.parent / "devices" / (f"{sensor}-bench" if bench else sensor)
    reached = parse_broker(broker, password_file=password_file, authority=ca)
    made = provision(
        frozen,
        sensor,
        folder,
        broker=reached,
        keys=keys,
        unit=site.unit,
        stated=site.spec.privacy.resolution is not None,
        bench=bench,
        period=period,
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
    if made.configuration > FLASH:
        note(f"the configuration is larger than {FLASH:,} bytes: a small board may not have room for it")
    if site.spec.privacy.resolution is None:
        note(
            "the site file does not say in which steps the hardware reads (resolution under [privacy]), so this device "
            "takes simulated readings only"
        )
    if keys is None:
        note("without --keys the noise comes from the device's own generator, and nobody can remove it")
    if reached.password is not None and not reached.tls:
        note("with mqtt:// the password goes over the network in clear; use mqtts:// with --ca")
    source = "simulated" if site.spec.privacy.resolution is None else "command:./read.sh"
    note(f"on a computer: cloakwork sensor {shlex.quote(str(made.folder))} --source {source}")
    if site.spec.privacy.resolution is not None:
        after = "" if keys is None else "; then delete the folder here: it holds a key"
        note(f"on a board: edit measure.py, copy the folder onto it, reset{after}")
