"""A site: its site file, model, schedule, zones and frozen plan."""

from cloakwork.site.build import EstimatorChoice
from cloakwork.site.installation import Site
from cloakwork.site.plan import Plan, freeze, load_plan, plan_beside
from cloakwork.site.plan_parts import (
    PlannedBits,
    PlannedSensor,
    PlannedStay,
    PlannedTable,
    SensorNoise,
    SiteClaim,
)
from cloakwork.site.sanity import Oddity, oddities
from cloakwork.site.schedule import SHORTEST_MS, Schedule, clock_ms, make_schedule
from cloakwork.site.schema import Seconds
from cloakwork.site.site_file import edited, listed_sensors, load_site, locate, parse_site
from cloakwork.site.tracking_quality import Estimate, Followed, Quality
from cloakwork.site.tradeoff import FRAMES, Need, Setting, Tradeoff, TradeoffRow, tradeoff
from cloakwork.site.zones import Zone

__all__ = [
    "FRAMES",
    "SHORTEST_MS",
    "Estimate",
    "EstimatorChoice",
    "Followed",
    "Need",
    "Oddity",
    "Plan",
    "PlannedBits",
    "PlannedSensor",
    "PlannedStay",
    "PlannedTable",
    "Quality",
    "Schedule",
    "Seconds",
    "SensorNoise",
    "Setting",
    "Site",
    "SiteClaim",
    "Tradeoff",
    "TradeoffRow",
    "Zone",
    "clock_ms",
    "edited",
    "freeze",
    "listed_sensors",
    "load_plan",
    "load_site",
    "locate",
    "make_schedule",
    "oddities",
    "parse_site",
    "plan_beside",
    "tradeoff",
]
