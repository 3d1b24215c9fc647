"""`cloakwork keys`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cloakwork.cli.output import as_json, note, refuse_input, say, table
from cloakwork.keys import (
    Generation,
    KeyRing,
    export,
    load_keys,
    new_keys,
    revoke,
    rotate,
    save_export,
    save_new_keys,
)
from cloakwork.sensor.keystream import EPOCH
from cloakwork.site import load_site

SHORT = 12  # digits of a digest that a person compares


def run_new(site: Path, *, out: Path) -> None:
    """Make the keys of a site."""
    name = load_site(site).name
    refuse_input(out, site)
    save_new_keys(new_keys(name), out)
    note(f"wrote the keys of {name} to {out}")
    note(
        "Whoever has this file can take the noise off every reading of the site. Keep it where only the trusted party "
        "gets at it, never beside the readings, and keep a backup: without it nobody can."
    )


def run_list(keys: Path, *, json: bool) -> None:
    """Say which devices were provisioned, and how they stand."""
    ring = load_keys(keys)
    opened = [(sensor, one, _state(ring, sensor, one)) for sensor in ring.sensors for one in ring.generations(sensor)]
    if json:
        rows = [
            {
                "sensor": sensor,
                "generation": one.number,
                "kind": str(one.kind),
                "plan": one.plan,
                "made": _moment(one.made),
                "state": state,
                "revoked": None if one.revoked is None else _moment(one.revoked),
                "old_master": ring.has_old_master(one),
            }
            for sensor, one, state in opened
        ]
        as_json({"site": ring.site, "masters": len(ring.masters), "devices": rows})
        return
    if not opened:
        say(f"{ring.site}: no device was provisioned with these keys yet")
        return
    shown = [
        (sensor, str(one.number), str(one.kind), one.plan[:SHORT], _minute(one.made), _words(ring, one, state))
        for sensor, one, state in opened
    ]
    table(f"Devices of {ring.site}, times in UTC", ("sensor", "generation", "kind", "plan", "made", "state"), shown)


def run_export(keys: Path, sensor: str, *, out: Path) -> None:
    """Write what unveils one sensor."""
    refuse_input(out, keys)
    found = export(load_keys(keys), sensor)
    save_export(found, out)
    note(f"wrote the keys of {sensor}, generations {', '.join(str(one.generation) for one in found.keys)}, to {out}")
    note(f"Whoever has this file can take the noise off the readings of {sensor}, and of no other sensor.")


def run_rotate(keys: Path) -> None:
    """Change the master."""
    ring = rotate(keys)
    start = ring.masters[-1].start
    note(f"{keys}: a new master for generations from {start} on; the old ones are kept, for readings made before")
    again = [sensor for sensor in ring.sensors if any(ring.in_use(sensor, one) for one in ring.generations(sensor))]
    if again:
        say("Provision these again; until then they use a key of an old master: " + ", ".join(again))


def run_revoke(keys: Path, sensor: str) -> None:
    """Take back what a lost device was given."""
    before = {one.number for one in load_keys(keys).generations(sensor) if one.revoked is not None}
    ring = revoke(keys, sensor)
    marked = [one for one in ring.generations(sensor) if one.number not in before]
    if not marked:
        note(f"{sensor} was revoked already; nothing has changed")
        return
    numbers = ", ".join(str(one.number) for one in marked)
    note(f"revoked {sensor}, generations {numbers}, at {_moment(marked[0].revoked or 0)}; no later reading is unveiled")
    say("\n".join(_after_a_loss(sensor)))


def _after_a_loss(sensor: str) -> Iterator[str]:
    yield "What else to do:"
    yield f"- Remove the password of {sensor} at the broker: until then, whoever has the device can send in its name."
    yield f"- Provision a new device for {sensor}: it gets a new generation, and with it a new key."
    yield "- Export its keys again for those who have an export: theirs do not know of this."
    yield (
        "What a finder learns: a device keeps only its present key, so the noise of its last readings (at most "
        f"{EPOCH}) can be removed, and that of all earlier ones cannot."
    )


def _state(ring: KeyRing, sensor: str, one: Generation) -> str:
    if one.revoked is not None:
        return "revoked"
    return "in use" if ring.in_use(sensor, one) else "replaced"


def _words(ring: KeyRing, one: Generation, state: str) -> str:
    return "old master" if state == "in use" and ring.has_old_master(one) else state


def _minute(seconds: int) -> str:
    """As short as a table needs it."""
    return _moment(seconds)[:16].replace("T", " ")


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"  # a moment beyond any calendar
