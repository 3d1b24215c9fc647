"""Every response: headers, the limit of a body, and one shape for errors, `{"error": {"code": ..., "message": ...}}`.

A message says what was given, what is allowed and what to do. It never repeats a rejected value: that may be a secret,
or something that a device should not have sent.
"""

import logging
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import Role
from cloakwork.errors import ApiError, BusyError, StoreAwayError, StoreError

log = logging.getLogger(__name__)

SHOWN = 3  # validation errors of one request in a message
RETRY_S = 2.0
BODY_BYTES = 1 << 20  # largest body of a device
BODY_LIMIT = "cloakwork.body"  # in a scope: the largest body of this request
LOGGED_FRAMES = 4
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; object-src 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}
TLS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
DEFAULTS = {
    400: ("invalid", "The request has both Content-Length and Transfer-Encoding. Send one of them."),
    401: ("no-token", "No valid token. Send Authorization: Bearer cw_..., or log in with POST /v1/session."),
    403: ("forbidden", "The role of this token does not allow this request."),
    404: ("not-found", "Nothing exists at this address."),
    405: ("wrong-method", "This address does not support this method. The header Allow lists those that it supports."),
    413: ("too-large", "The body is too large. Send it in smaller parts."),
    415: ("not-json", "The body is not declared as JSON. Send Content-Type: application/json."),
    422: ("invalid", "Something in the request is not allowed; the message says what is."),
    429: ("too-many", "Too many requests. Wait as long as the header Retry-After says."),
    500: ("internal", "The collector made a mistake. The operator can find it in the log."),
    503: ("busy", "The collector or its store is busy. Try again after the time in Retry-After."),
}
_REF = "#/components/schemas/{model}"
_CONTENT = {"application/json": {"schema": {"$ref": _REF.format(model="ErrorBody")}}}


class ErrorDetail(BaseModel):
    """A code for programs and a message for people."""

    code: str = Field(examples=["not-found"])
    message: str = Field(examples=["No site of this name is collected here. GET /v1/sites lists the sites."])


class ErrorBody(BaseModel):
    """The body of every error."""

    model_config = ConfigDict(title="Error")
    error: ErrorDetail


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in its one shape."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def documented_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Error responses of a route, for the OpenAPI document."""
    return {status: {"description": DEFAULTS[status][1], "content": _CONTENT} for status in statuses}


