"""Access to routes: every route declares the roles that may use it, and is checked before its body is read.

A route takes the keywords of `guarded(...)` or `public(...)`; creating one without raises an error, so no route can be
open by mistake.
"""

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from cloakwork.collect.api.api_settings import ApiSettings
from cloakwork.collect.api.credentials import Caller, OneTimeCodes, SessionTable, TokenCache
from cloakwork.collect.api.error_responses import documented_errors
from cloakwork.collect.api.http_limits import BODY_LIMIT
from cloakwork.collect.api.worker_threads import WorkerThreads
from cloakwork.collect.storage import Role, Store
from cloakwork.errors import ApiError

READERS = (Role.ANALYST, Role.OPERATOR)
ROLES = "x-roles"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
CSRF_HEADER = "x-cloakwork"
INGRESS = re.compile(r"(/[\w-]+)+", re.ASCII)  # where Home Assistant's proxy shows the page
BODY_ERRORS = (400, 413, 415, 422)


def guarded(roles: tuple[Role, ...], *errors: int) -> dict[str, Any]:
    """Keywords of a route for these roles; `errors` are the statuses it may answer with besides the usual ones."""
    extra = {ROLES: [role.value for role in roles], "security": [{"token": []}, {"session": []}]}
    return {"openapi_extra": extra, "responses": documented_errors(401, 403, *errors, 503)}


def public(*errors: int) -> dict[str, Any]:
    """Keywords of a route that needs no token: nothing in its response may depend on stored data."""
    return {"openapi_extra": {ROLES: [], "security": []}, "responses": documented_errors(*errors)}


class GuardedRoute(APIRoute):
    """A route that checks its caller first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of a request whose body is not read yet."""
        serve = super().get_route_handler()
        extra = self.openapi_extra or {}
        if ROLES not in extra:
            raise TypeError(f"{self.path}: no roles. Add the keywords of guarded(...) or public(...).")
        roles = frozenset(Role(name) for name in extra[ROLES])
        takes_json = self.body_field is not None

        async def checked(request: Request) -> Response:
            access: AccessControl = request.app.state.access
            if Role.DEVICE not in roles:
                request.scope[BODY_LIMIT] = access.settings.small_bytes
            if not roles:
                await _require_json(request, takes_json)
                return await serve(request)
            caller = await access.admit(request, roles)
            request.state.caller = caller
            await _require_json(request, takes_json)
            return await serve(request)

        return checked


class AccessControl:
    """Identifies callers and checks their roles."""

    def __init__(self, store: Store, workers: WorkerThreads, settings: ApiSettings) -> None:
        self.settings = settings
        self.tokens = TokenCache(store, workers, seconds=settings.token_s)
        self.codes = OneTimeCodes(seconds=settings.code_s)
        self.sessions = SessionTable(settings.sessions, settings.sessions_per_token, settings.session_s)

    @property
    def cookie(self) -> str:
        """Name of the cookie; the prefix makes browsers accept it from this host and by https only."""
        return "__Host-cloakwork" if self.settings.tls else "cloakwork"

    def cookie_path(self, request: Request) -> str:
        """Where browsers send the cookie: under Home Assistant's ingress not to other pages of the same origin."""
        below = request.headers.get("X-Ingress-Path", "")
        return f"{below}/" if INGRESS.fullmatch(below) and not self.settings.tls else "/"

    async def admit(self, request: Request, roles: frozenset[Role]) -> Caller:
        """The caller of a request, if its role is allowed."""
        caller = await self._identify(request)
        if caller.role not in roles:
            allowed = " or ".join(sorted(roles))
            message = f"This request needs a token of role {allowed}; yours has role {caller.role}."
            raise ApiError(403, "forbidden", message)
        if caller.session is not None and request.method not in SAFE_METHODS:
            _refuse_forged(request)
        return caller

    async def log_in(self, secret: str) -> Caller:
        """The caller with this secret."""
        token = await self.tokens.find(secret)
        if token is None:
            raise _no_token("This token is unknown or was revoked. Ask the operator for one.")
        return Caller(token)

    async def redeem(self, code: str) -> Caller:
        """The caller for whom this one-time code was made."""
        token = self.codes.redeem(code)
        if token is None or not await self.tokens.is_valid(token):
            raise _no_token("This address has been used or has expired. Sign in with a token.")
        return Caller(token)

    async def _identify(self, request: Request) -> Caller:
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, secret = header.partition(" ")
            if scheme.lower() != "bearer":
                raise _no_token("The header Authorization does not have the form: Bearer cw_...")
            return await self.log_in(secret.strip())
        cookie = request.cookies.get(self.cookie)
        if cookie is None:
            raise _no_token("No token. Send Authorization: Bearer cw_..., or log in with POST /v1/session.")
        caller = self.sessions.find(cookie)
        if caller is not None and not await self.tokens.is_valid(caller.token):
            self.sessions.forget(caller.token.id)
            caller = None
        if caller is None:
            raise _no_token("This session has ended. Log in again.")
        return caller


def _refuse_forged(request: Request) -> None:
    """Another site's page can make a browser send our cookie, but not this header."""
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    if foreign or request.headers.get(CSRF_HEADER) != "1":
        message = "A change with a session's cookie needs the header X-Cloakwork: 1, sent from this site."
        raise ApiError(403, "forged", message)


def _no_token(message: str) -> ApiError:
    return ApiError(401, "no-token", message, headers={"WWW-Authenticate": 'Bearer realm="cloakwork"'})


async def _require_json(request: Request, takes_json: bool) -> None:
    """Refuse a body of another kind, and one that is too large, which FastAPI would call malformed."""
    if not takes_json:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, "not-json", "The body is not declared as JSON. Send Content-Type: application/json.")
    await request.body()


def _caller(connection: HTTPConnection) -> Caller:
    caller: Caller = connection.state.caller
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
