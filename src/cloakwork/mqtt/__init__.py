"""MQTT: broker addresses, the client that stays connected, and the messages for Home Assistant."""

from cloakwork.mqtt.address import BrokerAddress, parse_broker
from cloakwork.mqtt.home_assistant import expire_after, sensor_discovery, zone_discovery, zone_state, zone_topic

__all__ = [
    "BrokerAddress",
    "expire_after",
    "parse_broker",
    "sensor_discovery",
    "zone_discovery",
    "zone_state",
    "zone_topic",
]
