"""The page and its files, `GET /healthz`, `GET /metrics` and the OpenAPI document."""

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from cloakwork.collect.api.access_control import READERS, CallerDep, GuardedRoute, guarded, public
from cloakwork.collect.api.result_models import ResponseModel
from cloakwork.collect.api.route_context import ContextDep
from cloakwork.collect.storage import Role
from cloakwork.errors import ApiError

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
INDEX = "index.html"
router = APIRouter(route_class=GuardedRoute)


@dataclass(frozen=True)
class PageFile:
    """A file of the page."""

    body: bytes
    media_type: str
    etag: str


def load_page() -> dict[str, PageFile]:
    """The files of the page by name, read once: requests are looked up here and never reach the disk."""
    files: dict[str, PageFile] = {}
    for entry in (resources.files("cloakwork.collect") / "page").iterdir():
        media_type = MEDIA_TYPES.get("." + entry.name.rpartition(".")[2])
        if media_type is not None:
            body = entry.read_bytes()
            files[entry.name] = PageFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return files


class Alive(ResponseModel):
    """The process answers; more needs a token."""

    status: str = "ok"


@router.get("/healthz", tags=["watching"], **public())
async def healthz() -> Alive:
    """Whether the process answers; for load balancers and supervisors."""
    return Alive()


@router.get("/metrics", tags=["watching"], response_class=PlainTextResponse, **guarded(READERS))
def metrics(context: ContextDep, caller: CallerDep) -> Response:
    """Figures for Prometheus, of all sites together: a token for one site does not see them."""
    if caller.token.site is not None:
        message = "The metrics cover all sites, and this token is for one. Use a token for all sites."
        raise ApiError(403, "forbidden", message)
    return Response(context.metrics.text(), media_type=PROMETHEUS)


@router.get("/openapi.json", include_in_schema=False, **guarded(tuple(Role)))
async def document(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/", include_in_schema=False, **public())
async def index(request: Request) -> Response:
    """The page."""
    return _file(request, INDEX)


@router.get("/static/{name}", include_in_schema=False, **public())
async def static(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A file of the page."""
    return _file(request, name)


def _file(request: Request, name: str) -> Response:
    file: PageFile | None = request.app.state.page.get(name)
    if file is None:
        raise ApiError(404, "not-found", "The page has no such file.")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
