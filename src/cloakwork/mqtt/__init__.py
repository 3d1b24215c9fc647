"""MQTT: broker addresses, and Home Assistant's discovery messages."""
