"""The demonstrations: simulated people, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import (
    Demonstration,
    DemoProgress,
    SimulatedFlat,
    load_flat,
    load_office,
    sensors_of,
    this_morning,
    usual_port,
)
from cloakwork.demo.household import FURNITURE, SEATS, Household, Position, Staff, open_path

__all__ = [
    "FURNITURE",
    "SEATS",
    "DemoProgress",
    "Demonstration",
    "Household",
    "Position",
    "SimulatedFlat",
    "Staff",
    "load_flat",
    "load_office",
    "open_path",
    "sensors_of",
    "this_morning",
    "usual_port",
]
