"""A flat that lives: simulated people, devices that run the real sensor code, and a collector with its page."""

from cloakwork.demo.show import Progress, Show, load_flat
from cloakwork.demo.walks import Movement, recorded, staying, walking
from cloakwork.demo.world import World

__all__ = ["Movement", "Progress", "Show", "World", "load_flat", "recorded", "staying", "walking"]
