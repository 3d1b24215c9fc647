"""The sensor loop on a gateway or a small computer: read, cloak, send, keep while the broker is away."""

from cloakwork.agent.agent import Agent
from cloakwork.agent.home_assistant import discovery
from cloakwork.agent.sources import CommandSource, ConstantSource, FileSource, Source, as_fraction

__all__ = ["Agent", "CommandSource", "ConstantSource", "FileSource", "Source", "as_fraction", "discovery"]
