"""Around every answer: safe headers, an error instead of a traceback, and a count."""

import time
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakwork.collect.api.errors import unforeseen

POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TRANSPORT = {"Strict-Transport-Security": "max-age=31536000"}
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

Counted = Callable[[str, str, int, float], None]


class Envelope:
    """The outermost layer. `counted` hears method, route, status and seconds of each request."""

    def __init__(self, app: ASGIApp, *, tls: bool, counted: Counted) -> None:
        self._app = app
        self._headers = HEADERS | (TRANSPORT if tls else {})
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def dressed(message: Message) -> None:
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
            await self._app(scope, receive, dressed)
        except Exception as problem:  # whatever it is, nobody outside may see it
            response = unforeseen(method, _route(scope), problem)
            if not status:
                await response(scope, receive, dressed)
        finally:
            self._counted(method, _route(scope), status, time.perf_counter() - began)


def _route(scope: Scope) -> str:
    """The route's path with its parameters unfilled, so that there are few of them and none holds a name."""
    return str(getattr(scope.get("route"), "path", "none"))
