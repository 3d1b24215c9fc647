"""Limits: how often, how much, how long and how many at once. Memory for all of them is bounded."""

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakwork.collect.api.errors import Refusal

MOST_KEYS = 10_000
BODY = "cloakwork.body"  # in a scope: the largest body of this request


@dataclass
class _Bucket:
    left: float
    seen: float


class Buckets:
    """A token bucket for each key: `burst` at once, then `rate` a second. The longest unused is forgotten first.

    >>> buckets = Buckets(rate=1.0, burst=2.0, clock=lambda: 0.0)
    >>> [buckets.take("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self, *, rate: float, burst: float, most: int = MOST_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._clock = clock
        self._held: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str, amount: float = 1.0) -> float:
        """Take from the bucket of a key; returns 0, or after how many seconds there would be enough.

        An amount above `burst` takes a full bucket: it is served in the end, and the rate holds on average.
        """
        bucket = self._filled(key)
        wanted = min(amount, self._burst)
        if bucket.left < wanted:
            return (wanted - bucket.left) / self._rate
        bucket.left -= amount
        return 0.0

    def wait(self, key: str) -> float:
        """After how many seconds one could be taken; takes nothing."""
        return max(0.0, (1.0 - self._filled(key).left) / self._rate)

    def _filled(self, key: str) -> _Bucket:
        now = self._clock()
        bucket = self._held.pop(key, None) or _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.seen) * self._rate)
        bucket.seen = now
        self._held[key] = bucket
        if len(self._held) > self._most:
            self._held.popitem(last=False)
        return bucket

    def __len__(self) -> int:
        return len(self._held)


class AtOnce:
    """How many requests of one token may be under way."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def one(self, key: str, most: int) -> Iterator[None]:
        """Count one more while the block runs; refused above `most`."""
        if self._held[key] >= most:
            raise Refusal(
                429,
                "too-many-at-once",
                f"{most} requests with this token are under way, and no more are allowed at once. Wait for an answer.",
                retry_s=1,
            )
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


class Turns:
    """One at a time for each key; others with the same key wait for their turn."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one(self, key: str) -> AsyncIterator[None]:
        """Wait for the others, then have them wait while the block runs."""
        lock = self._locks.setdefault(key, asyncio.Lock())  # who waits for it or has it keeps it
        async with lock:
            yield


def address_of(scope: Scope) -> str:
    """Who asks, for counting failures: an address, of IPv6 the network of 64 bits that one customer usually has.

    >>> address_of({"client": ("2001:db8::1", 5)}), address_of({"client": ("192.0.2.7", 5)})
    ('2001:db8::/64', '192.0.2.7')
    """
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return host


class BodyLimit:
    """Refuses a body while it is being read: as soon as it is too large, or takes too long.

    `most` bytes are allowed, or what the route has put into the scope under `BODY`.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        end = time.monotonic() + self._seconds
        read, whole = 0, False

        async def limited() -> Message:
            nonlocal read, whole
            if whole:  # what comes now is that the client has gone, and may take its time
                return await receive()
            most: int = scope.get(BODY, self._most)
            if declared.isdigit() and int(declared) > most:
                raise _too_large(most)
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                text = f"The body did not arrive within {self._seconds:g} s. Send it again, in smaller parts."
                raise Refusal(408, "too-slow", text, headers={"Connection": "close"}) from None
            read += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if read > most:
                raise _too_large(most)
            return message

        await self._app(scope, limited, send)


def _too_large(most: int) -> Refusal:
    text = f"The body has more than {most} bytes, and no more are allowed. Send it in smaller parts."
    return Refusal(413, "too-large", text, headers={"Connection": "close"})
