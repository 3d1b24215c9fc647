"""The ESPHome component, by the real `esphome config`: a true reading has no way out."""

import subprocess
from pathlib import Path

import pytest

from cloakwork.device import Target, provision
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from cloakwork.site import freeze, parse_site
from tests import parts
from tests.device.test_provision import SITE

EXAMPLES = Path(__file__).parents[2] / "examples" / "esphome"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = parse_site(SITE)
    made = provision(
        freeze(site, site.cloak()),
        "hall",
        tmp_path_factory.mktemp("esphome") / "hall",
        broker=BrokerAddress("broker.example", user="hall", password='a "quoted" one'),  # noqa: S106
        keys=None,
        target=Target.ESPHOME,
    ).folder
    for example in EXAMPLES.iterdir():
        (made / example.name).write_bytes(example.read_bytes())
    (made / "secrets.yaml").write_text("wifi_ssid: home\nwifi_password: twelve-letters\nota_password: c\n")
    return made


def test_the_folder_holds_the_component_and_no_key_in_it(folder: Path) -> None:
    names = {path.name for path in (folder / "components" / "cloakwork").iterdir()}
    assert names >= {"sensor.py", "cloakwork_sensor.cpp", "cloakwork_sensor.h", "cloakwork.c", "cloakwork.h", "plan.h"}
    assert {"state.0", "state.1", "nvs.csv", "cloakwork.yaml", "device.yaml"} <= {
        path.name for path in folder.iterdir()
    }
    assert "device.json" not in {path.name for path in folder.iterdir()}


def test_a_broker_with_encryption_needs_its_certificate(tmp_path: Path) -> None:
    site = parse_site(SITE)
    with pytest.raises(InputError, match="clear text"):
        provision(
            freeze(site, site.cloak()),
            "hall",
            tmp_path / "hall",
            broker=BrokerAddress("broker.example", tls=True),
            keys=None,
            target=Target.ESPHOME,
        )
    assert not (tmp_path / "hall").exists()


def config(folder: Path, text: str) -> str:
    program = parts.program("esphome")
    if program is None:  # not a part that CI must have: it is larger than the tests themselves
        pytest.skip("esphome missing: pip install esphome, in an environment of its own on the PATH")
    (folder / "tried.yaml").write_text(text)
    done = subprocess.run([program, "config", "tried.yaml"], cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["device.yaml", "mlx90640.yaml"])
def test_esphome_accepts_the_examples(folder: Path, name: str) -> None:
    assert "Configuration is valid!" in config(folder, (folder / name).read_text())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id: thermometer ", "id: thermometer\n    name: Open ", "true readings would be published"),
        ("resolution: 12", "filters: [{offset: 1}]", "filters"),
        ("resolution: 12", "on_value: {then: [{logger.log: x}]}", "something else uses"),
        ("sensor:", "sensor:\n  - {platform: copy, source_id: thermometer, name: Copy}", "something else uses"),
        (
            "sensor:",
            "sensor:\n  - {platform: template, name: Copy, lambda: 'return id(thermometer).state;'}",
            "something else uses",
        ),
        ("update_interval: never", "update_interval: 10s", "measures in its slots"),
        ("esp32:", "logger: {level: DEBUG}\nesp32:", "the log would hold"),
        ("esp32:", "web_server:\nprometheus: {include_internal: true}\nesp32:", "include_internal"),
        ("esp32:", "web_server: {include_internal: true}\nesp32:", "web_server: include_internal"),
        ("esp32:", "mqtt: {clean_session: false}\nesp32:", "clean_session"),
        ("esp32:\n  board: esp32dev\n  framework:\n    type: esp-idf", "esp8266:\n  board: d1_mini", "only available"),
    ],
)
def test_esphome_refuses_every_way_out_for_a_true_reading(folder: Path, old: str, new: str, reason: str) -> None:
    text = (folder / "device.yaml").read_text()
    assert old in text
    said = config(folder, text.replace(old, new, 1))
    assert reason in " ".join(said.split())
    assert "Configuration is valid!" not in said
