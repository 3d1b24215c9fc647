"""One shape for every error: `{"error": {"code": ..., "message": ...}}`.

A message says what was given, what is allowed and what to do. It never repeats a value that was refused: that may be a
secret, or something that a device should not have sent.
"""

import logging
import math
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloakwork.collect.problems import Busy
from cloakwork.collect.store import StoreAwayError, StoreError

log = logging.getLogger(__name__)

SHOWN = 3  # errors of one request that are told
RETRY_S = 2.0
TOLD_FRAMES = 4
_REF = "#/components/schemas/{model}"
_CONTENT = {"application/json": {"schema": {"$ref": _REF.format(model="ErrorBody")}}}


class Said(BaseModel):
    """A code for programs and a message for people."""

    code: str = Field(examples=["not-found"])
    message: str = Field(examples=["There is no site of this name here. GET /v1/sites lists those that there are."])


class ErrorBody(BaseModel):
    """What every error looks like."""

    model_config = ConfigDict(title="Error")
    error: Said


class Refusal(HTTPException):
    """A request that is not served."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_s: float | None = None, headers: Mapping[str, str] = {}
    ) -> None:
        told = dict(headers)
        if retry_s is not None:
            told["Retry-After"] = str(max(1, math.ceil(retry_s)))
        super().__init__(status, message, told or None)
        self.code = code


def unknown_site() -> Refusal:
    """There is no such site, or the token is not for it: the two look alike."""
    return Refusal(404, "not-found", "There is no site of this name here. GET /v1/sites lists those that there are.")


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in its one shape."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Errors that a route may answer with, for the OpenAPI document."""
    return {status: {"description": _USUAL[status][1], "content": _CONTENT} for status in statuses}


def schemas() -> dict[str, Any]:
    """The shape itself, for the same document."""
    found: dict[str, Any] = models_json_schema([(ErrorBody, "serialization")], ref_template=_REF)[1]["$defs"]
    return found


def install(app: FastAPI) -> None:
    """Give every error of an app its one shape; what is not foreseen here ends in `unforeseen`."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Busy, _busy)
    app.add_exception_handler(StoreError, _store_failed)


def unforeseen(method: str, route: str, problem: BaseException) -> Response:
    """Answer for a mistake of ours. The log has where it happened, and not the message, which may hold data."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "cloakwork" in frame.filename][-TOLD_FRAMES:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in [*frames[-1:], *reversed(ours)])
    log.error("%s %s failed: %s at %s", method, route, type(problem).__name__, where)
    return error_response(500, *_USUAL[500])


async def _refused(request: Request, problem: Exception) -> Response:
    if isinstance(problem, Refusal):
        return error_response(problem.status_code, problem.code, problem.detail, problem.headers)
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    if status == 400:  # the body is not even UTF-8, or nested too deeply
        request.app.state.malformed(request)
        return _not_json()
    headers = problem.headers if isinstance(problem, HTTPException) else None
    return error_response(status, *_USUAL.get(status, ("error", "The request cannot be served.")), headers)


async def _invalid(request: Request, problem: Exception) -> Response:
    request.app.state.malformed(request)
    errors = problem.errors() if isinstance(problem, RequestValidationError) else []
    if any(error["type"] == "json_invalid" for error in errors):
        return _not_json()
    told = list(dict.fromkeys(_sentence(error) for error in errors))
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return error_response(422, "invalid", f"{'; '.join(told[:SHOWN])}{more}. /openapi.json says what is allowed.")


def _not_json() -> Response:
    return error_response(422, "invalid", "The body is not JSON. Send one JSON document in UTF-8.")


async def _busy(_: Request, problem: Exception) -> Response:
    del problem
    message = "The collector cannot take readings in just now; none of these was stored. Send them again later."
    return error_response(503, "busy", message, {"Retry-After": f"{RETRY_S:.0f}"})


async def _store_failed(_: Request, problem: Exception) -> Response:
    log.error("the store failed: %s", type(problem).__name__)
    if isinstance(problem, StoreAwayError):
        message = "The store cannot be used just now; nothing was changed. Try again later."
        return error_response(503, "store-away", message, {"Retry-After": f"{RETRY_S:.0f}"})
    return error_response(503, "store-failed", "The store cannot do this. Its operator finds the reason in the log.")


def _sentence(error: Mapping[str, Any]) -> str:
    """Where something is wrong, and what is allowed there. Names of keys are told only where they are ours."""
    where: Sequence[int | str] = error["loc"]
    kind = error["type"]
    if kind == "extra_forbidden":
        return f"{_place(where[:-1])}: a key that is not known there; leave it out"
    if kind == "missing":
        return f"{_place(where)}: it is missing"
    return f"{_place(where)}: {str(error['msg']).removeprefix('Value error, ').removesuffix('.')}"


def _place(where: Sequence[int | str]) -> str:
    """The way to a value, such as `body[3].seq`; parts that name a type of a union are left out."""
    parts = [part for part in where if isinstance(part, int) or (part.isidentifier() and part.islower())]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".") or "request"


_USUAL = {
    401: ("no-token", "No valid token. Send Authorization: Bearer cw_..., or log in with POST /v1/session."),
    403: ("forbidden", "The role of this token does not allow this."),
    404: ("not-found", "There is nothing at this address."),
    405: ("wrong-method", "This address does not take this method. The header Allow lists those that it takes."),
    408: ("too-slow", "The body did not arrive in time. Send it again, in smaller parts."),
    413: ("too-large", "The body is too large. Send it in smaller parts."),
    415: ("not-json", "The body is not declared as JSON. Send Content-Type: application/json."),
    422: ("invalid", "Something in the request is not allowed; the message says what is."),
    429: ("too-many", "Too many requests. Wait as long as the header Retry-After says."),
    500: ("internal", "The collector made a mistake. Its operator finds where in the log."),
    503: ("busy", "The collector or its store is busy. Try again after the time in Retry-After."),
}
