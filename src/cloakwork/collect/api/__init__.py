"""The collector's HTTP interface: readings in, results out, with a role for every token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI

from cloakwork.collect.api import event_streams, routes_access, routes_data, routes_sites
from cloakwork.collect.api.access_control import GuardedRoute
from cloakwork.collect.api.error_responses import ResponseMiddleware, install_error_handlers
from cloakwork.collect.api.route_context import ApiContext, Simulation, Truth

__all__ = ["ApiContext", "Simulation", "Truth", "make_app"]

# nothing of a request goes to a telemetry service, whatever the environment says
SILENT: Any = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False}
ROUTES = [
    route for module in (routes_data, routes_sites, event_streams, routes_access) for route in module.router.routes
]


def make_app(context: ApiContext) -> FastAPI:
    """An application that serves sites; the caller starts and stops the parts in its context.

    Call `state.hub.close` before a server waits for its connections to end, or streams keep it waiting.
    """
    app = FastAPI(
        title="Cloakwork collector",
        summary="Stores cloaked readings and estimates where their sources are, roughly.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        telemetry=SILENT,
    )
    app.state.context, app.state.access, app.state.hub = context, context.access, event_streams.EventHub(context)
    context.metrics.streams.set_function(lambda: len(app.state.hub.streams))
    app.router.route_class = GuardedRoute
    app.router.routes += ROUTES
    if context.simulation is not None:  # a collector of real devices has no such route
        app.router.routes += routes_data.truth_router.routes
    install_error_handlers(app)
    app.add_middleware(ResponseMiddleware, tls=context.proxied, on_response=context.metrics.count_request)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    following = asyncio.create_task(app.state.hub.run())
    try:
        yield
    finally:
        app.state.hub.close()
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
