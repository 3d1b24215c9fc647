"""The dashboard and the alarms of deploy/ name figures and columns that exist, and nothing that holds a reading."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from cloakwork.cli.app import app
from cloakwork.collect import open_store
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import migrations
from cloakwork.sensor.wire import STATES
from scripts.reference import option_tables
from tests.collect.store_rows import SITE, frames, moment, result
from tests.parts import ROOT
from tests.postgres import running_postgres

DEPLOY = ROOT / "deploy"
COLLECTOR_PAGE = ROOT / "docs" / "guides" / "collector.md"


def test_every_figure_and_column_exists() -> None:
    alarms = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text(encoding="utf-8"))
    rules = alarms["groups"][0]["rules"]
    board = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    targets = [target for panel in board["panels"] for target in panel["targets"]]
    expressions = [rule["expr"] for rule in rules] + [target["expr"] for target in targets if "expr" in target]
    known = set(re.findall(r"^\| `(cloakwork_\w+)` \|", COLLECTOR_PAGE.read_text("utf-8"), re.MULTILINE))
    assert {name for text in expressions for name in re.findall(r"cloakwork_\w+", text)} <= known
    states = [found for text in expressions for found in re.findall(r'state=~?"([^"]+)"', text)]
    assert {state for found in states for state in found.split("|")} <= set(STATES)
    codes = {reason.partition(":")[0] for reason in Reason}
    stated = [found for text in expressions for found in re.findall(r'reason=~"([^"]+)"', text)]
    assert {code for found in stated for code in found.split("|")} <= codes
    for target in targets:
        if "rawSql" in target:
            columns = set(re.findall(r"(\w+)(?: / 1000\.0\))? AS", target["rawSql"]))
            table = migrations.STEPS[0].split("CREATE TABLE results (")[1].partition(";")[0]
            assert columns <= set(re.findall(r"(\w+) \{", table))
            assert "readings" not in target["rawSql"]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    return found


def test_provisioned_sources_are_those_of_the_dashboard_and_hold_no_password() -> None:
    folder = DEPLOY / "grafana" / "provisioning"
    sources = yaml.safe_load((folder / "datasources" / "cloakwork.yaml").read_text(encoding="utf-8"))["datasources"]
    assert {source["type"] for source in sources} == {one["query"] for one in dashboard()["templating"]["list"]}
    assert [source["secureJsonData"] for source in sources if "secureJsonData" in source] == [
        {"password": "$CLOAKWORK_GRAFANA_PASSWORD"}
    ]
    [provider] = yaml.safe_load((folder / "dashboards" / "cloakwork.yaml").read_text(encoding="utf-8"))["providers"]
    assert f"dashboard.json {provider['options']['path']}/" in COLLECTOR_PAGE.read_text("utf-8")
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    assert [(DEPLOY / file).is_file() for file in scraped["rule_files"]] == [True]


def test_the_dashboards_queries_run_as_a_user_that_cannot_read_the_readings() -> None:
    grant = re.search(r"--command '(GRANT [^']+)'", COLLECTOR_PAGE.read_text(encoding="utf-8"))
    assert grant is not None
    queries = [target["rawSql"] for panel in dashboard()["panels"] for target in panel["targets"] if "rawSql" in target]
    assert len(queries) == 2
    with running_postgres() as server, server.database() as url:
        with open_store(url) as store:
            store.readings.add(frames(1))
            assert len(store.results.save([result()])) == 1
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in ("CREATE ROLE grafana", grant[1], "SET ROLE grafana"):
                connection.execute(statement.encode())
            for query in queries:
                filtered = re.sub(r"\$__unixEpochFilter\(([^)]+)\)", rf"\1 BETWEEN 1 AND {moment(1) // 1000}", query)
                [(when, site, _)] = connection.execute(filtered.encode()).fetchall()
                assert (1000 * when.timestamp(), site) == (moment(0), SITE)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT * FROM readings")


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
    tables = option_tables("cloakwork", app)
    known = set(re.findall(r"--[a-z-]+", tables["cloakwork collect"] + tables["cloakwork token new"]))
    assert {word for word in words if word.startswith("--")} <= known
    assert "secret" not in words, "a list of processes shows it"
    assert f"0.0.0.0:{settings['ingress_port']}" in words
    assert "homeassistant://hassio/ingress/local_cloakwork" in words
