"""The shipped settings and rules on a real broker: it answers a forbidden message like any other, so others look."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.installation import DEPLOY, Site, running_site

OWN = "cloakwork/v1/hall/s1/reading"


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    yield running
    running.leave()


@pytest.mark.parametrize(
    "forbidden",
    [
        "cloakwork/v1/hall/s2/reading",
        "cloakwork/v1/yard/s1/reading",
        "cloakwork/v1/hall/s1/other",
        "homeassistant/sensor/cloakwork_hall_s1/config",
    ],
)
def test_a_device_writes_nothing_else(site: Site, forbidden: str) -> None:
    device, other, collector = site.enter("hall.s1"), site.enter("hall.s2"), site.enter("collector")
    collector.listen("#")
    other.listen("#")
    device.say(forbidden)
    device.say(OWN)
    other.say("cloakwork/v1/hall/s2/status")
    assert collector.hears(OWN), "the forbidden message, which came before it, got through"
    assert other.hears("cloakwork/v1/hall/s2/status")


def test_a_device_hears_no_other_device(site: Site) -> None:
    device, other = site.enter("hall.s1"), site.enter("hall.s2")
    other.say("cloakwork/v1/hall/s2/reading", retain=True)
    for topic in ("#", "cloakwork/v1/hall/s2/reading", "$share/g/cloakwork/v1/+/+/+", "$SYS/#"):
        device.listen(topic)
    other.say("cloakwork/v1/hall/s2/reading", b"", retain=True)
    device.say(OWN)
    assert device.hears(OWN), "a reading of another sensor, which came before it, was told"


def test_the_collector_writes_in_no_name(site: Site) -> None:
    collector, listener, device = site.enter("collector"), site.enter("second"), site.enter("hall.s1")
    listener.listen("#")
    for topic in ("cloakwork/v1/hall/s1/reading", "homeassistant/x/config", "cloakwork/zones/hall"):
        collector.say(topic)
    device.say("cloakwork/v1/hall/s1/status")
    assert listener.hears("cloakwork/v1/hall/s1/status")


def test_every_user_needs_their_own_password(site: Site) -> None:
    word = site.password_file("hall.s1").read_text(encoding="utf-8").strip()
    assert site.enter("hall.s1").code == "Success"
    for user, password in ((None, None), ("hall.s1", "wrong"), ("hall.s2", word), ("nobody", word), ("collector", "")):
        assert site.enter(user, password).code in {"Not authorized", "Bad user name or password"}


def test_a_message_of_more_than_2048_bytes_is_thrown_away(site: Site) -> None:
    device, collector = site.enter("hall.s1"), site.enter("collector")
    collector.listen("cloakwork/v1/hall/s1/+")
    device.say(OWN, b"x" * 2048)
    assert collector.hears(OWN)
    device.say(OWN, b"x" * 2049)
    device.say("cloakwork/v1/hall/s1/status")
    assert collector.hears("cloakwork/v1/hall/s1/status")


def test_the_broker_speaks_tls_only(site: Site) -> None:
    listeners = [line for line in (DEPLOY / "mosquitto.conf").read_text("utf-8").splitlines() if "listener" in line]
    assert listeners == ["listener 8883"]
    asked = ["openssl", "s_client", "-connect", f"127.0.0.1:{site.port}", "-tls1_1", "-brief"]
    assert subprocess.run(asked, input=b"", capture_output=True, check=False).returncode != 0


def test_with_its_four_lines_the_collector_tells_home_assistant(tmp_path: Path) -> None:
    shipped = (DEPLOY / "mosquitto.acl").read_text(encoding="utf-8").splitlines()
    lines = [line.removeprefix("#") for line in shipped if line.startswith(("#user", "#topic"))]
    assert lines[0] == "user collector-zones"
    assert len(lines) == 4
    rules = "\n".join(["", *lines, "\nuser hall.s2", "topic read #", ""])
    with running_site(tmp_path, rules=rules) as site:
        collector, listener, device = site.enter("collector-zones"), site.enter("hall.s2"), site.enter("hall.s1")
        collector.listen("#")
        listener.listen("#")
        collector.say("cloakwork/v1/hall/s1/reading")
        device.say("cloakwork/zones/hall/kitchen")
        for topic in (
            *(f"homeassistant/{kind}/x/config" for kind in ("binary_sensor", "sensor")),
            "cloakwork/zones/hall/kitchen",
        ):
            collector.say(topic)
            assert listener.hears(topic)
        device.say(OWN)
        assert listener.hears(OWN)
        assert collector.heard.empty(), "it may write, and hear nothing"
