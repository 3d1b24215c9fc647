"""Every form in which readings and events come in or go out."""

from cloakwork.readings.partial import PartialCloak, reporting
from cloakwork.readings.readings_file import Frame, Problems, ReadingsFile, write_readings

__all__ = ["Frame", "PartialCloak", "Problems", "ReadingsFile", "reporting", "write_readings"]
