"""Provisioning: one folder with all that a device needs, and nothing about the other devices."""

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

from cloakwork._files import new_part, sync_folder
from cloakwork.device.agent import parse_time_server
from cloakwork.device.c_plan import esphome_package, plan_header
from cloakwork.errors import InputError
from cloakwork.keys import FIRST_SECOND, PRIVATE, DeviceKind, load_keys, open_generation, wire_site
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import NoiseTable, first_offset
from cloakwork.sensor.device import MAX_STEPS
from cloakwork.sensor.state import COPIES, State
from cloakwork.site import SHORTEST_MS, BitPlan, Plan, make_schedule

LONGEST_MS = 86_400_000
TIME_SERVER = "pool.ntp.org"
NVS = b"key,type,encoding,value\ncloakwork,namespace,,\nstate.0,file,binary,state.0\nstate.1,file,binary,state.1\n"
_BOARD = "main.py", "measure.py", "check.py", "README.md"
_C, _C_EXAMPLE = ("cloakwork.h", "cloakwork.c"), ("main.c", "Makefile", "README.md")
_ESPHOME = "__init__.py", "sensor.py", "cloakwork_sensor.h", "cloakwork_sensor.cpp"
_Files = dict[str, bytes]


class Target(StrEnum):
    """The program that runs a device: Python on a board or a computer, the gateway agent, C, or C inside ESPHome."""

    MICROPYTHON = "micropython"
    GATEWAY = "gateway"
    C = "c"
    ESPHOME = "esphome"


@dataclass(frozen=True)
class Provisioned:
    """A folder that was written, the device's generation, and the bytes of its configuration and its code."""

    folder: Path
    generation: int
    configuration: int
    code: int


def check_device(plan: Plan | BitPlan, sensor: str, folder: Path) -> None:
    """Refuse a sensor that the plan does not have, one whose baseline no device can send, and a folder in use."""
    steps = plan.noise(sensor).fallback
    if abs(steps) > MAX_STEPS:
        raise InputError(
            f"the baseline of {sensor} is more than {MAX_STEPS:,} steps: give a coarser resolution.",
            sensor=sensor,
            steps=steps,
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists already, and a device's folder is never overwritten. Stop that device and move its "
            "folder away, or give another folder.",
            path=str(folder),
        )


