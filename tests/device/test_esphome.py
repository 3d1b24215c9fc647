"""The ESPHome component, by the real `esphome`: no true reading has a way out, and a board without state is silent."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path

import pytest

from cloakwork.device import Target, provision
from cloakwork.errors import InputError
from cloakwork.keys import new_keys, save_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.wire import read_reading
from cloakwork.site import freeze, parse_site
from tests import parts
from tests.clocks import running_time_server
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


def esphome(folder: Path, *words: str) -> str:
    program = parts.program("esphome")
    if program is None:  # not a part that CI must have: it is larger than the tests themselves
        pytest.skip("esphome missing: pip install esphome, in an environment of its own on the PATH")
    done = subprocess.run([program, *words], cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def config(folder: Path, text: str) -> str:
    (folder / "tried.yaml").write_text(text)
    return esphome(folder, "config", "tried.yaml")


@pytest.mark.parametrize("name", ["device.yaml", "mlx90640.yaml"])
def test_esphome_accepts_the_examples(folder: Path, name: str) -> None:
    assert "Configuration is valid!" in config(folder, (folder / name).read_text())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id: thermometer ", "id: thermometer\n    name: Open ", "true readings would be published"),
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


HOST = """\
esphome: {name: simulated}
host:
logger: {level: INFO}
network:
external_components: [{source: {type: local, path: components}}]
sensor:
  - {platform: template, id: thermometer, update_interval: never, lambda: return 23.4375;}
  - {platform: cloakwork, name: Cloaked temperature, source: thermometer}
"""


def compiled(folder: Path) -> Path:
    """A program of all sources that ESPHome generates: by hand, as PlatformIO would first load its own compiler."""
    (folder / "host.yaml").write_text(HOST)
    said = esphome(folder, "compile", "--only-generate", "host.yaml")
    assert "Successfully generated source code" in said, said
    made = folder / ".esphome" / "build" / "simulated"
    settings = ConfigParser(interpolation=None)
    settings.read(made / "platformio.ini")
    stated = settings["env:simulated"]["build_flags"].split()
    flags = ["-O0", "-Isrc", *(flag for flag in stated if flag[:2] in {"-D", "-f"})]

    def build(source: Path) -> Path:
        compiler = ["gcc", "-std=c99"] if source.suffix == ".c" else ["g++", "-std=gnu++20"]
        warnings = ["-Wall", "-Wextra", "-Werror"] if source.parent.name == "cloakwork" else ["-w"]
        subprocess.run([*compiler, *warnings, *flags, "-c", source, "-o", f"{source}.o"], cwd=made, check=True)
        return Path(f"{source}.o")

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, [path for path in made.rglob("src/**/*.c*") if path.suffix in {".c", ".cpp"}]))
    subprocess.run([parts.program("g++") or "g++", *objects, "-o", folder / "board"], check=True)
    return folder / "board"


def said_until(program: Path, text: str, count: int) -> list[str]:
    """Return the output of a board up to the line that is the last of so many with a text."""
    lines: list[str] = []
    line = [parts.program("stdbuf") or "stdbuf", "-oL", str(program)]  # otherwise its log comes in blocks
    with subprocess.Popen(line, cwd=program.parent, stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout is not None
        while sum(text in line for line in lines) < count:
            lines.append(board.stdout.readline())
        board.terminate()
    return lines


@pytest.fixture
def time_server() -> Iterator[str]:
    with running_time_server() as port:
        yield f"127.0.0.1:{port}"


def test_the_component_compiles_with_esphome_and_sends_only_with_its_state(tmp_path: Path, time_server: str) -> None:
    parts.needs("gcc", "g++")
    site = parse_site(SITE.replace("alpha = 0.0625", "alpha = 0.0625\nresolution = 0.0625"))
    save_keys(new_keys("two-rooms"), tmp_path / "keys.json")
    made = provision(
        freeze(site, site.cloak()),
        "hall",
        tmp_path / "hall",
        broker=BrokerAddress(),
        keys=tmp_path / "keys.json",
        resolution=0.0625,
        bench=True,
        period=0.4,
        time_server=time_server,
        target=Target.ESPHOME,
    ).folder
    board = compiled(made)
    sent = [line.split()[1].encode() for line in said_until(board, "/bench {", 8) if "/bench {" in line]
    assert len({read_reading(line)[0] for line in sent}) == 8
    assert len({read_reading(line)[2] for line in sent}) > 1
    for copy in ("state.0", "state.1"):
        (made / copy).write_bytes(b"")
    said = said_until(board, "Provision this device again", 1)
    assert not any("cloakwork/v1" in line for line in said)
