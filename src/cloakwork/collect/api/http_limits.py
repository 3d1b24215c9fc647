"""The limit on the size of a body, and one meaning for every request."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloakwork.collect.api.error_responses import DEFAULTS, error_response
from cloakwork.errors import ApiError

BODY_LIMIT = "cloakwork.body"  # in a scope: the largest body of this request


class BodyLimitMiddleware:
    """Refuses a body while it is read, as soon as it is too large.

    The limit is `most` bytes, or what the route has put into the scope under `BODY_LIMIT`.
    """

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

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
            most: int = scope.get(BODY_LIMIT, self._most)
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
