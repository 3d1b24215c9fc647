"""Limits below the routes: the time that a client may take, and the size of a body."""

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from cloakwork.collect.api.api_settings import ApiSettings
from cloakwork.collect.api.error_responses import error_response
from cloakwork.errors import ApiError

BODY_LIMIT = "cloakwork.body"  # in a scope: the largest body of this request


class _TimedProtocol(H11Protocol):
    """One connection, aborted when a request does not begin, or a response is not read, for too long.

    The head of a request must be complete `head_s` seconds after the connection was made, or after the previous
    response; the body has a limit of its own.
    """

    head_s: float
    read_s: float
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._head_timer)
        _cancel(self._read_timer)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # a request is under way
            _cancel(self._head_timer)

    def on_response_complete(self) -> None:
        self._await_head()  # first, since the next request may have arrived already
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._read_timer)
        self._read_timer = self.loop.call_later(self.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._read_timer)

    def _await_head(self) -> None:
        _cancel(self._head_timer)
        self._head_timer = self.loop.call_later(self.head_s, self.transport.abort)


def timed_protocol(settings: ApiSettings) -> type[H11Protocol]:
    """The protocol of a server with these settings."""
    return type("TimedProtocol", (_TimedProtocol,), {"head_s": settings.head_s, "read_s": settings.read_s})


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class BodyLimitMiddleware:
    """Refuses a body while it is read, as soon as it is too large or takes too long.

    The limit is `most` bytes, or what the route has put into the scope under `BODY_LIMIT`.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # a proxy might read one request where we read two
            text = "The request has both Content-Length and Transfer-Encoding. Send one of them."
            await error_response(400, "invalid", text, {"Connection": "close"})(scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        end = time.monotonic() + self._seconds
        size, complete = 0, False

        async def receive_limited() -> Message:
            nonlocal size, complete
            if complete:  # only a disconnect can follow, at any time
                return await receive()
            most: int = scope.get(BODY_LIMIT, self._most)
            if declared.isdigit() and int(declared) > most:
                raise _too_large(most)
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                text = f"The body did not arrive within {self._seconds:g} s. Send it again, in smaller parts."
                raise ApiError(408, "too-slow", text, headers={"Connection": "close"}) from None
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > most:
                raise _too_large(most)
            return message

        await self._app(scope, receive_limited, send)


def _too_large(most: int) -> ApiError:
    text = f"The body has more than {most} bytes, the most allowed. Send it in smaller parts."
    return ApiError(413, "too-large", text, headers={"Connection": "close"})
