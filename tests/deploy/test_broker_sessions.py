"""Sessions at the shipped broker: no device can take, empty or end one that is not its own."""

from collections.abc import Iterator

import pytest

from tests.deploy.installation import Person, Site
from tests.waiting import PATIENCE

NAME = "cloakwork-collector"
READINGS = 20
FROM_S2 = "cloakwork/v1/hall/s2/reading"
END = "cloakwork/v1/hall/s1/status"


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    yield running
    running.leave()
    for user in ("collector", "second", "hall.s1"):
        running.enter(user)  # which ends what lasted
    running.leave()


def collector_of(site: Site, topic: str = "cloakwork/v1/hall/+/+", *, user: str = "collector") -> Person:
    collector = site.enter(user, name=NAME, lasting=True)
    collector.listen(topic)
    return collector


def heard_until(listener: Person, last: str) -> list[bytes]:
    """What came before a message of the topic `last`."""
    found = []
    while (message := listener.heard.get(timeout=PATIENCE))[0] != last:
        found.append(message[1])
    return found


def numbers(site: Site) -> list[bytes]:
    """Sensor s2 sends readings, each acknowledged."""
    device = site.enter("hall.s2")
    sent = [str(number).encode() for number in range(READINGS)]
    for payload in sent:
        device.say(FROM_S2, payload)
    return sent


def test_a_device_can_neither_take_nor_delete_readings_queued_for_the_collector(site: Site) -> None:
    collector_of(site).leave()
    sent = numbers(site)
    thief = site.enter("hall.s1", name=NAME, lasting=True)
    assert (thief.code, thief.remembered) == ("Success", False)
    thief.say(END)
    thief.leave()
    assert thief.heard.empty()
    collector = site.enter("collector", name=NAME, lasting=True)
    assert collector.remembered
    assert heard_until(collector, END) == sent


def test_a_device_cannot_throw_the_collector_out(site: Site) -> None:
    collector = collector_of(site)
    thief = site.enter("hall.s1", name=NAME)
    sent = numbers(site)
    thief.say(END)
    assert heard_until(collector, END) == sent
    assert collector.thrown_out == 0


def test_a_device_cannot_throw_another_out(site: Site) -> None:
    other = site.enter("hall.s2", name="hall.s2.1")
    other.listen("cloakwork/v1/hall/s2/+")
    site.enter("hall.s1", name=NAME).say(END)
    other.say(FROM_S2)
    assert other.hears(FROM_S2)
    assert other.thrown_out == 0


def test_a_device_that_does_not_know_the_name_of_a_group_takes_nothing_from_it(site: Site) -> None:
    group = (site.made / "secrets" / "group").read_text(encoding="utf-8").strip()
    assert len(group) == 32
    collector = collector_of(site, f"$share/{group}/cloakwork/v1/hall/+/+")
    thief = site.enter("hall.s1")
    for guess in ("group", "g", "collector", "cloakwork"):
        thief.listen(f"$share/{guess}/cloakwork/v1/hall/+/+")
    sent = numbers(site)
    thief.say(END)
    assert heard_until(collector, END) == sent
