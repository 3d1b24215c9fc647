"""The dashboard and the alarms of deploy/ name figures and columns that exist, and nothing that holds a reading."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

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
    states = [found for text in expressions for found in re.findall(r'state=~?"([^"]+)"', text)]
    assert {state for found in states for state in found.split("|")} <= set(STATES)
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


def test_the_add_on_starts_the_collector_with_options_that_exist(tmp_path: Path) -> None:
    """Its start program runs with a stand-in for `cloakwork` that notes what it is asked to do."""
    addon = DEPLOY / "home-assistant" / "addon"
    settings = yaml.safe_load((addon / "config.yaml").read_text(encoding="utf-8"))
    assert set(settings["options"]) == set(settings["schema"])
    assert settings["version"] == version("cloakwork")
    for name in ("data", "config", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "options.json").write_text(json.dumps(settings["options"] | {"password": "secret"}))
    stand_in = tmp_path / "bin" / "cloakwork"
    stand_in.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/words\necho cw_token\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "ADDON_ROOT": str(tmp_path), "HOSTNAME": "local-cloakwork"}
    for _ in range(2):
        subprocess.run([sys.executable, addon / "run.py"], env=environment, check=True, capture_output=True)
    words = (tmp_path / "words").read_text().split("\n")
    assert words.count("token") == 1, "the second start finds the token of the first"
    assert (tmp_path / "config" / "token.txt").read_text() == "cw_token\n"
    assert (tmp_path / "config" / "token.txt").stat().st_mode & 0o077 == 0
    known = set(re.findall(r"`(--[a-z-]+)`", (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")))
    assert {word for word in words if word.startswith("--")} <= known
    assert "secret" not in words, "a list of processes shows it"
    assert f"0.0.0.0:{settings['ingress_port']}" in words
    assert "homeassistant://hassio/ingress/local_cloakwork" in words
