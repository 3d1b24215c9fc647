"""The demonstration: simulated people in a flat, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import Demonstration, DemoProgress, load_flat, usual_port
from cloakwork.demo.recorded import INFRARED, POSITIONS, Infrared, Position, data_file, missing_text, read_infrared
from cloakwork.demo.simulated_flat import SimulatedFlat
from cloakwork.demo.walks import Movement, recorded, staying, walking

__all__ = [
    "INFRARED",
    "POSITIONS",
    "DemoProgress",
    "Demonstration",
    "Infrared",
    "Movement",
    "Position",
    "SimulatedFlat",
    "data_file",
    "load_flat",
    "missing_text",
    "read_infrared",
    "recorded",
    "staying",
    "usual_port",
    "walking",
]
