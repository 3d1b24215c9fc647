"""Small device folders without a site, for tests of the code on a device."""

import json
from pathlib import Path
from typing import Any

from cloakwork.privacy import noise_table
from cloakwork.sensor.state import State

KEY = bytes(range(32))
SITE, SENSOR, GENERATION = "flat", "s07", 41


def config(**changed: Any) -> dict[str, Any]:
    """A device.json; `ratio` is the noise in steps, and the other arguments replace the defaults."""
    ratio = changed.pop("ratio", 2.5)
    schedule = {"period_ms": 100, "offset_ms": 40, "late_ms": 10, "window_slots": 10, "allowed": 4, "block": 1}
    schedule |= {"clock_ms": 50}
    schedule |= changed.pop("schedule", {})
    table = noise_table(ratio)
    levels = [[level.factor, len(level.cuts) // 16] for level in table.levels]
    return {
        "v": 1,
        "site": SITE,
        "sensor": SENSOR,
        "generation": GENERATION,
        "plan": "0" * 64,
        "kind": "reading",
        "together": True,
        "resolution": [1, 1],
        "unit": "°C",
        "step": [1, 4],
        "fallback": 80,
        "values": 0,
        "keyed": True,
        "noise": {"digest": table.digest, "levels": levels},
        "slow": None,
        "schedule": schedule,
        "broker": {"host": "localhost", "port": 1883, "tls": False, "user": None, "password": None, "ca": None},
        "time": {"host": "127.0.0.1", "port": 123},
    } | changed


def make_folder(path: Path, **changed: Any) -> dict[str, Any]:
    """Write a device folder; returns its device.json."""
    ratio = changed.get("ratio", 2.5)
    device_config = config(**changed)
    path.mkdir(parents=True, exist_ok=True)
    (path / "device.json").write_text(json.dumps(device_config))
    (path / "noise.tab").write_bytes(noise_table(ratio).cuts)
    for name, data in first_state(device_config).items():
        (path / name).write_bytes(data)
    return device_config


def first_state(device_config: dict[str, Any]) -> dict[str, bytes]:
    """Both copies of the state of a new device."""
    key = KEY if device_config["keyed"] else None
    packed = State(device_config["site"], device_config["sensor"], device_config["generation"], key).pack()
    return {"state.0": packed, "state.1": packed}
