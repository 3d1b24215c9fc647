"""Home Assistant finds a sensor by itself: one retained message that says what it is and where it speaks."""

import json
import re
from typing import Any

from cloakwork.sensor.wire import topic

# units that stand for one kind of quantity only
_CLASSES = {
    "°C": "temperature",
    "°F": "temperature",
    "K": "temperature",
    "lx": "illuminance",
    "Pa": "pressure",
    "hPa": "pressure",
    "mbar": "pressure",
    "dB": "sound_pressure",
    "dBA": "sound_pressure",
    "W/m²": "irradiance",
    "mm/s": "speed",
    "m/s": "speed",
}


def discovery(config: dict[str, Any]) -> tuple[str, bytes]:
    """Topic and payload for a device, from its device.json."""
    site, sensor = config["site"], config["sensor"]
    numerator, denominator = config["step"]
    unit = config["unit"]
    told: dict[str, Any] = {
        "name": sensor,
        "unique_id": f"cloakwork_{site}_{sensor}",
        "state_topic": topic(site, sensor, config["kind"]),
        "value_template": f"{{{{ value_json.value * {numerator / denominator!r} }}}}",
        "state_class": "measurement",
        "expire_after": max(60, 3 * config["schedule"]["window_slots"] * config["schedule"]["period_ms"] // 1000),
        "availability_topic": topic(site, sensor, "status"),
        "availability_template": "{{ 'offline' if value_json.state == 'offline' else 'online' }}",
        "device": {"identifiers": [f"cloakwork_{site}"], "name": f"Cloakwork {site}", "manufacturer": "Cloakwork"},
        "origin": {"name": "Cloakwork"},
    }
    if unit:
        told["unit_of_measurement"] = unit
    if unit in _CLASSES:
        told["device_class"] = _CLASSES[unit]
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"cloakwork_{site}_{sensor}")
    return f"homeassistant/sensor/{name}/config", json.dumps(told, ensure_ascii=False).encode()
