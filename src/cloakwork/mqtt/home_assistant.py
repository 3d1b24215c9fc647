"""What every message by which Home Assistant finds something by itself has in common."""

import json
import re
from typing import Any

SHORTEST_S = 60
WINDOWS = 3  # of silence, after which nothing is known any more


def announcement(kind: str, site: str, name: str, told: dict[str, Any]) -> tuple[str, bytes]:
    """Topic and payload of a retained message that makes `name` a `kind` (sensor, binary_sensor) of the site's device.

    `told` is what is particular to it, by Home Assistant's keys.
    """
    own = f"cloakwork_{site}_{name}"
    common = {
        "unique_id": own,
        "device": {"identifiers": [f"cloakwork_{site}"], "name": f"Cloakwork {site}", "manufacturer": "Cloakwork"},
        "origin": {"name": "Cloakwork"},
    }
    topic = f"homeassistant/{kind}/{re.sub(r'[^A-Za-z0-9_-]', '_', own)}/config"
    return topic, json.dumps(told | common, ensure_ascii=False).encode()


def expire_after(window_slots: int, period_ms: int) -> int:
    """Seconds of silence after which a value counts no more; a budget may be spent early in its window.

    >>> expire_after(60, 60_046)
    10808
    """
    return max(SHORTEST_S, WINDOWS * window_slots * period_ms // 1000)
