"""A moment in which too many ask the store: what was under way goes on after it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from starlette.types import Message

from cloakwork.collect.api import ApiSettings
from cloakwork.collect.api.capacity import MOST_WAITING
from cloakwork.collect.api.credentials import Caller
from cloakwork.collect.api.event_hub import EventKind, EventQueue, StreamEnd
from cloakwork.collect.api.routes_events import EventStreamResponse
from tests.collect.api_kit import NOW, Bench, parts, result

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
    return made.hub.open(Caller(token), frozenset({"hall"}), most=1, per_token=1, queue=9)


def test_news_is_looked_for_again_after_a_busy_moment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_stream_goes_on_through_a_busy_moment(tmp_path: Path) -> None:
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