def error_schemas() -> dict[str, Any]:
    """The schema of an error, for the OpenAPI document."""
    schemas: dict[str, Any] = models_json_schema([(ErrorBody, "serialization")], ref_template=_REF)[1]["$defs"]
    return schemas


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of an app its one shape; `ResponseMiddleware` handles those that no one expects."""
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(BusyError, _busy)
    app.add_exception_handler(StoreError, _store_failed)


class ResponseMiddleware:
    """The outermost layer: adds security headers, hides tracebacks and counts requests.

    `on_response` is called with the method, route, status and seconds of each request.
    """

    def __init__(self, app: ASGIApp, *, tls: bool, on_response: Callable[[str, str, int, float], None]) -> None:
        self._app = app
        self._headers = HEADERS | (TLS_HEADERS if tls else {})
        self._on_response = on_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "other"
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as problem:  # no caller may see its text
            response = _unexpected(method, _route(scope), problem)
            if not status:
                await response(scope, receive, send_with_headers)
        finally:
            self._on_response(method, _route(scope), status, time.perf_counter() - began)


class BodyLimitMiddleware:
    """Refuses a body while it is read, as soon as it is too large.

    The limit is `BODY_BYTES`, or what the route has put into the scope under `BODY_LIMIT`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # a proxy might read one request where we read two
            await error_response(400, *DEFAULTS[400], {"Connection": "close"})(scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        size, complete = 0, False

        async def receive_limited() -> Message:
            nonlocal size, complete
            if complete:  # only a disconnect can follow, at any time
                return await receive()
            most: int = scope.get(BODY_LIMIT, BODY_BYTES)
            if declared.isdigit() and int(declared) > most:
                raise _too_large(most)
            message = await receive()
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > most:
                raise _too_large(most)
            return message

        await self._app(scope, receive_limited, send)


def _too_large(most: int) -> ApiError:
    text = f"The body has more than {most} bytes, the most allowed. Send it in smaller parts."
    return ApiError(413, "too-large", text, headers={"Connection": "close"})


def _route(scope: Scope) -> str:
    """The route's path with its parameters unfilled: metrics need few routes, and none that holds a name."""
    return str(getattr(scope.get("route"), "path", "none"))


def _unexpected(method: str, route: str, problem: BaseException) -> Response:
    """Answer for a bug. The log says where it happened, but omits the message, which may hold data."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "cloakwork" in frame.filename][-LOGGED_FRAMES:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in [*frames[-1:], *reversed(ours)])
    log.error("%s %s failed: %s at %s", method, route, type(problem).__name__, where)
    return error_response(500, *DEFAULTS[500])


async def _refused(_: Request, problem: Any) -> Response:
    headers = problem.headers
    if problem.retry_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_s)))
    return error_response(problem.status, problem.code, str(problem), headers)


async def _http_error(request: Request, problem: Any) -> Response:
    status = problem.status_code
    if status == 400:  # the body is not even UTF-8, or nested too deeply
        _count_malformed(request)
        return _not_json()
    code, message = DEFAULTS.get(status, ("error", "The request cannot be served."))
    return error_response(status, code, message, problem.headers)


async def _invalid(request: Request, problem: Any) -> Response:
    _count_malformed(request)
    errors = problem.errors()
    if any(error["type"] == "json_invalid" for error in errors):
        return _not_json()
    sentences = list(dict.fromkeys(_sentence(error) for error in errors))
    more = f" and {len(sentences) - SHOWN} more" if len(sentences) > SHOWN else ""
    message = f"{'; '.join(sentences[:SHOWN])}{more}. /openapi.json says what is allowed."
    return error_response(422, "invalid", message)


def _not_json() -> Response:
    return error_response(422, "invalid", "The body is not JSON. Send one JSON document in UTF-8.")


async def _gone(_: Request, problem: Exception) -> Response:
    del problem  # the client left while it sent a body: no one reads this, and the log should not fill up
    return _not_json()


async def _busy(_: Request, problem: Exception) -> Response:
    del problem
    message = "The collector cannot store readings right now; none of these was stored. Send them again later."
    return error_response(503, "busy", message, {"Retry-After": f"{RETRY_S:.0f}"})


async def _store_failed(_: Request, problem: Exception) -> Response:
    log.error("the store failed: %s", type(problem).__name__)
    if isinstance(problem, StoreAwayError):
        message = "The store is unavailable; nothing was changed. Try again later."
        return error_response(503, "store-away", message, {"Retry-After": f"{RETRY_S:.0f}"})
    return error_response(503, "store-failed", "The store cannot do this. The operator can find the reason in the log.")


def _count_malformed(request: Request) -> None:
    """Count a malformed request of a device, as the broker's messages are counted; its content is not kept."""
    caller = getattr(request.state, "caller", None)
    if caller is not None and caller.role is Role.DEVICE:
        token = caller.token
        request.app.state.context.intake.count(Reason.MALFORMED, token.site or "", token.sensor or "")


def _sentence(error: Mapping[str, Any]) -> str:
    """Say where something is wrong, and what is allowed there; names only keys that are ours."""
    where: Sequence[int | str] = error["loc"]
    kind = error["type"]
    if kind == "extra_forbidden":
        return f"{_path(where[:-1])}: an unknown key; leave it out"
    if kind == "missing":
        return f"{_path(where)}: it is missing"
    return f"{_path(where)}: {str(error['msg']).removeprefix('Value error, ').removesuffix('.')}"


def _path(where: Sequence[int | str]) -> str:
    """The path to a value, such as `body[3].seq`; parts that name a type of a union are left out."""
    parts = [part for part in where if isinstance(part, int) or (part.isidentifier() and part.islower())]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".") or "request"
