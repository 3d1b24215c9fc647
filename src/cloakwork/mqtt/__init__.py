"""MQTT: broker addresses, the client that stays connected, messages for Home Assistant. Names load on first use."""

import lazy_loader

from cloakwork._extras import optional_parts

with optional_parts():
    import paho.mqtt.client  # noqa: F401 - the client is paho's

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
