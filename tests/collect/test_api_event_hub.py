"""The event hub: what is new in the store is sent, once."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.collect.api import EventLimits
from cloakwork.collect.api.access_control import Caller
from cloakwork.collect.api.event_hub import BURST, EventHub, EventKind, EventStream, result_event
from cloakwork.collect.storage import Reading, Result, Role, Store, Token, open_store
from tests.collect.api_kit import NOW, Still, result

CALLER = Caller(Token("1", Role.ANALYST, None, None, "", 0, None))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db")) as opened:
        yield opened


def save(store: Store, *results: Result) -> None:
    store.readings.add([Reading(one.site, "s1", one.time, one.time, 1, NOW) for one in results])
    store.results.save(results)


async def results_of(hub: EventHub, stream: EventStream, count: int) -> list[tuple[str, int | None]]:
    """The next results of a stream."""
    found: list[tuple[str, int | None]] = []
    while len(found) < count:
        found += [(event.kind, event.time) for event in await hub.take(stream, 60) or () if event.time is not None]
    return found


def test_each_result_is_sent_once_and_again_when_it_settles(store: Store) -> None:
    async def look() -> list[list[tuple[str, int | None]]]:
        hub = EventHub(store, Still(), EventLimits(follow_s=0.01))
        looking = asyncio.create_task(hub.run())
        save(store, result(NOW))
        stream = hub.open(CALLER, frozenset({"hall"}))
        await hub.follow({"hall"})
        save(store, result(NOW + 1))
        found = [await results_of(hub, stream, 1)]
        save(store, replace(result(NOW + 1, solved=NOW + 5), settled=True), result(NOW - 1))
        found.append(await results_of(hub, stream, 2))
        save(store, *(result(NOW + k) for k in range(10, 10 + 2 * BURST)))
        found.append(await results_of(hub, stream, BURST))
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        return found

    first, second, third = asyncio.run(look())
    assert first == [(EventKind.RESULT, NOW + 1)], "what was there before is no news"
    assert second == [(EventKind.RESULT, NOW - 1), (EventKind.SETTLED, NOW + 1)]
    assert third == [(EventKind.RESULT, NOW + k) for k in range(10 + BURST, 10 + 2 * BURST)], "the newest of many"


def test_a_stream_that_falls_behind_what_is_kept_is_told_so_and_others_are_not(store: Store) -> None:
    async def read() -> list[int | None]:
        event = result_event(result(NOW))
        hub = EventHub(store, Still(), EventLimits(follow_s=0.0, kept=3 * len(event.data)))
        running = asyncio.create_task(hub.run())
        await asyncio.sleep(0)
        slow, quick = (hub.open(CALLER, frozenset({"hall"})) for _ in range(2))
        taken = []
        for count in (3, 1):
            hub.publish([event] * count)
            taken.append(await hub.take(quick, 60))
        taken += [await hub.take(slow, 60), await hub.take(hub.open(CALLER, frozenset({"hall"})), 0.0)]
        running.cancel()
        return [None if events is None else len(events) for events in taken]

    assert asyncio.run(read()) == [3, 1, None, 0], "who comes later begins with what is new"
