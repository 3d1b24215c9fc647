"""The event hub: what is new in the store is sent, once."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.collect.api import EventLimits
from cloakwork.collect.api.access_control import Caller
from cloakwork.collect.api.event_hub import BURST, EventHub, EventKind, EventQueue
from cloakwork.collect.storage import Reading, Result, Role, Store, Token, open_store
from cloakwork.errors import ApiError
from tests.collect.api_kit import NOW, Still, result

CALLER = Caller(Token("1", Role.ANALYST, None, None, "", 0, None))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db")) as opened:
        yield opened


def save(store: Store, *results: Result) -> None:
    store.readings.add([Reading(one.site, "s1", one.time, one.time, 1, NOW) for one in results])
    store.results.save(results)


async def results_of(stream: EventQueue, count: int) -> list[tuple[str, int | None]]:
    """The next results of a stream."""
    found: list[tuple[str, int | None]] = []
    while len(found) < count:
        found += [(event.kind, event.time) for event in await stream.take(60) if event.time is not None]
    return found


def test_each_result_is_sent_once_and_again_when_it_settles(store: Store) -> None:
    async def look() -> list[list[tuple[str, int | None]]]:
        hub = EventHub(store, Still(), every_s=0.01)
        looking = asyncio.create_task(hub.run())
        save(store, result(NOW))
        stream = hub.open(CALLER, frozenset({"hall"}), EventLimits())
        await hub.follow({"hall"})
        save(store, result(NOW + 1))
        found = [await results_of(stream, 1)]
        save(store, replace(result(NOW + 1, solved=NOW + 5), settled=True), result(NOW - 1))
        found.append(await results_of(stream, 2))
        save(store, *(result(NOW + k) for k in range(10, 10 + 2 * BURST)))
        found.append(await results_of(stream, BURST))
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        return found

    first, second, third = asyncio.run(look())
    assert first == [(EventKind.RESULT, NOW + 1)], "what was there before is no news"
    assert second == [(EventKind.RESULT, NOW - 1), (EventKind.SETTLED, NOW + 1)]
    assert third == [(EventKind.RESULT, NOW + k) for k in range(10 + BURST, 10 + 2 * BURST)], "the newest of many"


def test_the_streams_of_a_token_are_bounded(store: Store) -> None:
    hub = EventHub(store, Still(), every_s=1.0)
    hub.open(CALLER, frozenset({"hall"}), EventLimits(streams=1, streams_per_token=1))
    for settings in (EventLimits(streams=9, streams_per_token=1), EventLimits(streams=1, streams_per_token=9)):
        with pytest.raises(ApiError) as refused:
            hub.open(CALLER, frozenset({"hall"}), settings)
        assert (refused.value.status, refused.value.code) == (429, "too-many-streams")
