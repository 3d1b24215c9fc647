"""The collector's HTTP interface: readings in, results out, with a role for every token."""

from cloakwork.collect.api.api_metrics import ApiMetrics
from cloakwork.collect.api.application import make_app
from cloakwork.collect.api.event_hub import EventLimits
from cloakwork.collect.api.route_context import ApiContext, Simulation, Truth

__all__ = [
    "ApiContext",
    "ApiMetrics",
    "EventLimits",
    "Simulation",
    "Truth",
    "make_app",
]
