"""MQTT: broker addresses, the client that stays connected, and the messages for Home Assistant."""

from cloakwork.mqtt.address import BrokerAddress, parse_broker
from cloakwork.mqtt.client import KEEP_ALIVE, BrokerState, MqttClient
from cloakwork.mqtt.connection import Connection, MqttMessage
from cloakwork.mqtt.home_assistant import (
    PEOPLE,
    expire_after,
    in_use_state,
    in_use_topic,
    people_discovery,
    physics_discovery,
    physics_topic,
    probability_discovery,
    problem_discovery,
    sensor_discovery,
    zone_discovery,
    zone_state,
    zone_topic,
)

__all__ = [
    "KEEP_ALIVE",
    "PEOPLE",
    "BrokerAddress",
    "BrokerState",
    "Connection",
    "MqttClient",
    "MqttMessage",
    "expire_after",
    "in_use_state",
    "in_use_topic",
    "parse_broker",
    "people_discovery",
    "physics_discovery",
    "physics_topic",
    "probability_discovery",
    "problem_discovery",
    "sensor_discovery",
    "zone_discovery",
    "zone_state",
    "zone_topic",
]
