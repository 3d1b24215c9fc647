"""The sensor loop on a gateway or a small computer: read, cloak, send, keep while the broker is away."""

from cloakwork.device.agent import Agent
from cloakwork.device.sources import CommandSource, ConstantSource, FileSource, Source, as_fraction
from cloakwork.mqtt.sensor_discovery import discovery

__all__ = ["Agent", "CommandSource", "ConstantSource", "FileSource", "Source", "as_fraction", "discovery"]
