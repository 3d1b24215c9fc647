"""Home Assistant finds a sensor by itself: one retained message that says what it is and where it speaks."""

from typing import Any

from cloakwork.mqtt.home_assistant import announcement, expire_after
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
        "state_topic": topic(site, sensor, config["kind"]),
        "value_template": f"{{{{ value_json.value * {numerator / denominator!r} }}}}",
        "state_class": "measurement",
        "expire_after": expire_after(config["schedule"]["window_slots"], config["schedule"]["period_ms"]),
        "availability_topic": topic(site, sensor, "status"),
        "availability_template": "{{ 'offline' if value_json.state == 'offline' else 'online' }}",
    }
    if unit:
        told["unit_of_measurement"] = unit
    if unit in _CLASSES:
        told["device_class"] = _CLASSES[unit]
    return announcement("sensor", site, sensor, told)
