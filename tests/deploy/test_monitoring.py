"""The dashboard and the alarms of deploy/ name figures and columns that exist, and nothing that holds a reading."""

import json
import re

import yaml

from cloakwork.collect.problems import Reason
from cloakwork.collect.storage import tables
from cloakwork.sensor.wire import STATES
from tests.parts import ROOT

DEPLOY = ROOT / "deploy"


def test_every_figure_and_column_exists() -> None:
    alarms = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text(encoding="utf-8"))
    rules = alarms["groups"][0]["rules"]
    board = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    targets = [target for panel in board["panels"] for target in panel["targets"]]
    expressions = [rule["expr"] for rule in rules] + [target["expr"] for target in targets if "expr" in target]
    known = set(
        re.findall(r"^\| `(cloakwork_\w+)` \|", (ROOT / "docs" / "collector.md").read_text("utf-8"), re.MULTILINE)
    )
    assert {name for text in expressions for name in re.findall(r"cloakwork_\w+", text)} <= known
    assert {name for text in expressions for name in re.findall(r'state=~?"([^"]+)"', text)} <= {
        "offline",
        "failing|invalid|slow",
    }
    assert {"offline", "failing", "invalid", "slow"} <= set(STATES)
    codes = {reason.partition(":")[0] for reason in Reason}
    stated = [found for text in expressions for found in re.findall(r'reason=~"([^"]+)"', text)]
    assert {code for found in stated for code in found.split("|")} <= codes
    for target in targets:
        if "rawSql" in target:
            columns = set(re.findall(r"(\w+)(?: / 1000\.0\))? AS", target["rawSql"]))
            assert columns <= set(tables.results.c.keys())
            assert "readings" not in target["rawSql"]


def test_the_blueprint_uses_the_inputs_that_it_declares() -> None:
    text = (DEPLOY / "home-assistant" / "lights_off.yaml").read_text(encoding="utf-8")
    declared = yaml.safe_load(re.sub(r"!input (\w+)", r"\1", text))["blueprint"]["input"]
    assert set(re.findall(r"!input (\w+)", text)) == set(declared)
