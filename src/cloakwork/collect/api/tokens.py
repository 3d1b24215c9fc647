"""Tokens: `GET`, `POST` and `DELETE` under `/v1/tokens`, for operators."""

import logging
from enum import Enum
from typing import Annotated

from fastapi import APIRouter, Path

from cloakwork.collect.api.access_models import NewTokenBody, TokenIn, TokensBody, new_token_body, token_body
from cloakwork.collect.api.auth import Caller
from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import CallerOf, allow
from cloakwork.collect.api.hub import Ending
from cloakwork.collect.api.parts import Parts, PartsOf
from cloakwork.collect.records import Role, Token

log = logging.getLogger(__name__)


async def list_tokens(parts: PartsOf, caller: CallerOf) -> TokensBody:
    """All tokens, revoked ones too, the oldest first; an operator of one site sees those of that site."""
    return TokensBody(items=[token_body(token) for token in await _managed(parts, caller)])


async def make_token(asked: TokenIn, parts: PartsOf, caller: CallerOf) -> NewTokenBody:
    """Make a token. Its secret is in this answer and nowhere else: keep it, it cannot be shown again."""
    if asked.site is None and caller.token.site is not None:
        raise Refusal(403, "forbidden", f"This token manages {caller.token.site} only: give that site.")
    if asked.site is not None:
        watched = parts.site(asked.site, caller)
        if asked.sensor is not None and asked.sensor not in watched.site.sensor_ids:
            raise Refusal(
                422, "unknown-sensor", "The site has no sensor of this name. GET /v1/sites/{site} lists them."
            )
    token, secret = await parts.work.read(
        parts.store.new_token, Role(asked.role), asked.site, asked.sensor, asked.label
    )
    parts.gate.tokens.changed()
    log.info("token %s made token %s of role %s", caller.token.id, token.id, token.role)
    return new_token_body(token, secret)


async def revoke_token(
    token: Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Its id, not its secret.")],
    parts: PartsOf,
    caller: CallerOf,
) -> None:
    """Revoke a token: from now on it opens nothing, and its sessions and streams end."""
    if not any(one.id == token for one in await _managed(parts, caller)):
        raise Refusal(404, "not-found", "There is no token with this id. GET /v1/tokens lists them.")
    await parts.work.read(parts.store.revoke_token, token)
    parts.gate.tokens.forget(token)
    parts.gate.sessions.forget(token)
    parts.hub.end(Ending.REVOKED, token=token)
    log.info("token %s revoked token %s", caller.token.id, token)


async def _managed(parts: Parts, caller: Caller) -> list[Token]:
    tokens = await parts.work.read(parts.store.tokens)
    return [token for token in tokens if caller.token.site in {None, token.site}]


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    operator = allow(Role.OPERATOR)
    tags: list[str | Enum] = ["administration"]
    router.get("/v1/tokens", tags=tags, responses=responses(401, 403, 429, 503), openapi_extra=operator)(list_tokens)
    router.post(
        "/v1/tokens",
        tags=tags,
        status_code=201,
        responses=responses(401, 403, 404, 408, 413, 415, 422, 429, 503),
        openapi_extra=operator,
    )(make_token)
    router.delete(
        "/v1/tokens/{token}",
        tags=tags,
        status_code=204,
        responses=responses(401, 403, 404, 422, 429, 503),
        openapi_extra=operator,
    )(revoke_token)
