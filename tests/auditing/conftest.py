"""A hall, its plan, and the claim of one of its sensors."""

import pytest

from cloakwork.auditing import DeviceClaim
from cloakwork.site import Plan, Site, freeze, parse_site

SITE = """name = "hall"
sensors = 6
baseline = 20.0
unit = "°C"
[physics]
kind = "line"
places = 20
T = 0.01
placement = "grid"
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.05
window = "1s"
readings_per_window = 50
"""
CLAIM = DeviceClaim(
    site="hall",
    sensor="s2",
    epsilon=1.0,
    delta=0.5,
    origin="By the plan.",
    unit="°C",
    sigma=2.0,
    step=0.5,
    shift=4.0,
    rounding=0.5,
)


@pytest.fixture(scope="session")
def site() -> Site:
    return parse_site(SITE)


@pytest.fixture(scope="session")
def plan(site: Site) -> Plan:
    return freeze(site, site.cloak())
