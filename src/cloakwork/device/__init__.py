"""Devices: provisioning their folders, the gateway agent that runs one on a computer, and the board template."""

from cloakwork.device.agent import Agent, CommandReading, ConstantReading, FileReading, ReadingSource, as_fraction
from cloakwork.device.provision import Provisioned, provision

__all__ = [
    "Agent",
    "CommandReading",
    "ConstantReading",
    "FileReading",
    "Provisioned",
    "ReadingSource",
    "as_fraction",
    "provision",
]
