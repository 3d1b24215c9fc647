"""Threads for blocking calls, so that the event loop never waits for the store."""

import time
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.errors import ApiError

MAX_WAITING = 8  # long calls that may wait for their thread
Args = ParamSpec("Args")
Answer = TypeVar("Answer")


class WorkerThreads:
    """Runs blocking calls; `on_call` gets the name of each call and the seconds that it took."""

    def __init__(self, on_call: Callable[[str, float], None]) -> None:
        self._on_call = on_call
        self._long_calls = 0
        self._one_thread: CapacityLimiter | None = None

    async def run(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        """Run a call of the store in a thread."""
        return await to_thread.run_sync(partial(self._timed, call, *args, **kwargs))

    async def compute(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        """Run seconds of computing on one core, one call at a time; refused where too many wait already."""
        if self._long_calls > MAX_WAITING:
            raise ApiError(503, "busy", "The collector is busy; nothing was changed. Try again later.", retry_s=2)
        if self._one_thread is None:  # it belongs to the event loop, which does not run yet when the app is made
            self._one_thread = CapacityLimiter(1)
        self._long_calls += 1
        try:
            work = partial(self._on_one_core, call, *args, **kwargs)
            return await to_thread.run_sync(work, limiter=self._one_thread)
        finally:
            self._long_calls -= 1

    def _on_one_core(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        with threadpool_limits(1, user_api="blas"):
            return self._timed(call, *args, **kwargs)

    def _timed(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        began = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            self._on_call(getattr(call, "__name__", "call").lstrip("_"), time.perf_counter() - began)
