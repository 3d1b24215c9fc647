"""What tests of plans share: a pipe, its plan, and the content of the plan file."""

import json
from pathlib import Path
from typing import Any

import pytest

from cloakwork.site import Plan, freeze, parse_site

LINE = """name = "pipe"
baseline = 20.5
sensors = 6
[physics]
kind = "line"
places = 20
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.05
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    site = parse_site(LINE, name="site.toml")
    return freeze(site, site.cloak())


@pytest.fixture
def values(plan: Plan, tmp_path: Path) -> dict[str, Any]:
    """The content of the plan file."""
    plan.write(tmp_path / "values.json")
    found: dict[str, Any] = json.loads((tmp_path / "values.json").read_text())
    return found
