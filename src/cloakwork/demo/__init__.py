"""The demonstration: simulated people in a flat, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import Demonstration, DemoProgress, SimulatedFlat, load_flat, this_morning, usual_port
from cloakwork.demo.household import FURNITURE, SEATS, Household, Position, open_path

__all__ = [
    "FURNITURE",
    "SEATS",
    "DemoProgress",
    "Demonstration",
    "Household",
    "Position",
    "SimulatedFlat",
    "load_flat",
    "open_path",
    "this_morning",
    "usual_port",
]
