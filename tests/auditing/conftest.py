"""What tests of bench audits share: a hall, its plan, and a claim."""

import pytest

from cloakwork.auditing import BenchClaim
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
CLAIM = BenchClaim(
    sensor="s2",
    unit="°C",
    sigma=2.0,
    step=0.5,
    rounding=0.5,
    shift=4.0,
    hidden_shift=1.0,
    mu=2.25,
    epsilon=1.0,
    delta=0.5,
)


@pytest.fixture(scope="session")
def site() -> Site:
    return parse_site(SITE)


@pytest.fixture(scope="session")
def plan(site: Site) -> Plan:
    return freeze(site, site.cloak())
