"""Everything one device needs, in one folder, and nothing about the others."""

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from cloakwork.errors import InputError
from cloakwork.keys import FIRST_SECOND, DeviceKind, load_keys, open_generation, wire_site
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import noise_table
from cloakwork.sensor.device import MOST_STEPS
from cloakwork.sensor.state import COPIES, State
from cloakwork.site import SHORTEST_MS, Plan, Schedule, make_schedule

LONGEST_MS = 86_400_000


@dataclass(frozen=True)
class Provisioned:
    """What was written: the folder, the device's generation, and the bytes of its configuration and its code."""

    folder: Path
    generation: int
    configuration: int
    code: int


def provision(
    plan: Plan,
    sensor: str,
    folder: Path,
    *,
    broker: BrokerAddress,
    keys: Path | None,
    unit: str = "",
    stated: bool = False,
    bench: bool = False,
    period: float | None = None,
) -> Provisioned:
    """Write the folder of one device, which must not exist yet.

    With `keys` its noise can be removed by whoever has that file; a new generation is opened there first. Without, it
    comes from the device's own generator and nobody can. `stated` says that the site file gives the step in which the
    hardware reads; without that the device takes simulated readings only. A `bench` device is for audits: it has a key
    and a site name of its own and no budget, and says so on the wire; it may read every `period` seconds, so that an
    audit is done sooner.
    """
    planned = plan.sensor(sensor)
    schedule = plan.schedule if period is None else _hurried(period, bench=bench)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} is there already: a device's folder is never written over. Stop that device and move its folder "
            "away, or give another with --out."
        )
    authority = None if broker.authority is None else _authority(broker.authority)
    kind = DeviceKind.BENCH if bench else DeviceKind.READING
    key, earlier = None, False
    if keys is None:
        generation = max(1, (int(time.time()) - FIRST_SECOND) // 60)
    else:
        generation, key = open_generation(keys, sensor, plan.digest, kind, site=plan.site)
        known = load_keys(keys).generations(sensor)
        earlier = any(one.kind is DeviceKind.READING and one.number < generation for one in known)
    fallback = round(Fraction(planned.baseline) / Fraction(planned.step))
    if abs(fallback) > MOST_STEPS:
        raise InputError(f"the baseline of {sensor} is more than {MOST_STEPS:,} steps: give a coarser resolution.")
    table = noise_table(planned.ratio)
    if table.digest != planned.table:
        raise InputError("the plan has other tables of noise than this version makes. Write it again.")
    config = {
        "v": 1,
        "site": wire_site(plan.site, kind),
        "sensor": sensor,
        "generation": generation,
        "plan": plan.digest,
        "kind": str(kind),
        "scope": plan.claim.scope,
        "stated": stated,
        "unit": unit,
        "step": list(planned.step.as_integer_ratio()),
        "fallback": fallback,
        "keyed": key is not None,
        "noise": {"digest": table.digest, "levels": [list(level) for level in plan.tables[planned.table].levels]},
        "schedule": asdict(schedule) | ({"allowed": 0} if bench else {}),
        "broker": {
            "host": broker.host,
            "port": broker.port,
            "tls": broker.tls,
            "user": broker.user,
            "password": broker.password,
            "ca": None if authority is None else "ca.pem",
        },
    }
    secret = {"device.json": json.dumps(config, indent=1).encode(), "noise.tab": table.cuts}
    # an earlier device of this sensor may have used the window that begins now
    blocked = plan.schedule.window_slots + 1 if earlier and not bench else 0
    secret |= dict.fromkeys(COPIES, State(generation, key, blocked=blocked).pack())
    if authority is not None:
        secret["ca.pem"] = authority
    code = _code()
    _write(folder, secret, code)
    return Provisioned(folder, generation, sum(map(len, secret.values())), sum(map(len, code.values())))


def _hurried(period: float, *, bench: bool) -> Schedule:
    if not bench:
        raise InputError("--period goes with --bench: how often a working device reads is in the site file.")
    if not SHORTEST_MS <= 1000 * period <= LONGEST_MS:
        raise InputError(f"--period {period}: give seconds from {SHORTEST_MS / 1000:g} to {LONGEST_MS / 1000:g}.")
    return make_schedule(window=period, allowed=1, period=period)


def _authority(path: Path) -> bytes:
    try:
        found = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror}.") from None
    if b"-----BEGIN CERTIFICATE-----" not in found:
        raise InputError(f"{path}: not a certificate in PEM form.")
    return found


def _code() -> dict[str, bytes]:
    """The device's programs, by the name that they have in its folder."""
    own = files("cloakwork.device").joinpath("board")
    found = {name: own.joinpath(name).read_bytes() for name in ("main.py", "measure.py", "README.md")}
    found["lib/cloakwork/__init__.py"] = b""
    for file in _modules():
        found[f"lib/cloakwork/sensor/{file.name}"] = file.read_bytes()
    return found


def _modules() -> list[Traversable]:
    return [file for file in files("cloakwork.sensor").iterdir() if file.name.endswith(".py")]


def _settle(folder: Path) -> None:
    """Make a new name in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(folder: Path, secret: dict[str, bytes], code: dict[str, bytes]) -> None:
    """Write all files, readable by their owner alone; the folder has its name only when it is whole."""
    target = folder.absolute()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    part.mkdir(mode=0o700)
    try:
        for name, data in (secret | code).items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            target.rmdir()
        part.rename(target)
        _settle(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
