"""Messages for Home Assistant: discovery of sensors and zones, and the states of zones."""

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cloakwork.sensor.wire import topic

if TYPE_CHECKING:  # a client of a broker needs no model, and no NumPy
    from collections.abc import Sequence

    from cloakwork.site import BitZone, Schedule, Zone

SHORTEST_EXPIRY_S = 60
WORKING = ["online", "spent", "bench"]  # states of a device without a problem
PEOPLE = "people-present"  # in place of a zone, as the names of alarms are
PHYSICS, CLAIM, AWAY = "physics-changed", "claim-at-risk", "sensors-away"
ALARMS = {PHYSICS: "Physics changed", CLAIM: "Claim at risk", AWAY: "Sensors away"}
MAX_REASONS = 10  # in one message: the shipped broker drops longer ones
EXPIRY_WINDOWS = 3  # windows without a message after which a value expires
# units that stand for one kind of quantity only
_DEVICE_CLASSES = {
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


def device_discovery(config: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Topics and payloads of the retained messages that announce a device and its problems, given its device.json."""
    site, sensor, unit = config["site"], config["sensor"], config["unit"]
    (numerator, denominator), schedule = config["step"], config["schedule"]
    status = topic(site, sensor, "status")
    reading: dict[str, Any] = {
        "name": f"{sensor} (noisy)",
        "entity_category": "diagnostic",  # offered to no thermostat: one noisy reading says little
        "suggested_display_precision": 1,
        "state_topic": topic(site, sensor, config["kind"]),
        "value_template": f"{{{{ value_json.value * {numerator / denominator!r} }}}}",
        "state_class": "measurement",
        "expire_after": expire_after(schedule["window_slots"], schedule["period_ms"]),
        "availability_topic": status,
        # a device that cannot measure sends a constant, which is no value of the sensor
        "availability_template": f"{{{{ 'online' if value_json.state in {WORKING} else 'offline' }}}}",
    }
    if unit:
        reading["unit_of_measurement"] = unit
    if unit in _DEVICE_CLASSES:
        reading["device_class"] = _DEVICE_CLASSES[unit]
    problem = {
        "name": f"{sensor} problem",
        "device_class": "problem",
        "entity_category": "diagnostic",
        "state_topic": status,
        "value_template": f"{{{{ 'OFF' if value_json.state in {WORKING} else 'ON' }}}}",
        "json_attributes_topic": status,
    }
    return [
        _discovery("sensor", site, sensor, reading),
        _discovery("binary_sensor", site, f"{sensor}_problem", problem),
    ]


def alarm_discovery(
    site: str, alarm: str, availability_topic: str, *, page_url: str | None = None
) -> tuple[str, bytes]:
    """Topic and payload of the retained message that announces one of the `ALARMS` of a site as a problem.

    `page_url` becomes the link of the site's device, for all its entities.
    """
    settings = {
        "name": ALARMS[alarm],
        "device_class": "problem",
        "entity_category": "diagnostic",
        "state_topic": zone_topic(site, alarm),
        "value_template": "{{ 'ON' if value_json.reasons else 'OFF' }}",
        "json_attributes_topic": zone_topic(site, alarm),
        "availability_topic": availability_topic,
    }
    return _discovery("binary_sensor", site, alarm, settings, page_url)


def alarm_state(reasons: "Sequence[str]") -> bytes:
    """Payload of the state of an alarm: its reasons, none of which holds a reading."""
    shown = [*reasons[:MAX_REASONS], *(["and others"] if len(reasons) > MAX_REASONS else [])]
    return json.dumps({"reasons": shown}, ensure_ascii=False).encode()


def zone_discovery(
    site: str, zone: "Zone | BitZone", schedule: "Schedule", availability_topic: str
) -> list[tuple[str, bytes]]:
    """Topics and payloads of the retained messages that announce a zone, as an occupancy sensor and as a probability.

    Automations can act on the probability: a light may go off below 10 %, and stay on in doubt.
    """
    common = _zone_settings(site, zone.id, schedule, availability_topic)
    occupancy = {
        "name": zone.label,
        "device_class": "occupancy",
        "value_template": "{{ 'ON' if value_json.occupied else 'OFF' }}",
        "json_attributes_topic": zone_topic(site, zone.id),
    }
    probability = {
        "name": f"{zone.label} probability",
        "icon": "mdi:account-question",
        "unit_of_measurement": "%",
        "state_class": "measurement",
        "suggested_display_precision": 0,
        "value_template": "{{ (100 * value_json.probability) | round(1) }}",
    }
    return [
        _discovery("binary_sensor", site, zone.id, common | occupancy),
        _discovery("sensor", site, f"{zone.id}_probability", common | probability),
    ]


def people_discovery(site: str, schedule: "Schedule", availability_topic: str) -> tuple[str, bytes]:
    """Topic and payload of the retained message that announces the most likely number of sources at a site."""
    settings = {
        "name": "People",
        "icon": "mdi:account-group",
        "state_class": "measurement",
        "value_template": "{{ value_json.count }}",
        "json_attributes_topic": zone_topic(site, PEOPLE),
    }
    return _discovery("sensor", site, PEOPLE, _zone_settings(site, PEOPLE, schedule, availability_topic) | settings)


def _zone_settings(site: str, zone_id: str, schedule: "Schedule", availability_topic: str) -> dict[str, Any]:
    return {
        "state_topic": zone_topic(site, zone_id),
        "expire_after": expire_after(schedule.window_slots, schedule.period_ms),
        "availability_topic": availability_topic,
    }


def zone_topic(site: str, zone_id: str) -> str:
    """The topic that the states of a zone are published on."""
    return f"cloakwork/zones/{site}/{zone_id}"


def zone_state(*, occupied: bool | None, probability: float | None, expected: float, time_ms: int) -> bytes:
    """Payload of the state of a zone at `time_ms` (Unix milliseconds)."""
    state = {
        "occupied": occupied,
        "probability": None if probability is None else round(probability, 3),
        "expected": round(expected, 3),
        "time": datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(state).encode()


def expire_after(window_slots: int, period_ms: int) -> int:
    """Seconds of silence after which a value expires; a device may spend its budget early in a window.

    >>> expire_after(60, 60_046)
    10808
    """
    return max(SHORTEST_EXPIRY_S, EXPIRY_WINDOWS * window_slots * period_ms // 1000)


def _discovery(
    component: str, site: str, name: str, settings: dict[str, Any], page_url: str | None = None
) -> tuple[str, bytes]:
    """Add what every discovery message has: its own id, the site as its device, and the origin."""
    own_id = f"cloakwork_{site}_{name}"
    common = {
        "unique_id": own_id,
        "device": {
            "identifiers": [f"cloakwork_{site}"],
            "name": f"Cloakwork {site}",
            "manufacturer": "Cloakwork",
            "model": "Private sensors",
            "sw_version": version("cloakwork"),
            **({} if page_url is None else {"configuration_url": page_url}),
        },
        "origin": {"name": "Cloakwork", "sw_version": version("cloakwork")},
    }
    discovery_topic = f"homeassistant/{component}/{re.sub(r'[^A-Za-z0-9_-]', '_', own_id)}/config"
    return discovery_topic, json.dumps(settings | common, ensure_ascii=False).encode()
