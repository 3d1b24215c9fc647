"""The demonstration: simulated people in a flat, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import Demonstration, DemoProgress, load_flat, this_morning, usual_port
from cloakwork.demo.household import FURNITURE, SEATS, Household
from cloakwork.demo.recorded import INFRARED, POSITIONS, Infrared, Position, data_file, missing_text, read_infrared
from cloakwork.demo.simulated_flat import SimulatedFlat
from cloakwork.demo.walks import Movement, open_path, recorded, staying, walking

__all__ = [
    "FURNITURE",
    "INFRARED",
    "POSITIONS",
    "SEATS",
    "DemoProgress",
    "Demonstration",
    "Household",
    "Infrared",
    "Movement",
    "Position",
    "SimulatedFlat",
    "data_file",
    "load_flat",
    "missing_text",
    "open_path",
    "read_infrared",
    "recorded",
    "staying",
    "this_morning",
    "usual_port",
    "walking",
]
