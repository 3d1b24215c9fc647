"""Limits on work: rates, requests at once, and threads. Memory for all of them is bounded."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from cachetools import LRUCache
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.errors import ApiError

MOST_KEYS = 10_000
MOST_WAITING = 8  # calls that may wait for each thread
Args = ParamSpec("Args")
Answer = TypeVar("Answer")


@dataclass
class _Bucket:
    left: float
    filled_at: float


class RateLimiter:
    """A token bucket for each key: `burst` at once, then `rate` a second. The least recently used key is dropped first.

    >>> limiter = RateLimiter(rate=1.0, burst=2.0, clock=lambda: 0.0)
    >>> [limiter.take("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self, *, rate: float, burst: float, most: int = MOST_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(most)

    def take(self, key: str, amount: float = 1.0) -> float:
        """Take from the bucket of a key; returns 0, or the seconds until there is enough.

        An amount above `burst` takes a full bucket: it is served in the end, and the rate holds on average.
        """
        bucket = self._fill(key)
        needed = min(amount, self._burst)
        if bucket.left < needed:
            return (needed - bucket.left) / self._rate
        bucket.left -= amount
        return 0.0

    def wait(self, key: str) -> float:
        """Seconds until one can be taken; takes nothing."""
        return max(0.0, (1.0 - self._fill(key).left) / self._rate)

    def _fill(self, key: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(key) or _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.filled_at) * self._rate)
        bucket.filled_at = now
        self._buckets[key] = bucket
        return bucket

    def __len__(self) -> int:
        return len(self._buckets)


class ConcurrencyLimiter:
    """Limits how many requests of one token are under way."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, key: str, most: int) -> Iterator[None]:
        """Count one more while the block runs; refused above `most`."""
        if self._held[key] >= most:
            message = f"This token already has {most} requests under way, the most allowed. Wait for a response."
            raise ApiError(429, "too-many-at-once", message, retry_s=1)
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


class KeyedLocks:
    """One at a time for each key; others with the same key wait."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())  # holders and waiters keep it alive
        async with lock:
            yield


class WorkerPool:
    """Runs blocking calls in so many threads, and refuses more than can wait for them.

    `on_call` is called with the name of each call and the seconds that it took. With `one_core`, the linear algebra of
    a call does not spread over the others.
    """

    def __init__(self, threads: int, on_call: Callable[[str, float], None], *, one_core: bool = False) -> None:
        self._threads, self._on_call, self._one_core = threads, on_call, one_core
        self._held = 0
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        if self._held >= (1 + MOST_WAITING) * self._threads:
            raise ApiError(503, "busy", "The collector is busy; nothing was changed. Try again later.", retry_s=2)
        if self._limiter is None:  # it belongs to the event loop, which does not run yet when the app is made
            self._limiter = CapacityLimiter(self._threads)
        self._held += 1  # the limiter itself learns too late who waits
        try:
            return await to_thread.run_sync(partial(self._timed, call, *args, **kwargs), limiter=self._limiter)
        finally:
            self._held -= 1

    def _timed(self, call: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        began = time.perf_counter()
        try:
            with threadpool_limits(1, user_api="blas") if self._one_core else nullcontext():
                return call(*args, **kwargs)
        finally:
            self._on_call(getattr(call, "__name__", "call").lstrip("_"), time.perf_counter() - began)


class WorkerThreads:
    """The threads for blocking calls. Devices and readers have their own, so neither waits for the other."""

    def __init__(self, writes: int, reads: int, on_call: Callable[[str, float], None]) -> None:
        self.write = WorkerPool(writes, on_call)  # for devices
        self.read = WorkerPool(reads, on_call)  # for readers, and for checks of tokens
        self.heavy = WorkerPool(1, on_call, one_core=True)  # for seconds of computing
        self.suspect = WorkerPool(1, on_call)  # for checks that will probably fail: a flood delays no one else
