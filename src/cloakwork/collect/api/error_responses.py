"""Every response: headers, the limit of a body, and one shape for errors, `{"error": {"code": ..., "message": ...}}`.

A message says what was given, what is allowed and what to do. It never repeats a rejected value: that may be a secret,
or something that a device should not have sent.
"""

import logging
import math
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import Role
from cloakwork.errors import ApiError, BusyError, StoreError

log = logging.getLogger(__name__)

SHOWN = 3  # validation errors of one request in a message
RETRY = {"Retry-After": "2"}
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
    503: ("busy", "The collector or its store is busy or away; nothing was changed. Try again later."),
}


_TEXTS = {
    "code": {"type": "string", "description": "For programs.", "examples": ["not-found"]},
    "message": {
        "type": "string",
        "description": "For people.",
        "examples": ["No site of this name is collected here."],
    },
}
_ERROR = {"type": "object", "required": ["code", "message"], "properties": _TEXTS}
ERROR_SCHEMA = {"type": "object", "required": ["error"], "properties": {"error": _ERROR}}


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in its one shape."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def documented_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Error responses of a route, for the OpenAPI document; any may answer with 500."""
    content = {"application/json": {"schema": ERROR_SCHEMA}}
    return {status: {"description": DEFAULTS[status][1], "content": content} for status in (*statuses, 500)}


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of an app its one shape; `ResponseMiddleware` handles those that no one expects."""
    for kind in (ApiError, HTTPException, RequestValidationError, ClientDisconnect, BusyError, StoreError):
        app.add_exception_handler(kind, _respond)


class ResponseMiddleware:
    """The outermost layer: limits bodies, adds security headers, hides tracebacks and counts requests.

    A body has at most `BODY_BYTES`, or what the route has put into the scope under `BODY_LIMIT`. `on_response` is
    called with the method, route, status and seconds of each request.
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
                headers.update(self._headers)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "other"
        headers = Headers(scope=scope)
        try:
            if "content-length" in headers and "transfer-encoding" in headers:
                # a proxy might read one request where we read two
                refused = error_response(400, *DEFAULTS[400], {"Connection": "close"})
                await refused(scope, receive, send_with_headers)
            else:
                await self._app(scope, _limited(scope, headers, receive), send_with_headers)
        except Exception as problem:  # no caller may see its text
            response = _unexpected(method, _route(scope), problem)
            if not status:
                await response(scope, receive, send_with_headers)
        finally:
            self._on_response(method, _route(scope), status, time.perf_counter() - began)


def _limited(scope: Scope, headers: Headers, receive: Receive) -> Receive:
    """Receive a body that is refused while it is read, as soon as it is too large."""
    declared, size, complete = headers.get("content-length", "0"), 0, False

    async def receive_limited() -> Message:
        nonlocal size, complete
        if complete:  # only a disconnect can follow, at any time
            return await receive()
        most: int = scope.get(BODY_LIMIT, BODY_BYTES)
        too_large = declared.isdigit() and int(declared) > most
        if not too_large:
            message = await receive()
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
        if too_large or size > most:
            text = f"The body has more than {most} bytes, the most allowed. Send it in smaller parts."
            raise ApiError(413, "too-large", text, headers={"Connection": "close"})
        return message

    return receive_limited


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


async def _respond(request: Request, problem: Any) -> Response:
    """The response to an error that a route or a library raises."""
    match problem:
        case ApiError():
            wait = {} if problem.retry_s is None else {"Retry-After": str(max(1, math.ceil(problem.retry_s)))}
            return error_response(problem.status, problem.code, str(problem), problem.headers | wait)
        case RequestValidationError():
            _count_malformed(request)
            errors = problem.errors()
            if not any(error["type"] == "json_invalid" for error in errors):
                sentences = list(dict.fromkeys(_sentence(error) for error in errors))
                more = f" and {len(sentences) - SHOWN} more" if len(sentences) > SHOWN else ""
                message = f"{'; '.join(sentences[:SHOWN])}{more}. /openapi.json says what is allowed."
                return error_response(422, "invalid", message)
        case HTTPException(status_code=400):  # the body is not even UTF-8, or nested too deeply
            _count_malformed(request)
        case HTTPException():
            code, message = DEFAULTS.get(problem.status_code, ("error", "The request cannot be served."))
            return error_response(problem.status_code, code, message, problem.headers)
        case BusyError():
            return error_response(503, *DEFAULTS[503], RETRY)
        case StoreError():
            log.error("the store failed: %s", type(problem).__name__)
            return error_response(503, *DEFAULTS[503], RETRY)
    # nobody reads this where the client left while it sent a body
    return error_response(422, "invalid", "The body is not JSON. Send one JSON document in UTF-8.")


def _count_malformed(request: Request) -> None:
    """Count a malformed request of a device, as the broker's messages are counted; its content is not kept."""
    caller = getattr(request.state, "caller", None)
    if caller is not None and caller.role is Role.DEVICE:
        token = caller.token
        request.app.state.context.intake.count(Reason.MALFORMED, token.site or "", token.sensor or "")


def _sentence(error: Mapping[str, Any]) -> str:
    """Say where something is wrong, and what is allowed there; names only keys that are ours."""
    where = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    text = str(error["msg"]).removeprefix("Value error, ").removesuffix(".")
    text = {"extra_forbidden": "an unknown key; leave it out", "missing": "it is missing"}.get(error["type"], text)
    # parts that name a type of a union are left out
    parts = [part for part in where if isinstance(part, int) or (part.isidentifier() and part.islower())]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return f"{path.lstrip('.') or 'request'}: {text}"
