"""The event hub: each result once, the newest of a flood, and no interruption while the store is busy."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from starlette.types import Message

from cloakwork.collect.api import ApiSettings, EventHub
from cloakwork.collect.api.capacity import MOST_WAITING
from cloakwork.collect.api.credentials import Caller
from cloakwork.collect.api.event_hub import BURST, MOST_GATHERED, SEEN, EventKind, EventQueue, StreamEnd
from cloakwork.collect.api.routes_events import EventStreamResponse
from cloakwork.collect.storage import DeviceReport, Role, Token
from cloakwork.errors import ApiError
from tests.collect.api_kit import NOW, Bench, parts, result

CALLER = Caller(Token("1", Role.ANALYST, None, None, "", 0, None))


def test_events_without_listeners_are_dropped_and_floods_are_gathered() -> None:
    hub = EventHub()
    hub.publish_result(result())
    hub.end_soon()

    async def flood() -> int:
        hub.attach(asyncio.get_running_loop())
        stream = hub.open(CALLER, frozenset({"hall"}), ApiSettings(streams=1, streams_per_token=1, stream_queue=BURST))
        with pytest.raises(ApiError) as refused:
            hub.open(CALLER, frozenset({"hall"}), ApiSettings(streams=9, streams_per_token=1, stream_queue=1))
        assert (refused.value.status, refused.value.code) == (429, "too-many-streams")
        hub.publish_reports([DeviceReport("hall", f"s{k % 3}", "online", k, 30, NOW) for k in range(5000)])
        reports = len(await stream.take(60))
        for k in range(2 * MOST_GATHERED):
            hub.publish_result(result(NOW + k, solved=NOW + 1))
        told = await stream.take(60)
        assert [event.time for event in told] == [NOW + k for k in range(2 * MOST_GATHERED - BURST, 2 * MOST_GATHERED)]
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


NARROW = ApiSettings(reads_at_once=1, follow_s=0.05)


@asynccontextmanager
async def busy(made: Bench) -> AsyncIterator[None]:
    """As many reads as there may be, while the block runs."""
    over = threading.Event()
    work = made.app.state.context.workers
    held = [asyncio.create_task(work.read(over.wait, 60)) for _ in range(1 + MOST_WAITING)]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*held)


async def until(true: Callable[[], bool], task: asyncio.Task[None]) -> None:
    """Wait until something is true, or a task has ended that should not."""
    async with asyncio.timeout(30):
        while not true() and not task.done():
            await asyncio.sleep(0.01)
    assert not task.done()


def opened(made: Bench) -> EventQueue:
    made.hub.attach(asyncio.get_running_loop())
    [token] = [token for token in made.store.tokens.list_all() if token.id == made.ids["analyst"]]
    return made.hub.open(Caller(token), frozenset({"hall"}), ApiSettings(stream_queue=9))


def test_polling_resumes_after_a_busy_moment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def watch(made: Bench) -> list[EventKind]:
        stream, news = opened(made), made.app.state.context.poller
        await news.follow({"hall"})
        async with busy(made):
            watching = asyncio.create_task(news.run())
            await until(lambda: "no news from the store" in caplog.text, watching)
            await asyncio.sleep(3 * NARROW.follow_s)
        told = [event.kind for event in await stream.take(30)]
        watching.cancel()
        return told

    with parts(tmp_path, NARROW) as made:
        assert asyncio.run(watch(made)) == [EventKind.LAG]
    assert caplog.text.count("no news from the store") == 1


def test_a_stream_continues_through_a_busy_moment(tmp_path: Path) -> None:
    async def listen(made: Bench) -> str:
        told = ""

        async def send(message: Message) -> None:
            nonlocal told
            told += message.get("body", b"").decode()

        def heard(when: int) -> bool:
            return f"id: {when}\n" in told

        async def receive() -> Message:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        stream = opened(made)
        answer = EventStreamResponse(made.app.state.context, stream, [], {})
        async with busy(made):
            serving = asyncio.create_task(answer({"type": "http", "method": "GET"}, receive, send))
            for k in (1, 2):  # before the second, the token was asked for in vain
                made.hub.publish_result(result(NOW + k))
                await until(partial(heard, NOW + k), serving)
        made.hub.end(StreamEnd.CLOSING)
        await serving
        return told

    with parts(tmp_path, NARROW) as made:
        assert asyncio.run(listen(made)).endswith('"code": "closing"}\n\n')
