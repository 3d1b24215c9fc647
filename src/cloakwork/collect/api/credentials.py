"""Tokens, sessions and one-time codes. No secret is kept: caches hold its hash, a session the token's id."""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache, TTLCache

from cloakwork.collect.api.worker_threads import WorkerThreads
from cloakwork.collect.storage import Role, Store, Token

MAX_CACHED = 4096
MAX_CODES = 64
_SECRET = re.compile(r"cw_[A-Za-z0-9_-]{43}").fullmatch


@dataclass(frozen=True)
class Caller:
    """The client of a request; `session` is the hash of its cookie, where a browser's session identified it."""

    token: Token
    session: bytes | None = None

    @property
    def role(self) -> Role:
        return self.token.role

    def sees(self, site: str) -> bool:
        """Whether the token is for this site, or for all."""
        return self.token.site in {None, site}


class TokenCache:
    """Finds the token of a secret. Valid tokens are cached for `seconds`; a revoked one is dropped at once.

    The cache is keyed by SHA-256, so the time of a lookup reveals nothing about a secret. Everything but the calls of
    the store runs on the event loop.
    """

    def __init__(
        self, store: Store, workers: WorkerThreads, *, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._workers, self._seconds, self._clock = store, workers, seconds, clock
        self._checked: LRUCache[bytes, tuple[Token, float]] = LRUCache(MAX_CACHED)
        self._valid: frozenset[str] = frozenset()
        self._listed_at = -float("inf")
        self._listing: asyncio.Task[None] | None = None
        self._changes = 0

    async def find(self, secret: str) -> Token | None:
        """The token of a secret, or None if there is none or it is revoked."""
        if not _SECRET(secret):
            return None
        key = _digest(secret)
        token, checked_at = self._checked.get(key, (None, 0.0))
        if token is not None and self._clock() - checked_at < self._seconds:
            return token
        began, changes = self._clock(), self._changes
        token = await self._workers.run(self._store.tokens.check, secret)
        if token is None:
            self._checked.pop(key, None)
        elif changes == self._changes:  # not if one was revoked meanwhile: it may be this one
            self._checked[key] = (token, began)
        return token

    async def is_valid(self, token: Token) -> bool:
        """Whether a token that was valid still is. A yes is cached for a moment, a no always comes from the store."""
        asked_at = self._clock()
        while self._listed_at < asked_at and not self._valid_recently(token):
            await self._list_once()
        return token.id in self._valid

    def _valid_recently(self, token: Token) -> bool:
        return self._clock() - self._listed_at < self._seconds and token.id in self._valid

    async def _list_once(self) -> None:
        """Wait for the list under way, or begin one; a caller that stops waiting does not stop it for others."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list())
        await asyncio.shield(self._listing)

    async def _list(self) -> None:
        changes = -1
        while changes != self._changes:  # again if one was revoked meanwhile: the list may still have it
            began, changes = self._clock(), self._changes
            tokens = await self._workers.run(self._store.tokens.list_all)
        self._valid = frozenset(token.id for token in tokens if token.revoked is None)
        self._listed_at = began

    def forget(self, token_id: str) -> None:
        self._changes += 1
        self._valid -= {token_id}
        for key in [key for key, (token, _) in self._checked.items() if token.id == token_id]:
            del self._checked[key]

    def refresh(self) -> None:
        """A token was made: list the tokens again before rejecting one."""
        self._changes += 1
        self._listed_at = -float("inf")


class SessionTable:
    """Sessions of the page: a random text in a cookie stands for a token. They end with the token and the process.

    Only a keyed hash of the cookie is kept, with a key that is drawn at the start.
    """

    def __init__(
        self, most: int, per_token: int, seconds: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._per_token, self._seconds, self._clock = most, per_token, seconds, clock
        self._key = secrets.token_bytes(32)
        self._open: dict[bytes, tuple[Token, float]] = {}  # the oldest first, with the time at which each ends

    def begin(self, token: Token) -> str:
        """Begin a session and return the text for its cookie. Above the limits, the oldest session ends."""
        now = self._clock()
        self._open = {key: session for key, session in self._open.items() if session[1] > now}
        own = self._of_token(token.id)
        for key in own[: max(0, len(own) - self._per_token + 1)]:
            del self._open[key]
        while len(self._open) >= self._most:
            del self._open[next(iter(self._open))]
        text = secrets.token_urlsafe(32)
        self._open[self._hash(text)] = (token, now + self._seconds)
        return text

    def find(self, text: str) -> Caller | None:
        """The caller of a cookie; whether the token is still valid is checked elsewhere."""
        key = self._hash(text)
        return Caller(self._open[key][0], key) if self.is_open(key) else None

    def is_open(self, key: bytes) -> bool:
        return key in self._open and self._open[key][1] > self._clock()

    def end(self, key: bytes) -> None:
        self._open.pop(key, None)

    def forget(self, token_id: str) -> None:
        """End the sessions of a revoked token."""
        for key in self._of_token(token_id):
            del self._open[key]

    def _of_token(self, token_id: str) -> list[bytes]:
        return [key for key, (token, _) in self._open.items() if token.id == token_id]

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256")

    def __len__(self) -> int:
        return len(self._open)


class OneTimeCodes:
    """Codes for addresses that sign in once, so that a browser's history opens nothing.

    Only a hash of each is kept, in memory: codes end with the process. Any thread may make one; above `MAX_CODES` the
    oldest is dropped.
    """

    def __init__(self, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._open: TTLCache[bytes, Token] = TTLCache(MAX_CODES, seconds, timer=clock)
        self._lock = Lock()

    def make(self, token: Token) -> str:
        text = secrets.token_urlsafe(24)
        with self._lock:
            self._open[_digest(text)] = token
        return text

    def redeem(self, text: str) -> Token | None:
        """The token of a code that is neither used nor expired; the code is used up."""
        with self._lock:
            return self._open.pop(_digest(text), None)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
