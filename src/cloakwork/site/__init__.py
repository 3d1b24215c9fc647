"""A site: its site file, model, schedule, zones and frozen plan. Names load on first use."""

import lazy_loader

from cloakwork._extras import optional_parts

with optional_parts():
    import pydantic  # noqa: F401 - a site file is checked by it

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
