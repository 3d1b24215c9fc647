"""The HTTP interface as one application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from cloakwork.collect.api import routes_access, routes_data, routes_events, routes_sites
from cloakwork.collect.api.access_control import GuardedRoute
from cloakwork.collect.api.error_responses import (
    BodyLimitMiddleware,
    ResponseMiddleware,
    documented_errors,
    error_schemas,
    install_error_handlers,
)
from cloakwork.collect.api.route_context import ApiContext

VERSION = "1"
SUMMARY = "Stores cloaked readings and estimates where their sources are, roughly."
SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of a device, an analyst or an operator."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "description": "From POST /v1/session. A change also needs the header X-Cloakwork: 1.",
    },
}
TAGS = [
    {"name": "readings", "description": "Cloaked readings: devices send them, analysts read them."},
    {"name": "results", "description": "Sources recovered from readings."},
    {"name": "sites", "description": "Sites and their health."},
    {"name": "session", "description": "For the page."},
    {"name": "administration", "description": "For operators."},
    {"name": "watching", "description": "For supervisors."},
]
# nothing of a request goes to a telemetry service, whatever the environment says
SILENT: Any = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False}
ROUTES = (routes_data, routes_sites, routes_events, routes_access)


def make_app(context: ApiContext) -> FastAPI:
    """An application that serves sites; the caller starts and stops the parts in its context.

    Call `hub.close` of the context before a server waits for its connections to end, or streams keep it waiting.
    """
    app = FastAPI(
        title="Cloakwork collector",
        summary=SUMMARY,
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_tags=TAGS,
        lifespan=_lifespan,
        telemetry=SILENT,
    )
    app.state.context, app.state.access, app.state.page = context, context.access, routes_access.load_page()
    app.router.route_class = GuardedRoute
    routers = [module.router for module in ROUTES]
    if context.simulation is not None:
        routers.append(routes_data.truth_router(context.simulation))
    app.router.routes += [route for router in routers for route in router.routes]
    install_error_handlers(app)
    app.add_middleware(BodyLimitMiddleware)
    app.add_middleware(ResponseMiddleware, tls=context.proxied, on_response=context.metrics.count_request)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: ApiContext = app.state.context
    polling = asyncio.create_task(context.hub.run())
    try:
        yield
    finally:
        context.hub.close()
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=app.openapi_tags
        )
        components = document.setdefault("components", {})
        components["securitySchemes"] = SCHEMES | {"session": SCHEMES["session"] | {"name": app.state.access.cookie}}
        components["schemas"] |= error_schemas()
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"] |= {str(status): error for status, error in documented_errors(500).items()}
                roles = operation["x-roles"]
                who = f"Roles: {', '.join(roles)}." if roles else "Needs no token."
                operation["description"] = f"{operation.get('description', '')}\n\n{who}".strip()
        app.openapi_schema = document
    return app.openapi_schema
