"""Blocking calls, off the event loop. Devices and readers have threads of their own, so neither waits for the other."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

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
        self._counts = {"write": writes, "read": reads, "heavy": 1, "suspect": 1}
        self._held: Counter[str] = Counter()
        self._limiters: dict[str, CapacityLimiter] = {}
        self._watch = watch

    async def read(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For readers, and for checks of tokens."""
        return await self._run("read", partial(call, *args, **kwargs), _name(call))

    async def write(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For devices."""
        return await self._run("write", partial(call, *args, **kwargs), _name(call))

    async def heavy(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For work that takes seconds of a processor: one at a time, and not on all of its cores."""
        return await self._run("heavy", partial(_on_one_core, partial(call, *args, **kwargs)), _name(call))

    async def suspect(self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """For checks that are probably in vain, so that many of them keep nobody else waiting."""
        return await self._run("suspect", partial(call, *args, **kwargs), _name(call))

    async def _run(self, kind: str, call: Callable[[], Answer], name: str) -> Answer:
        if self._held[kind] >= (1 + MOST_WAITING) * self._counts[kind]:
            raise Refusal(503, "busy", "The collector is busy; nothing was changed. Try again later.", retry_s=2)
        self._held[kind] += 1  # the limiter itself learns only later who waits
        try:
            return await to_thread.run_sync(partial(self._timed, call, name), limiter=self._limiter(kind))
        finally:
            self._held[kind] -= 1

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


def _on_one_core(call: Callable[[], Answer]) -> Answer:
    with threadpool_limits(1, user_api="blas"):
        return call()


def _name(call: Callable[..., Any]) -> str:
    return getattr(call, "__name__", "call").lstrip("_")
