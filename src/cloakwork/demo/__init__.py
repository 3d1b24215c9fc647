"""The demonstration: simulated people in a flat, devices that run the real sensor code, a collector and its page."""

from cloakwork.demo.demonstration import Demonstration, DemoProgress, load_flat
from cloakwork.demo.simulated_flat import SimulatedFlat
from cloakwork.demo.walks import Movement, recorded, staying, walking

__all__ = ["DemoProgress", "Demonstration", "Movement", "SimulatedFlat", "load_flat", "recorded", "staying", "walking"]
