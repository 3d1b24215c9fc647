"""The demonstrations: simulated people, devices that run the real sensor code, a collector and its page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
