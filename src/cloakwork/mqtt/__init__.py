"""MQTT: broker addresses, the client that stays connected, and the messages for Home Assistant."""

from cloakwork._extras import optional_parts

with optional_parts():  # the client is paho's
    from cloakwork.mqtt.address import BrokerAddress, parse_broker, read_password
    from cloakwork.mqtt.client import KEEP_ALIVE, BrokerState, MqttClient
    from cloakwork.mqtt.connection import Connection, MqttMessage
    from cloakwork.mqtt.home_assistant import (
        ALARMS,
        AWAY,
        CLAIM,
        PEOPLE,
        PHYSICS,
        alarm_discovery,
        alarm_state,
        expire_after,
        people_discovery,
        probability_discovery,
        problem_discovery,
        sensor_discovery,
        zone_discovery,
        zone_state,
        zone_topic,
    )

__all__ = [
    "ALARMS",
    "AWAY",
    "CLAIM",
    "KEEP_ALIVE",
    "PEOPLE",
    "PHYSICS",
    "BrokerAddress",
    "BrokerState",
    "Connection",
    "MqttClient",
    "MqttMessage",
    "alarm_discovery",
    "alarm_state",
    "expire_after",
    "parse_broker",
    "people_discovery",
    "probability_discovery",
    "problem_discovery",
    "read_password",
    "sensor_discovery",
    "zone_discovery",
    "zone_state",
    "zone_topic",
]
