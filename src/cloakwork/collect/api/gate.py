"""The one way in: every route says which roles may use it, and is checked before its body is read.

A route is made with `openapi_extra=allow(...)` or `openapi_extra=anyone()`; one without is refused when the app is
made, so no route can be open by mistake.
"""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Annotated, Any

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from cloakwork.collect.api.auth import Caller, Codes, Sessions, Tokens
from cloakwork.collect.api.errors import Refusal
from cloakwork.collect.api.limits import BODY, AtOnce, Buckets, Turns, address_of
from cloakwork.collect.api.settings import Settings
from cloakwork.collect.records import Role

READERS = (Role.ANALYST, Role.OPERATOR)
ROLES = "x-roles"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
CSRF_HEADER = "x-cloakwork"
READING_BYTES = 128  # that a reading may have in a body without counting for more than one


def allow(*roles: Role) -> dict[str, Any]:
    """A route that these roles may use."""
    return {ROLES: [role.value for role in roles], "security": [{"token": []}, {"session": []}]}


def anyone() -> dict[str, Any]:
    """A route that needs no token: nothing that it says may depend on what is stored."""
    return {ROLES: [], "security": []}


class Guarded(APIRoute):
    """A route behind the gate."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for it: what to call with a request whose body was not read yet."""
        serve = super().get_route_handler()
        extra = self.openapi_extra or {}
        if ROLES not in extra:
            raise TypeError(f"{self.path}: no roles. Give openapi_extra=allow(...) or anyone().")
        roles = frozenset(Role(name) for name in extra[ROLES])
        takes_json = self.body_field is not None

        async def guarded(request: Request) -> Response:
            gate: Gate = request.app.state.gate
            if Role.DEVICE not in roles:
                request.scope[BODY] = gate.settings.small_bytes
            if not roles:
                _refuse_other_content(request, takes_json)
                if takes_json:
                    gate.charge_stranger(request)
                return await serve(request)
            caller = await gate.admit(request, roles)
            _refuse_other_content(request, takes_json)
            request.state.caller = caller
            with gate.at_once(caller):
                if takes_json and caller.role is Role.DEVICE:
                    # before anyone looks at what it holds, which takes time too
                    request.state.paid = gate.charge_body(caller, len(await request.body()))
                return await serve(request)

        return guarded


