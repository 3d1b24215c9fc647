"""The demonstrations: simulated people, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import (
    Demonstration,
    DemoProgress,
    SimulatedFlat,
    load_flat,
    load_office,
    residents_of,
    sensors_of,
    this_morning,
    usual_port,
)
from cloakwork.demo.household import FURNITURE, SEATS, Household, Position, Residents, Staff

__all__ = [
    "FURNITURE",
    "SEATS",
    "DemoProgress",
    "Demonstration",
    "Household",
    "Position",
    "Residents",
    "SimulatedFlat",
    "Staff",
    "load_flat",
    "load_office",
    "residents_of",
    "sensors_of",
    "this_morning",
    "usual_port",
]
