"""Sessions of the page: log in with a token or a one-time code, ask who is logged in, log out."""

from fastapi import APIRouter, Request, Response

from cloakwork.collect.api.access_models import SessionBody, SessionIn
from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow, anyone
from cloakwork.collect.api.hub import Ending
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.records import Role, Token


async def log_in(asked: SessionIn, request: Request, response: Response, parts: PartsOf) -> SessionBody:
    """Begin a session: the answer sets a cookie that stands for the token until it is revoked, or for half a day."""
    gate = parts.gate
    if asked.code is not None:
        caller = await gate.redeem(request, asked.code)
    else:
        caller = await gate.log_in(request, asked.token or "")
    if caller.role is Role.DEVICE:
        raise Refusal(403, "forbidden", "The token of a device opens no session: it can only send readings.")
    gate.charge(caller, 1.0)
    old = request.cookies.get(gate.cookie)
    before = None if old is None else gate.sessions.find(old)
    if before is not None and before.session is not None:
        gate.sessions.end(before.session)
        parts.hub.end(Ending.REVOKED, session=before.session)
    response.set_cookie(
        gate.cookie,
        gate.sessions.begin(caller.token),
        max_age=int(parts.settings.session_s),
        path="/",
        secure=parts.settings.tls,
        httponly=True,
        samesite="strict",
    )
    return _session(caller.token)


async def show_session(caller: CallerOf) -> SessionBody:
    """Who is logged in, or whose token this is."""
    return _session(caller.token)


async def log_out(response: Response, parts: PartsOf, caller: CallerOf) -> None:
    """End the session; its streams end too."""
    if caller.session is not None:
        parts.gate.sessions.end(caller.session)
        parts.hub.end(Ending.REVOKED, session=caller.session)
    response.delete_cookie(parts.gate.cookie, path="/", secure=parts.settings.tls, httponly=True, samesite="strict")


def _session(token: Token) -> SessionBody:
    return SessionBody(role=token.role, site=token.site, label=token.label)


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    own = responses(401, 403, 429, 503)
    router.post(
        "/v1/session",
        tags=["session"],
        responses=own | responses(408, 413, 415, 422),
        openapi_extra=anyone(),
    )(log_in)
    router.get("/v1/session", tags=["session"], responses=own, openapi_extra=allow(*READERS))(show_session)
    router.delete("/v1/session", tags=["session"], status_code=204, responses=own, openapi_extra=allow(*READERS))(
        log_out
    )
