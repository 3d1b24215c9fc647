"""The page and its files, `GET /healthz`, `GET /metrics` and the OpenAPI document."""

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow, anyone
from cloakwork.collect.api.models import Told
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.records import Role

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
INDEX = "index.html"


@dataclass(frozen=True)
class File:
    """A file of the page."""

    body: bytes
    kind: str
    tag: str


def load_page(folder: Traversable | None = None) -> dict[str, File]:
    """The files of the page by name, read once: what is asked for is looked up here and never on the disk."""
    root = resources.files("cloakwork.collect") / "page" if folder is None else folder
    found: dict[str, File] = {}
    for entry in root.iterdir() if root.is_dir() else ():
        kind = KINDS.get("." + entry.name.rpartition(".")[2])
        if kind is not None and entry.is_file():
            body = entry.read_bytes()
            found[entry.name] = File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


class Alive(Told):
    """It answers, and that is all there is to say without a token."""

    status: str = "ok"


async def healthz() -> Alive:
    """Whether the process answers; for load balancers and supervisors."""
    return Alive()


async def metrics(parts: PartsOf, caller: CallerOf) -> Response:
    """Figures for Prometheus, of all sites together: a token that is for one site does not see them."""
    if caller.token.site is not None:
        text = "The figures are of all sites, and this token is for one. Use a token that is for all."
        raise Refusal(403, "forbidden", text)
    return Response(await parts.work.read(parts.metrics.text), media_type=PROMETHEUS)


async def document(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


async def index(request: Request) -> Response:
    """The page."""
    return _file(request, INDEX)


async def static(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A file of the page."""
    return _file(request, name)


def _file(request: Request, name: str) -> Response:
    file: File | None = request.app.state.page.get(name)
    if file is None:
        raise Refusal(404, "not-found", "There is no such file.")
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.kind, headers=headers)


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    router.get("/healthz", tags=["watching"], openapi_extra=anyone())(healthz)
    router.get(
        "/metrics",
        tags=["watching"],
        response_class=PlainTextResponse,
        responses=responses(401, 403, 429, 503),
        openapi_extra=allow(*READERS),
    )(metrics)
    router.get("/openapi.json", include_in_schema=False, openapi_extra=allow(*Role))(document)
    for path, endpoint in (("/", index), ("/static/{name}", static)):
        router.get(path, include_in_schema=False, openapi_extra=anyone())(endpoint)
