"""The plan of one device as a C header, for boards that run `device/c`, and its settings for ESPHome."""

import hashlib
import json
from typing import Any

from cloakwork.errors import InputError
from cloakwork.sensor import WORD_BYTES
from cloakwork.sensor.wire import write_status

VERSION = 1  # CW_VERSION of cloakwork.h
MOST_LEVELS, MOST_SHIFT = 8, 160
_SCHEDULE = "period_ms", "offset_ms", "late_ms", "clock_ms", "window_slots", "allowed", "block"


def plan_fields(config: dict[str, Any], cuts: bytes) -> dict[str, Any]:
    """The fields of a `cw_plan`, in its order, from a device.json and its noise table.

    `check` is a digest of the others: a header that was edited or damaged does not pass on the board.
    """
    step, step_shift = _binary("step", config["step"])
    resolution, resolution_shift = (0, 0) if config["resolution"] is None else _binary("step", config["resolution"])
    levels = config["noise"]["levels"]
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"the noise has {len(levels)} tables; boards in C hold at most {MOST_LEVELS}.", tables=len(levels)
        )
    numbers = {
        "version": VERSION,
        "generation": config["generation"],
        "bench": int(config["kind"] == "bench"),
        "together": int(config["scope"] == "network"),
        "keyed": int(config["keyed"]),
        "step": step,
        "step_shift": step_shift,
        "resolution": resolution,
        "resolution_shift": resolution_shift,
        "fallback": config["fallback"],
        "values": config["values"],
        **{name: config["schedule"][name] for name in _SCHEDULE},
        "levels": len(levels),
    }
    digest = bytes.fromhex(config["noise"]["digest"])
    names = {"site": config["site"], "sensor": config["sensor"]}
    head = b"cloakwork/v1/plan\0" + b"".join(bytes([len(name)]) + name.encode() for name in names.values())
    body = b"".join((number % (1 << 64)).to_bytes(8, "big") for number in numbers.values())
    rows = [
        [int.from_bytes(cuts[start + k : start + k + 4], "big") for k in range(0, WORD_BYTES, 4)]
        for start in range(0, len(cuts), WORD_BYTES)
    ]
    return {
        **names,
        **numbers,
        "level": levels,
        "cuts": rows,
        "noise_digest": digest,
        "check": hashlib.sha256(head + body + digest).digest(),
    }


def plan_header(config: dict[str, Any], cuts: bytes) -> bytes:
    """The text of plan.h. It holds no key: the state does, which never becomes a part of a program."""
    fields = plan_fields(config, cuts)
    rows = ",\n".join("    {" + ", ".join(f"0x{word:08x}u" for word in row) + "}" for row in fields.pop("cuts"))
    levels = ", ".join(f"{{INT64_C({factor}), {count}u}}" for factor, count in fields.pop("level"))
    lines = [f"    .{name} = {_literal(value)}," for name, value in fields.items()]
    return f"""/* The plan of {fields["site"]}/{fields["sensor"]}. Do not edit: the device would refuse it. */
#ifndef CLOAKWORK_PLAN_H
#define CLOAKWORK_PLAN_H
#include "cloakwork.h"
#if CW_VERSION != {VERSION}
#error "plan.h and cloakwork.h belong to different versions: use the files of one folder"
#endif
#define CW_TIME_HOST {json.dumps(config["time"]["host"])}
#define CW_TIME_PORT {config["time"]["port"]}

static const uint32_t CW_CUTS[][4] = {{
{rows}}};
static const cw_level CW_LEVEL[] = {{{levels}}};
static const cw_plan CW_PLAN = {{
{chr(10).join(lines)}
    .level = CW_LEVEL,
    .cuts = CW_CUTS,
}};
#endif
""".encode()


def esphome_package(config: dict[str, Any], certificates: bytes | None) -> bytes:
    """The part of an ESPHome configuration that belongs to this device: its broker, its names, and a quiet log."""
    broker, names = config["broker"], f"{config['site']}.{config['sensor']}.{config['generation']}"
    status = f"cloakwork/v1/{config['site']}/{config['sensor']}/status"
    offline = write_status("offline", 0, config["schedule"]["allowed"]).decode()
    settings = {
        "broker": broker["host"],
        "port": broker["port"],
        "username": broker["user"] or "",
        "password": broker["password"] or "",
        "client_id": names,
        "clean_session": True,
        "keepalive": "60s",
        "discovery": False,
        "log_topic": None,
        "birth_message": None,
        "will_message": {"topic": status, "payload": offline, "qos": 1, "retain": True},
    }
    if certificates is not None:
        settings["certificate_authority"] = certificates.decode()
    parts = {
        "external_components": [{"source": {"type": "local", "path": "components"}, "components": ["cloakwork"]}],
        "logger": {"level": "INFO"},
        "mqtt": settings,
    }
    # JSON is YAML; the names of the parts stand in lines of their own, to be read
    return "".join(f"{name}: {json.dumps(value, indent=1)}\n" for name, value in parts.items()).encode()


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bytes):
        return "{" + ", ".join(map(str, value)) + "}"
    return f"INT64_C({value})"


def _binary(name: str, ratio: list[int]) -> tuple[int, int]:
    """A fraction as a whole number and the power of two to divide it by: floats have no other denominators."""
    numerator, denominator = ratio
    shift = denominator.bit_length() - 1
    if not 0 < numerator < 1 << 63 or denominator != 1 << shift or shift > MOST_SHIFT:
        raise InputError(
            f"{name}={numerator}/{denominator}: boards in C hold steps from 2^-{MOST_SHIFT} to 2^62. Give another "
            "resolution.",
            step=ratio,
        )
    return numerator, shift
