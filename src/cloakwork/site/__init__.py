"""One installation: its site file, its model and cloak, and its readings."""

from cloakwork.site.choice import Choice
from cloakwork.site.partial import PartialCloak, reporting
from cloakwork.site.readings import Frame, Problems, ReadingsFile, write_readings
from cloakwork.site.site import Site, load_site, parse_site

__all__ = [
    "Choice",
    "Frame",
    "PartialCloak",
    "Problems",
    "ReadingsFile",
    "Site",
    "load_site",
    "parse_site",
    "reporting",
    "write_readings",
]
