"""A site: its site file, model, schedule, zones and frozen plan."""

from cloakwork._extras import optional_parts

with optional_parts():  # a site file is checked by pydantic
    from cloakwork.site.advice import Advice
    from cloakwork.site.bit_plan import BitPlan, freeze_bits
    from cloakwork.site.bit_site import BitSite, BitZone
    from cloakwork.site.build import EstimatorChoice
    from cloakwork.site.forecast import Forecast, forecast
    from cloakwork.site.installation import Site
    from cloakwork.site.outlook import (
        CostOfDrift,
        cost_of_drift,
        plan_advice,
        share_detected,
        spans_of,
        window_limits,
    )
    from cloakwork.site.plan import Plan, freeze, load_any_plan, load_plan
    from cloakwork.site.plan_parts import (
        BitsClaim,
        FrozenPlan,
        PlannedSensor,
        PlannedStay,
        PlannedTable,
        SensorNoise,
        SiteClaim,
        plan_beside,
    )
    from cloakwork.site.sanity import oddities
    from cloakwork.site.schedule import SHORTEST_MS, Schedule, clock_ms, make_schedule
    from cloakwork.site.schema import Seconds
    from cloakwork.site.site_file import (
        edited,
        listed_sensors,
        load_any_site,
        load_site,
        locate,
        parse_any_site,
        parse_site,
    )
    from cloakwork.site.tracking_quality import Estimate, Followed, Quality
    from cloakwork.site.tradeoff import FRAMES, Need, Setting, Tradeoff, TradeoffRow, tradeoff
    from cloakwork.site.zones import Zone

__all__ = [
    "FRAMES",
    "SHORTEST_MS",
    "Advice",
    "BitPlan",
    "BitSite",
    "BitZone",
    "BitsClaim",
    "CostOfDrift",
    "Estimate",
    "EstimatorChoice",
    "Followed",
    "Forecast",
    "FrozenPlan",
    "Need",
    "Plan",
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
    "cost_of_drift",
    "edited",
    "forecast",
    "freeze",
    "freeze_bits",
    "listed_sensors",
    "load_any_plan",
    "load_any_site",
    "load_plan",
    "load_site",
    "locate",
    "make_schedule",
    "oddities",
    "parse_any_site",
    "parse_site",
    "plan_advice",
    "plan_beside",
    "share_detected",
    "spans_of",
    "tradeoff",
    "window_limits",
]
