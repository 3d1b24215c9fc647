"""One installation: its site file, its model and cloak and its frozen plan."""

from cloakwork.site.choice import Choice
from cloakwork.site.plan import Claim, Plan, PlannedSensor, PlannedTable, freeze, load_plan, plan_beside
from cloakwork.site.schedule import Schedule, make_schedule
from cloakwork.site.site import Site, load_site, parse_site
from cloakwork.site.zones import Zone

__all__ = [
    "Choice",
    "Claim",
    "Plan",
    "PlannedSensor",
    "PlannedTable",
    "Schedule",
    "Site",
    "Zone",
    "freeze",
    "load_plan",
    "load_site",
    "make_schedule",
    "parse_site",
    "plan_beside",
]