class Gate:
    """Checks who asks, how often, and whether they may."""

    def __init__(self, tokens: Tokens, sessions: Sessions, codes: Codes, settings: Settings) -> None:
        self.tokens = tokens
        self.sessions = sessions
        self.codes = codes
        self.settings = settings
        self._failures = Buckets(rate=settings.failure_rate, burst=settings.failure_burst)
        self._strangers = Buckets(rate=settings.sign_in_rate, burst=settings.sign_in_burst)
        self._at_once = AtOnce()
        self._turns = Turns()
        readers = Buckets(rate=settings.reader_rate, burst=settings.reader_burst)
        devices = Buckets(rate=settings.device_rate, burst=settings.device_burst)
        self._rates = {Role.DEVICE: devices, Role.ANALYST: readers, Role.OPERATOR: readers}

    @property
    def cookie(self) -> str:
        """Name of the cookie; by the prefix browsers take it from this host and by https only."""
        return "__Host-cloakwork" if self.settings.tls else "cloakwork"

    async def admit(self, request: Request, roles: frozenset[Role]) -> Caller:
        """Who asks, if they may."""
        caller = await self._caller(request)
        self.charge(caller, 1.0)
        if caller.role not in roles:
            wanted = " or ".join(sorted(roles))
            raise Refusal(403, "forbidden", f"This needs a token of role {wanted}; yours is of role {caller.role}.")
        if caller.session is not None and request.method not in SAFE_METHODS:
            self._refuse_forged(request)
        return caller

    def charge(self, caller: Caller, amount: float) -> None:
        """Count requests of a token; refused where there are too many."""
        wait = self._rates[caller.role].take(caller.token.id, amount)
        if wait > 0:
            raise Refusal(
                429,
                "too-many",
                "This token makes more requests than are allowed. Wait as long as the header Retry-After says.",
                retry_s=wait,
            )

    def charge_body(self, caller: Caller, size: int) -> float:
        """Count a body by its length; says for how many requests it counted."""
        amount = max(1.0, size / (READING_BYTES * self.settings.readings_per_request))
        self.charge(caller, amount - 1.0)
        return amount

    def charge_stranger(self, request: Request) -> None:
        """Count a request with a body that needs no token, for its address; refused where there are too many."""
        wait = self._strangers.take(address_of(request.scope))
        if wait > 0:
            text = "Too many attempts to sign in came from this address. Wait as long as the header Retry-After says."
            raise Refusal(429, "too-many", text, retry_s=wait)

    def at_once(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a request as under way while the block runs."""
        device = caller.role is Role.DEVICE
        most = self.settings.device_at_once if device else self.settings.reader_at_once
        return self._at_once.one(caller.token.id, most)

    def turn(self, caller: Caller, what: str) -> AbstractAsyncContextManager[None]:
        """Wait until no other request of this token does the same, so that nobody has all threads at work."""
        return self._turns.one(f"{caller.token.id} {what}")

    async def log_in(self, request: Request, secret: str) -> Caller:
        """The caller with this secret; failures count for the address that they come from.

        A good one is let in however many wrong ones came from there: others may share the address.
        """
        suspect = self._failures.wait(address_of(request.scope)) > 0 and not self.tokens.knows(secret)
        token = await self.tokens.find(secret, suspect=suspect)
        if token is None:
            raise self._failed(request, "This token is not known here, or it was revoked. Ask the operator for one.")
        return Caller(token)

    async def redeem(self, request: Request, code: str) -> Caller:
        """The caller who was given this code, once."""
        token = self.codes.take(code)
        if token is None or not await self.tokens.holds(token):
            raise self._failed(request, "This address was used already or is too old; ask for a token.")
        return Caller(token)

    def _failed(self, request: Request, message: str) -> Refusal:
        wait = self._failures.take(address_of(request.scope))
        if wait > 0:
            text = "Too many wrong tokens came from this address. Wait as long as the header Retry-After says."
            return Refusal(429, "too-many-failures", text, retry_s=wait)
        return _unknown(message)

    async def _caller(self, request: Request) -> Caller:
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, secret = header.partition(" ")
            if scheme.lower() != "bearer":
                raise _unknown("The header Authorization is not of the form: Bearer cw_...")
            return await self.log_in(request, secret.strip())
        text = request.cookies.get(self.cookie)
        if text is None:
            raise _unknown("No token. Send Authorization: Bearer cw_..., or log in with POST /v1/session.")
        caller = self.sessions.find(text)
        if caller is not None and not await self.tokens.holds(caller.token):
            self.sessions.forget(caller.token.id)
            caller = None
        if caller is None:
            raise _unknown("This session has ended. Log in again.")
        return caller

    def _refuse_forged(self, request: Request) -> None:
        """A page of another site can make a browser send our cookie, but not this header."""
        foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
        if foreign or request.headers.get(CSRF_HEADER) != "1":
            text = "A change that is asked for with a session's cookie needs the header X-Cloakwork: 1, from this site."
            raise Refusal(403, "forged", text)


def _unknown(message: str) -> Refusal:
    return Refusal(401, "no-token", message, headers={"WWW-Authenticate": 'Bearer realm="cloakwork"'})


def _refuse_other_content(request: Request, takes_json: bool) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if takes_json and kind != "application/json":
        raise Refusal(415, "not-json", "The body is not declared as JSON. Send Content-Type: application/json.")


def _caller(connection: HTTPConnection) -> Caller:
    caller: Caller = connection.state.caller
    return caller


CallerOf = Annotated[Caller, Depends(_caller)]
