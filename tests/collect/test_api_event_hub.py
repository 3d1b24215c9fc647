"""The event hub: each result once, the newest of a flood, and no interruption while the store is busy."""

import asyncio

import pytest

from cloakwork.collect.api import ApiSettings, EventHub
from cloakwork.collect.api.access_control import Caller
from cloakwork.collect.api.event_hub import BURST, MAX_GATHERED, SEEN, EventQueue, StreamEnd
from cloakwork.collect.storage import DeviceReport, Role, Token
from cloakwork.errors import ApiError
from tests.collect.api_kit import NOW, Bench, result

CALLER = Caller(Token("1", Role.ANALYST, None, None, "", 0, None))


def test_events_without_listeners_are_dropped_and_floods_are_gathered() -> None:
    hub = EventHub()
    hub.publish_result(result())
    hub.end(StreamEnd.CLOSING)

    async def flood() -> int:
        hub.attach(asyncio.get_running_loop())
        stream = hub.open(CALLER, frozenset({"hall"}), ApiSettings(streams=1, streams_per_token=1, stream_queue=BURST))
        with pytest.raises(ApiError) as refused:
            hub.open(CALLER, frozenset({"hall"}), ApiSettings(streams=9, streams_per_token=1, stream_queue=1))
        assert (refused.value.status, refused.value.code) == (429, "too-many-streams")
        hub.publish_reports([DeviceReport("hall", f"s{k % 3}", "online", k, 30, NOW) for k in range(5000)])
        reports = len(await stream.take(60))
        for k in range(2 * MAX_GATHERED):
            hub.publish_result(result(NOW + k, solved=NOW + 1))
        told = await stream.take(60)
        assert [event.time for event in told] == [NOW + k for k in range(2 * MAX_GATHERED - BURST, 2 * MAX_GATHERED)]
        hub.attach(None)
        return reports

    assert asyncio.run(flood()) == 3, "the newest report of each sensor"


def test_a_site_that_catches_up_hides_no_events_of_another() -> None:
    async def catch_up() -> list[tuple[str, int | None]]:
        hub = EventHub()
        hub.attach(asyncio.get_running_loop())
        stream = hub.open(CALLER, frozenset({"hall", "yard"}), ApiSettings(stream_queue=2 * BURST))
        hub.publish_result(result(NOW, site="yard"))
        for k in range(1, BURST + 7):
            hub.publish_result(result(NOW + k))
        return [(event.site, event.time) for event in await stream.take(60)]

    assert asyncio.run(catch_up()) == [("yard", NOW), *(("hall", NOW + k) for k in range(7, BURST + 7))]


def test_a_result_that_is_polled_repeatedly_is_sent_once() -> None:
    async def find_again() -> list[int | None]:
        hub = EventHub()
        hub.attach(asyncio.get_running_loop())
        stream = hub.open(CALLER, frozenset({"yard"}), ApiSettings(streams=1, streams_per_token=1, stream_queue=BURST))
        newest = [result(NOW + k, site="yard") for k in range(3)]
        for k in range(2 * SEEN):
            hub.publish_stored(newest)
            hub.publish_result(result(NOW - k))
            if k == 0:
                assert len(await stream.take(60)) == len(newest)
        hub.publish_stored([*newest, result(NOW + 3, site="yard")])
        return [event.time for event in await stream.take(60)]

    assert asyncio.run(find_again()) == [NOW + 3]


def opened(made: Bench) -> EventQueue:
    made.hub.attach(asyncio.get_running_loop())
    [token] = [token for token in made.store.tokens.list_all() if token.id == made.ids["analyst"]]
    return made.hub.open(Caller(token), frozenset({"hall"}), ApiSettings(stream_queue=9))
