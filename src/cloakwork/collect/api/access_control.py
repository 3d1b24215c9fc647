"""Who may do what: every route declares its roles, and its caller is checked before its body is read.

A route takes the keywords of `guarded(...)` or `public(...)`; creating one without raises an error, so no route can be
open by mistake.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any

from cachetools import TTLCache
from fastapi import Depends, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cloakwork.collect.api.error_responses import BODY_LIMIT, DEFAULTS, documented_errors
from cloakwork.collect.storage import Role, Store, Token
from cloakwork.errors import ApiError

BEARER = HTTPBearer(scheme_name="token", description="Of a device, an analyst or an operator.", auto_error=False)
SESSION = APIKeyCookie(
    name="cloakwork",
    scheme_name="session",
    description="From POST /v1/session; __Host-cloakwork behind a proxy. A change needs the header X-Cloakwork: 1.",
    auto_error=False,
)
READERS = (Role.ANALYST, Role.OPERATOR)
ROLES = "x-roles"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
CSRF_HEADER = "x-cloakwork"
INGRESS = re.compile(r"(/[\w-]+)+", re.ASCII)  # where Home Assistant's proxy shows the page
BODY_ERRORS = (400, 413, 415, 422)
SMALL_BODY = 2048  # bytes that anyone but a device may send
SESSION_S, CODE_S = 12 * 3600.0, 600.0
MAX_SESSIONS, MAX_SESSIONS_PER_TOKEN, MAX_CODES = 1000, 16, 64


def guarded(roles: tuple[Role, ...], *errors: int) -> dict[str, Any]:
    """Keywords of a route for these roles; `errors` are the statuses it may answer with besides the usual ones."""
    return {
        "openapi_extra": {ROLES: [role.value for role in roles]},
        "responses": documented_errors(401, 403, *errors, 503),
        "dependencies": [Security(BEARER), Security(SESSION)],  # for the document: `GuardedRoute` checks them
    }


def public(*errors: int) -> dict[str, Any]:
    """Keywords of a route that needs no token: nothing in its response may depend on stored data."""
    return {"openapi_extra": {ROLES: []}, "responses": documented_errors(*errors)}


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


class AccessControl:
    """Tokens, sessions of the page, and codes that sign in once; any thread may call it.

    The store is asked at each request whether a token is valid. A session is a random text in a cookie that stands for
    a token; a code in an address signs a browser in once. Only hashes of both are kept, and both end with the process.
    With `secure`, clients connect by https, to a proxy.
    """

    def __init__(self, store: Store, *, secure: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self.secure, self._lock = store, secure, Lock()
        self._sessions: TTLCache[bytes, Token] = TTLCache(MAX_SESSIONS, SESSION_S, timer=clock)
        self._codes: TTLCache[bytes, Token] = TTLCache(MAX_CODES, CODE_S, timer=clock)

    @property
    def cookie(self) -> str:
        """Name of the cookie; the prefix makes browsers accept it from this host and by https only."""
        return "__Host-cloakwork" if self.secure else "cloakwork"

    def cookie_options(self, request: Request) -> dict[str, Any]:
        """Whom browsers send the cookie to: under Home Assistant's ingress, not to other pages of the same origin."""
        below = request.headers.get("X-Ingress-Path", "")
        path = f"{below}/" if INGRESS.fullmatch(below) and not self.secure else "/"
        return {"path": path, "secure": self.secure, "httponly": True, "samesite": "strict"}

    def admit(self, request: Request, roles: frozenset[Role]) -> Caller:
        """Return the caller of a request, if its role is allowed."""
        caller = self._identify(request)
        if caller.role not in roles:
            allowed = " or ".join(sorted(roles))
            message = f"This request needs a token of role {allowed}; yours has role {caller.role}."
            raise ApiError(403, "forbidden", message)
        if caller.session is not None and request.method not in SAFE_METHODS:
            _refuse_forged(request)
        return caller

    def make_code(self, token: Token) -> str:
        """Return a code that signs a browser in once, so that its history opens nothing."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes[_hash(code)] = token
        return code

    def sign_in(self, *, secret: str | None = None, code: str | None = None) -> Token:
        """Return the token with this secret, or the one for which a code was made, which is used up."""
        if code is None:
            token = self._store.tokens.check(secret or "")
            message = "This token is unknown or was revoked. Ask the operator for one."
        else:
            with self._lock:
                token = self._codes.pop(_hash(code), None)
            token = self._unrevoked(token)
            message = "This address has been used or has expired. Sign in with a token."
        if token is None:
            raise _no_token(message)
        return token

    def begin_session(self, token: Token) -> str:
        """Begin a session and return the text for its cookie. Above the limits, the oldest session ends."""
        text = secrets.token_urlsafe(32)
        with self._lock:
            own = [key for key, other in self._sessions.items() if other.id == token.id]
            for key in own[: -MAX_SESSIONS_PER_TOKEN + 1 or None]:
                del self._sessions[key]
            self._sessions[_hash(text)] = token
        return text

    def end_session(self, text: str | None) -> None:
        with self._lock:
            self._sessions.pop(_hash(text or ""), None)

    def is_valid(self, caller: Caller) -> bool:
        """Whether the session of a caller is open, and its token was not revoked."""
        with self._lock:
            is_open = caller.session is None or caller.session in self._sessions
        return is_open and self._store.tokens.is_valid(caller.token.id)

    def _identify(self, request: Request) -> Caller:
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, secret = header.partition(" ")
            if scheme.lower() != "bearer":
                raise _no_token("The header Authorization does not have the form: Bearer cw_...")
            return Caller(self.sign_in(secret=secret.strip()))
        cookie = request.cookies.get(self.cookie)
        if cookie is None:
            raise _no_token(DEFAULTS[401][1])
        with self._lock:
            token = self._sessions.get(_hash(cookie))
        token = self._unrevoked(token)
        if token is None:
            raise _no_token("This session has ended. Log in again.")
        return Caller(token, _hash(cookie))

    def _unrevoked(self, token: Token | None) -> Token | None:
        return token if token is not None and self._store.tokens.is_valid(token.id) else None


class GuardedRoute(APIRoute):
    """A route that checks its caller first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request whose body is not read yet."""
        serve = super().get_route_handler()
        extra = self.openapi_extra or {}
        if ROLES not in extra:
            raise TypeError(f"{self.path}: no roles. Add the keywords of guarded(...) or public(...).")
        roles = frozenset(Role(name) for name in extra[ROLES])
        takes_json = self.body_field is not None

        async def checked(request: Request) -> Response:
            access: AccessControl = request.app.state.access
            if Role.DEVICE not in roles:
                request.scope[BODY_LIMIT] = SMALL_BODY
            if roles:
                request.state.caller = await run_in_threadpool(access.admit, request, roles)
            if takes_json:
                await _require_json(request)
            return await serve(request)

        return checked


def _hash(text: str) -> bytes:
    """What is kept of a code or a session: both are long and random, so no one can find one from its hash."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _refuse_forged(request: Request) -> None:
    """Another site's page can make a browser send our cookie, but not this header."""
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    if foreign or request.headers.get(CSRF_HEADER) != "1":
        message = "A change with a session's cookie needs the header X-Cloakwork: 1, sent from this site."
        raise ApiError(403, "forged", message)


def _no_token(message: str) -> ApiError:
    return ApiError(401, "no-token", message, headers={"WWW-Authenticate": 'Bearer realm="cloakwork"'})


async def _require_json(request: Request) -> None:
    """Refuse a body of another kind, and one that is too large, which FastAPI would call malformed."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, "not-json", "The body is not declared as JSON. Send Content-Type: application/json.")
    await request.body()


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
