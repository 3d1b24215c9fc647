"""Blocking calls, off the event loop. Devices and readers have threads of their own, so neither waits for the other."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread

from cloakwork.collect.api.errors import Refusal

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
MOST_WAITING = 8  # calls that may wait for each thread


class Watch(Protocol):
    """Hears how long a call took."""

    def __call__(self, operation: str, seconds: float) -> None:
        """Called after each."""


class Work:
    """Runs calls of the store in threads and tells `watch` how long each took."""

    def __init__(self, *, writes: int, reads: int, watch: Watch) -> None:
        self._counts = {"write": writes, "read": reads, "heavy": 1}
        self._limiters: dict[str, CapacityLimiter] = {}
        self._watch = watch

    async def read(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For readers, and for checks of tokens."""
        return await self._run("read", partial(call, *args, **kwargs), _name(call))

    async def write(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For devices."""
        return await self._run("write", partial(call, *args, **kwargs), _name(call))

    async def heavy(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For work that takes seconds of a processor: one at a time."""
        return await self._run("heavy", partial(call, *args, **kwargs), _name(call))

    async def _run(self, kind: str, call: Callable[[], Answer], name: str) -> Answer:
        limiter = self._limiter(kind)
        if limiter.statistics().tasks_waiting >= MOST_WAITING * self._counts[kind]:
            raise Refusal(503, "busy", "The collector is busy; nothing was changed. Try again later.", retry_s=2)
        return await to_thread.run_sync(partial(self._timed, call, name), limiter=limiter)

    def _timed(self, call: Callable[[], Answer], name: str) -> Answer:
        began = time.perf_counter()
        try:
            return call()
        finally:
            self._watch(name, time.perf_counter() - began)

    def _limiter(self, kind: str) -> CapacityLimiter:
        if kind not in self._limiters:  # it belongs to the event loop, which is not there when the app is made
            self._limiters[kind] = CapacityLimiter(self._counts[kind])
        return self._limiters[kind]


def _name(call: Callable[..., Any]) -> str:
    return getattr(call, "__name__", "call").lstrip("_")