def provision(
    plan: Plan | BitPlan,
    sensor: str,
    folder: Path,
    *,
    broker: BrokerAddress,
    keys: Path | None,
    unit: str = "",
    resolution: float | None = None,
    bench: bool = False,
    period: float | None = None,
    time_server: str = TIME_SERVER,
    target: Target = Target.MICROPYTHON,
) -> Provisioned:
    """Write the folder of one device, which must not exist yet.

    Parameters
    ----------
    keys
        A new generation is opened in this key file, and anyone with the file can remove the device's noise. Without
        it the noise comes from the device's own generator, and no one can.
    resolution
        The step of the hardware that the plan covers; without it the device takes simulated readings only.
    bench
        Whether the device is for audits: it has a key and a site name of its own, no budget and no slow offset, since
        an audit is of the fresh noise of single readings. It says so on the wire.
    period
        Seconds between two readings of a bench device, so that an audit ends sooner.
    time_server
        `host` or `host:port` that tells the device the time by SNTP. All devices of a site should ask the same one.
    target
        The program that the folder is for. A gateway needs none; a board in C gets its plan as a header.
    """
    check_device(plan, sensor, folder)
    noise = plan.noise(sensor)
    slow = None if bench else noise.slow
    certificates = None if broker.authority is None else _read_certificates(broker.authority)
    kind = DeviceKind.BENCH if bench else DeviceKind.READING
    config: dict[str, Any] = {
        "v": 1,
        "site": wire_site(plan.site, kind),
        "sensor": sensor,
        "generation": 0,  # known once it is open
        "plan": plan.digest,
        "kind": str(kind),
        "together": plan.together,
        "resolution": None if resolution is None else list(resolution.as_integer_ratio()),
        "noise_floor": noise.noise_floor,
        "unit": unit,
        "step": list(noise.step.as_integer_ratio()),
        "fallback": noise.fallback,
        "values": noise.values,
        "keyed": keys is not None,
        "noise": _described(noise.table),
        "slow": None,
        "schedule": _schedule(plan, period, bench=bench),
        "broker": {
            "host": broker.host,
            "port": broker.port,
            "tls": broker.tls,
            "user": broker.user,
            "password": broker.password,
            "ca": None if certificates is None else "ca.pem",
        },
        "time": parse_time_server(time_server),
    }
    tables = {"noise.tab": noise.table.cuts}
    if slow is not None:
        [table] = slow.tables()
        config["slow"] = _described(table) | {"renew": slow.renew, "carry": slow.carry}
        tables["slow.tab"] = table.cuts
    _files(target, config, tables, certificates)  # refuses what a board cannot hold, before a generation is open
    key, blocked = None, 0
    config["generation"] = max(1, (int(time.time()) - FIRST_SECOND) // 60)
    if keys is not None:
        opened = open_generation(keys, sensor, plan.digest, kind, site=plan.site)
        config["generation"], key = opened.number, opened.key
        earlier = load_keys(keys).generations(sensor)
        if not bench and any(known.kind is kind and known.number < opened.number for known in earlier):
            blocked = plan.schedule.window_slots + 1  # an earlier device may have used the window that begins now
    configuration, code = _files(target, config, tables, certificates)
    offset = None if slow is None else first_offset(slow, key)
    state = State(config["site"], sensor, config["generation"], key, blocked=blocked, offset=offset)
    configuration |= dict.fromkeys(COPIES, state.pack())
    if certificates is not None:
        configuration["ca.pem"] = certificates
    _write(folder, configuration | code)
    return Provisioned(
        folder, config["generation"], sum(map(len, configuration.values())), sum(map(len, code.values()))
    )


def _described(table: NoiseTable) -> dict[str, Any]:
    return {"digest": table.digest, "levels": [[level.factor, level.count] for level in table.levels]}


def _schedule(plan: Plan | BitPlan, period: float | None, *, bench: bool) -> dict[str, Any]:
    """The times at which a device measures; a bench device has no budget."""
    if period is None:
        return asdict(plan.schedule) | ({"allowed": 0} if bench else {})
    if not bench:
        raise InputError(
            f"period={period:g}: only a bench device takes a period. The site file says how often other devices read.",
            period=period,
        )
    if not SHORTEST_MS <= 1000 * period <= LONGEST_MS:
        raise InputError(
            f"period={period:g}: give seconds from {SHORTEST_MS / 1000:g} to {LONGEST_MS / 1000:g}.", period=period
        )
    return asdict(make_schedule(window=period, allowed=1, period=period)) | {"allowed": 0}


def _read_certificates(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror}.", path=str(path)) from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise InputError(f"{path}: not a certificate in PEM form.", path=str(path))
    return content


def _files(target: Target, config: dict[str, Any], tables: _Files, certificates: bytes | None) -> tuple[_Files, _Files]:
    """The configuration without the state, and the programs, by their names in the folder."""
    configuration = {"device.json": json.dumps(config, indent=1).encode(), **tables}
    if target is Target.GATEWAY:
        return configuration, {}
    if target is Target.MICROPYTHON:
        code = _template("board", *_BOARD)
        if config["values"]:
            code["measure.py"] = _template("board", "measure_bit.py")["measure_bit.py"]
        code["lib/cloakwork/__init__.py"] = b""
        library = (file for file in files("cloakwork.sensor").iterdir() if file.name.endswith(".py"))
        own = {f"lib/cloakwork/sensor/{file.name}": file.read_bytes() for file in library if file.name != "__main__.py"}
        return configuration, code | own
    if config["slow"] is not None:
        raise InputError("a device in C has no slow offset: use another target, or leave out [privacy.stay].")
    header, code = plan_header(config, tables["noise.tab"]), _template("c", *_C)
    if target is Target.C:
        return {"plan.h": header, "nvs.csv": NVS}, code | _template("c", *_C_EXAMPLE)
    if config["broker"]["tls"] and certificates is None:
        raise InputError(
            "ESPHome encrypts the link to a broker only with a certificate to trust, and would send the password "
            "in clear text without one: give the certificate of the broker's authority."
        )
    component = code | _template("esphome/cloakwork", *_ESPHOME) | {"plan.h": header}
    code = {f"components/cloakwork/{name}": data for name, data in component.items()}
    package = {"cloakwork.yaml": esphome_package(config, certificates), "nvs.csv": NVS}
    return package, code | _template("esphome", "device.yaml", "README.md")


def _template(folder: str, *names: str) -> _Files:
    template = files("cloakwork.device").joinpath(folder)
    return {name: template.joinpath(name).read_bytes() for name in names}


def _write(folder: Path, contents: _Files) -> None:
    """Write all files, readable by their owner alone; the folder gets its name only when it is complete."""
    target = folder.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    part = new_part(target)
    part.mkdir(mode=0o700)
    try:
        for name, data in contents.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            target.rmdir()
        part.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
