"""Tokens (`/v1/tokens`, for operators), sessions of the page (`/v1/session`), the page itself, and what watches."""

import logging
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field, model_validator

from cloakwork.collect.api.access_control import (
    BODY_ERRORS,
    READERS,
    SESSION_S,
    Caller,
    CallerDep,
    GuardedRoute,
    guarded,
    public,
)
from cloakwork.collect.api.route_context import (
    ApiContext,
    ContextDep,
    Name,
    PageBody,
    RequestModel,
    SensorId,
)
from cloakwork.collect.storage import Role, Token
from cloakwork.errors import ApiError, InputError

log = logging.getLogger(__name__)
router = APIRouter(route_class=GuardedRoute)
_OPERATOR = (Role.OPERATOR,)


@dataclass(frozen=True)
class NewTokenBody(Token):
    """A new token with its secret, which is shown only once."""

    secret: Annotated[str, Field(examples=["cw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])]


class TokenIn(RequestModel):
    """A token to make: a device's names its site and sensor, any other may be limited to one site."""

    role: Annotated[Literal["device", "analyst", "operator"], Field(examples=["analyst"])]
    site: Name | None = None
    sensor: SensorId | None = None
    label: Annotated[str, Field(max_length=64, examples=["wall screen"])] = ""


class SessionIn(RequestModel):
    """A token to log in with, or the one-time code of an address."""

    token: Annotated[str | None, Field(max_length=64, examples=[f"cw_{43 * 'A'}"])] = None
    code: Annotated[str | None, Field(max_length=64, description="Of an address that ends in #code=...")] = None

    @model_validator(mode="after")
    def _either(self) -> "SessionIn":
        if (self.token is None) == (self.code is None):
            raise ValueError("give either token or code")
        return self


@router.get("/v1/tokens", tags=["administration"], **guarded(_OPERATOR))
def list_tokens(context: ContextDep, caller: CallerDep) -> PageBody[Token]:
    """All tokens including revoked ones, the oldest first; an operator of one site sees those of that site."""
    return PageBody(items=_managed(context, caller))


@router.post("/v1/tokens", tags=["administration"], status_code=201, **guarded(_OPERATOR, 404, *BODY_ERRORS))
def make_token(body: TokenIn, context: ContextDep, caller: CallerDep) -> NewTokenBody:
    """Make a token. Its secret is in this response only: keep it, it cannot be shown again."""
    if body.site is None and caller.token.site is not None:
        message = f'This token manages {caller.token.site} only: add "site": "{caller.token.site}".'
        raise ApiError(403, "forbidden", message)
    if body.site is not None:
        watched = context.site(body.site, caller)
        if body.sensor is not None and body.sensor not in watched.ids:
            message = "The site has no sensor of this name. GET /v1/sites/{site} lists them."
            raise ApiError(422, "unknown-sensor", message)
    try:
        token, secret = context.store.tokens.create(Role(body.role), body.site, body.sensor, body.label)
    except InputError as problem:
        raise ApiError(422, "invalid", f"body: {problem}") from None
    log.info("token %s made token %s of role %s", caller.token.id, token.id, token.role)
    return NewTokenBody(**asdict(token), secret=secret)


@router.delete("/v1/tokens/{token}", tags=["administration"], status_code=204, **guarded(_OPERATOR, 404, 422))
def revoke_token(
    token: Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Its id, not its secret.")],
    context: ContextDep,
    caller: CallerDep,
) -> None:
    """Revoke a token: it opens nothing from now on, its sessions end, and its streams within seconds."""
    if token not in {managed.id for managed in _managed(context, caller)}:
        raise ApiError(404, "not-found", "No token has this id. GET /v1/tokens lists them.")
    context.store.tokens.revoke(token)
    log.info("token %s revoked token %s", caller.token.id, token)


def _managed(context: ApiContext, caller: Caller) -> list[Token]:
    tokens = context.store.tokens.list_all()
    return [token for token in tokens if caller.token.site in {None, token.site}]


@router.post("/v1/session", tags=["session"], **public(401, 403, *BODY_ERRORS, 503))
def log_in(body: SessionIn, request: Request, response: Response, context: ContextDep) -> Token:
    """Begin a session: the response sets a cookie that stands for the token until it is revoked, or for half a day."""
    access = context.access
    token = access.sign_in(secret=body.token, code=body.code)
    if token.role is Role.DEVICE:
        message = "The token of a device opens no session: it can only send readings."
        raise ApiError(403, "forbidden", message)
    access.end_session(request.cookies.get(access.cookie))
    text, options = access.begin_session(token), access.cookie_options(request)
    response.set_cookie(access.cookie, text, max_age=int(SESSION_S), **options)
    return token


@router.get("/v1/session", tags=["session"], **guarded(READERS))
def show_session(caller: CallerDep) -> Token:
    """The caller's token, without its secret."""
    return caller.token


@router.delete("/v1/session", tags=["session"], status_code=204, **guarded(READERS))
def log_out(request: Request, response: Response, context: ContextDep) -> None:
    """End the session, and within seconds its streams."""
    access = context.access
    access.end_session(request.cookies.get(access.cookie))
    response.delete_cookie(access.cookie, **access.cookie_options(request))


@router.get("/healthz", tags=["watching"], **public())
async def healthz() -> dict[str, str]:
    """Whether the process answers; for load balancers and supervisors."""
    return {"status": "ok"}  # more needs a token


@router.get("/metrics", tags=["watching"], response_class=PlainTextResponse, **guarded(READERS))
def metrics(context: ContextDep, caller: CallerDep) -> Response:
    """Figures for Prometheus, of all sites together: a token for one site does not see them."""
    if caller.token.site is not None:
        message = "The metrics cover all sites, and this token is for one. Use a token for all sites."
        raise ApiError(403, "forbidden", message)
    return Response(generate_latest(context.metrics.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False, **guarded(tuple(Role)))
async def document(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


PAGE = StaticFiles(packages=[("cloakwork.collect", "page")])


@router.get("/", include_in_schema=False, **public())
async def index(request: Request) -> Response:
    """The page."""
    return await static(request, "index.html")


@router.get("/static/{name}", include_in_schema=False, **public())
async def static(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A file of the page."""
    response = await PAGE.get_response(name, request.scope)
    response.headers["Cache-Control"] = "no-cache"
    return response
