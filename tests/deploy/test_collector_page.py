"""The pages on the collector, Home Assistant and the HTTP API say what is so: commands, options, routes and limits."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from cloakwork.cli.app import app
from cloakwork.collect.api.access_control import MAX_SESSIONS_PER_TOKEN, SESSION_S, SMALL_BODY
from cloakwork.collect.api.error_responses import BODY_BYTES
from cloakwork.collect.api.event_streams import MAX_STREAMS, MAX_STREAMS_PER_TOKEN
from cloakwork.collect.intake import CAPACITY
from tests.collect.api_kit import Bench, bench
from tests.deploy.installation import DEPLOY, ROOT

NAMES = ("guides/collector.md", "guides/home-assistant.md", "reference/http-api.md")
PAGE = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in NAMES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("page")) as one:
        yield one


def commands() -> list[list[str]]:
    """Every call of `cloakwork` on the page, in the unit and in compose.yaml."""
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))
    lines += (DEPLOY / "cloakwork-collector.service").read_text(encoding="utf-8")
    composed = re.search(r"command: >-\n(.*?)\n    \S", (ROOT / "compose.yaml").read_text("utf-8"), flags=re.DOTALL)
    assert composed is not None
    lines = lines.replace("\\\n", " ") + "\ncloakwork " + " ".join(composed[1].split())
    calls = re.findall(r"(?:^|[\s/])cloakwork ((?:[a-z]+ )+[^;&|\n]*)", lines, flags=re.MULTILINE)
    return [shlex.split(call) for call in calls]


def test_each_command_and_option_exists() -> None:
    seen = set()
    for words in commands():
        command: Any = typer.main.get_command(app)
        while words and hasattr(command, "list_commands") and words[0] in command.list_commands(None):
            command = command.get_command(None, words.pop(0))
        assert not hasattr(command, "list_commands"), f"no such command: {words}"
        options = {text for parameter in command.params for text in parameter.opts}
        given = {word for word in words if word.startswith("--")}
        assert given <= options, command.name
        seen.add(command.name)
    assert {"collect", "new", "list", "revoke", "erase", "export", "recover", "plan", "provision", "sensor"} <= seen


def test_each_metric_is_on_the_page(made: Bench) -> None:
    text = made.ask("/metrics").text
    real = {name for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.MULTILINE)}
    real = {name for name in real if not name.endswith("_created")}
    assert set(re.findall(r"^\| `(cloakwork_\w+)`", PAGE, flags=re.MULTILINE)) == real


def test_the_limits_are_those_of_the_interface() -> None:
    for line in (
        f"{BODY_BYTES >> 20} MiB of a device, {SMALL_BODY >> 10} KiB of anyone else |",
        f"{MAX_STREAMS_PER_TOKEN} of one token, {MAX_STREAMS} in all",
        f"{MAX_SESSIONS_PER_TOKEN} of one token |",
        f"for {SESSION_S / 3600:g} hours",
        f"above {CAPACITY:,} nothing more",
    ):
        assert line in " ".join(PAGE.split()), line


def test_the_page_lists_the_broker_settings_as_shipped() -> None:
    shipped = (DEPLOY / "mosquitto.conf").read_text(encoding="utf-8").splitlines()
    table = PAGE.partition("| setting | why |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `([a-z_]+ \w+)` \|", table, flags=re.MULTILINE)
    assert len(told) == 8
    assert not [line for line in told if line not in shipped]
    rules = (DEPLOY / "mosquitto.acl").read_text(encoding="utf-8")
    assert "user collector\ntopic read cloakwork/v1/#\n" in rules
    assert "user collector\ntopic read cloakwork/v1/#\n" in PAGE
    device = "\n".join(line.removeprefix("#   ") for line in rules.splitlines() if line.startswith("#   "))
    assert device.startswith("user hall.s1\n")
    assert device in PAGE
