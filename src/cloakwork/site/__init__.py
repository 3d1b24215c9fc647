"""One installation: its site file, its model and cloak, its frozen plan and its readings."""

from cloakwork.site.choice import Choice
from cloakwork.site.partial import PartialCloak, reporting
from cloakwork.site.plan import Claim, Plan, PlannedSensor, PlannedTable, freeze, load_plan, plan_beside
from cloakwork.site.readings import Frame, Problems, ReadingsFile, write_readings
from cloakwork.site.schedule import Schedule, make_schedule
from cloakwork.site.site import Site, load_site, parse_site
from cloakwork.site.zones import Zone

__all__ = [
    "Choice",
    "Claim",
    "Frame",
    "PartialCloak",
    "Plan",
    "PlannedSensor",
    "PlannedTable",
    "Problems",
    "ReadingsFile",
    "Schedule",
    "Site",
    "Zone",
    "freeze",
    "load_plan",
    "load_site",
    "make_schedule",
    "parse_site",
    "plan_beside",
    "reporting",
    "write_readings",
]
