"""Who asks: tokens, sessions, one-time codes. No secret is kept: caches know its hash, a session the token's number."""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from cloakwork.collect.api.work import Work
from cloakwork.collect.records import Role, Token
from cloakwork.collect.store import Store

MOST_CACHED = 4096
MOST_CODES = 64
_SECRET = re.compile(r"cw_[A-Za-z0-9_-]{43}").fullmatch


@dataclass(frozen=True)
class Caller:
    """Who makes a request; `session` says that a browser's cookie told so, and which."""

    token: Token
    session: bytes | None = None

    @property
    def role(self) -> Role:
        """What the caller may do."""
        return self.token.role

    def sees(self, site: str) -> bool:
        """Whether the token is for this site, or for all."""
        return self.token.site in {None, site}


@dataclass(frozen=True)
class _Good:
    token: Token
    checked: float


class Tokens:
    """Finds the token of a secret. Good ones are remembered for a moment; a revoked one is forgotten at once.

    The cache is looked up by SHA-256, so how long that takes says nothing about a secret. All of it runs on the event
    loop, only the store's calls do not.
    """

    def __init__(
        self, store: Store, work: Work, *, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._work = work
        self._seconds = seconds
        self._clock = clock
        self._good: OrderedDict[bytes, _Good] = OrderedDict()
        self._valid: frozenset[str] = frozenset()
        self._listed = -float("inf")
        self._listing: asyncio.Task[None] | None = None
        self._changes = 0

    def knows(self, secret: str) -> bool:
        """Whether this secret was good not long ago, so that it is worth a look even if its address is suspect."""
        return _digest(secret) in self._good

    async def find(self, secret: str, *, suspect: bool = False) -> Token | None:
        """The token of a secret, or None if it is nobody's or revoked. Suspects wait for each other, not others."""
        if not _SECRET(secret):
            return None
        key = _digest(secret)
        good = self._good.get(key)
        if good is not None and self._clock() - good.checked < self._seconds:
            self._good.move_to_end(key)
            return good.token
        began, changes = self._clock(), self._changes
        look = self._work.suspect if suspect else self._work.read
        token = await look(self._store.check_token, secret)
        if token is None:
            self._good.pop(key, None)
        elif changes == self._changes:  # not if one was revoked meanwhile: it may be this one
            self._good[key] = _Good(token, began)
            self._good.move_to_end(key)
            if len(self._good) > MOST_CACHED:
                self._good.popitem(last=False)
        return token

    async def holds(self, token: Token) -> bool:
        """Whether a token that was good is so still. A yes is kept for a moment, a no is always from the store."""
        asked = self._clock()
        while self._listed < asked and not self._held_lately(token):
            await self._list_together()
        return token.id in self._valid

    def _held_lately(self, token: Token) -> bool:
        return self._clock() - self._listed < self._seconds and token.id in self._valid

    async def _list_together(self) -> None:
        """Wait for the list that is under way, or begin one; whoever stops waiting does not stop it for others."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list())
        await asyncio.shield(self._listing)

    async def _list(self) -> None:
        changes = -1
        while changes != self._changes:  # again if one was revoked meanwhile: the list may still have it
            began, changes = self._clock(), self._changes
            listed = await self._work.read(self._store.tokens)
        self._valid = frozenset(one.id for one in listed if one.revoked is None)
        self._listed = began

    def forget(self, number: str) -> None:
        """A token was revoked: nothing here knows it any more."""
        self._changes += 1
        self._valid -= {number}
        for key in [key for key, good in self._good.items() if good.token.id == number]:
            del self._good[key]

    def changed(self) -> None:
        """A token was made: look again before saying that there is none."""
        self._changes += 1
        self._listed = -float("inf")


@dataclass(frozen=True)
class _Until:
    token: Token
    ends: float


class Sessions:
    """Sessions of the page: a random text in a cookie stands for a token. They end with the token and with the process.

    Only a keyed hash of the cookie is kept, with a key that is drawn at the start.
    """

    def __init__(
        self, *, most: int, per_token: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._per_token = per_token
        self._seconds = seconds
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._open: OrderedDict[bytes, _Until] = OrderedDict()

    def begin(self, token: Token) -> str:
        """A new session; returns what to put in the cookie. Where there are too many the oldest ends."""
        self._tidy()
        own = [key for key, session in self._open.items() if session.token.id == token.id]
        for key in own[: max(0, len(own) - self._per_token + 1)]:
            del self._open[key]
        while len(self._open) >= self._most:
            self._open.popitem(last=False)
        text = secrets.token_urlsafe(32)
        self._open[self._hash(text)] = _Until(token, self._clock() + self._seconds)
        return text

    def find(self, text: str) -> Caller | None:
        """Whose cookie this is; the caller still asks whether the token holds."""
        key = self._hash(text)
        return Caller(self._open[key].token, key) if self.holds(key) else None

    def holds(self, key: bytes) -> bool:
        """Whether a session goes on."""
        session = self._open.get(key)
        return session is not None and session.ends > self._clock()

    def end(self, key: bytes) -> None:
        """Log out."""
        self._open.pop(key, None)

    def forget(self, number: str) -> None:
        """A token was revoked: its sessions end."""
        for key in [key for key, session in self._open.items() if session.token.id == number]:
            del self._open[key]

    def _tidy(self) -> None:
        now = self._clock()
        while self._open and next(iter(self._open.values())).ends <= now:
            self._open.popitem(last=False)

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256")

    def __len__(self) -> int:
        return len(self._open)


class Codes:
    """Codes that sign in once, for an address that a person is given: what a browser remembers of it opens nothing.

    Only a hash of each is kept, and only here: they end with the process. Any thread may make one.
    """

    def __init__(self, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._open: OrderedDict[bytes, _Until] = OrderedDict()
        self._lock = Lock()

    def make(self, token: Token) -> str:
        """A new code for this token; where there are too many the oldest is no longer good."""
        text = secrets.token_urlsafe(24)
        with self._lock:
            self._open[_digest(text)] = _Until(token, self._clock() + self._seconds)
            if len(self._open) > MOST_CODES:
                self._open.popitem(last=False)
        return text

    def take(self, text: str) -> Token | None:
        """The token of a code that was not used yet and is not too old; from now on it is used."""
        with self._lock:
            found = self._open.pop(_digest(text), None)
        return None if found is None or found.ends <= self._clock() else found.token


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
