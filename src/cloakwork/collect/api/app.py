"""The HTTP interface as one application."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi

from cloakwork.collect.api import errors, events, health, page, readings, results, session, sites, tokens, truth
from cloakwork.collect.api.attack import Attacks
from cloakwork.collect.api.auth import Codes, Sessions, Tokens
from cloakwork.collect.api.envelope import Envelope
from cloakwork.collect.api.gate import Gate, Guarded
from cloakwork.collect.api.hub import Ending, Hub
from cloakwork.collect.api.limits import BodyLimit
from cloakwork.collect.api.metrics import Metrics
from cloakwork.collect.api.needs import Broker, Intake, Live
from cloakwork.collect.api.parts import Parts
from cloakwork.collect.api.settings import Settings
from cloakwork.collect.api.watch import Watch
from cloakwork.collect.api.work import Work
from cloakwork.collect.place import Watched
from cloakwork.collect.problems import Reason
from cloakwork.collect.records import Role
from cloakwork.collect.store import Store
from cloakwork.errors import InputError

VERSION = "1"
SUMMARY = "Takes cloaked readings in and says where their sources are, roughly."
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
    {"name": "results", "description": "What was recovered from them."},
    {"name": "sites", "description": "Where that is, and how it goes."},
    {"name": "session", "description": "For the page."},
    {"name": "administration", "description": "For operators."},
    {"name": "watching", "description": "For supervisors."},
]
# nothing of a request goes to a telemetry service, whatever the environment says
SILENT: Any = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False}


def make_app(
    store: Store,
    sites_here: Mapping[str, Watched],
    intake: Intake,
    live: Live,
    *,
    broker: Broker | None = None,
    hub: Hub | None = None,
    settings: Settings | None = None,
    simulation: truth.Simulation | None = None,
) -> FastAPI:
    """An application that serves the sites given by name; it starts and stops none of the parts that it is given.

    Call `hub.result` with each result that was saved, from any thread, and clients hear of it at once. Call
    `hub.end_soon` before a server waits for its connections to end, or streams keep it waiting. Only a demonstration
    has a `simulation`, whose truth can then be asked for.
    """
    chosen = settings or Settings()
    news = Hub() if hub is None else hub
    parts = _parts(store, sites_here, intake, live, broker, news, chosen)
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
    app.state.parts, app.state.gate, app.state.page = parts, parts.gate, page.load_page()
    app.state.malformed = _count_malformed
    app.router.route_class = Guarded
    for module in (readings, sites, results, health, events, tokens, session, page):
        module.add(app.router)
    if simulation is not None:
        truth.add(app.router, simulation)
    errors.install(app)
    app.add_middleware(BodyLimit, most=chosen.body_bytes, seconds=chosen.body_s)
    app.add_middleware(Envelope, tls=chosen.tls, counted=parts.metrics.requested)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def _parts(
    store: Store,
    watched: Mapping[str, Watched],
    intake: Intake,
    live: Live,
    broker: Broker | None,
    hub: Hub,
    settings: Settings,
) -> Parts:
    for name, one in watched.items():
        if name != one.site.name:
            raise InputError(f"the site {one.site.name} was given as {name!r}: give each site by its own name.")
    metrics = Metrics()
    metrics.pull(list(watched), intake, live, broker)
    hub.solved, hub.dropped = metrics.solved, metrics.dropped
    work = Work(writes=settings.writes_at_once, reads=settings.reads_at_once, watch=metrics.stored)
    sessions = Sessions(most=settings.sessions, per_token=settings.sessions_per_token, seconds=settings.session_s)
    tokens = Tokens(store, work, seconds=settings.token_s)
    gate = Gate(tokens, sessions, Codes(seconds=settings.code_s), settings)
    watch = Watch(store, work, hub, live, every_s=settings.follow_s)
    return Parts(store, watched, intake, live, broker, hub, work, gate, metrics, settings, Attacks(store), watch)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    parts: Parts = app.state.parts
    parts.hub.attach(asyncio.get_running_loop())
    watching = asyncio.create_task(parts.watch.run())
    try:
        yield
    finally:
        parts.hub.end(Ending.CLOSING)
        parts.hub.attach(None)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def _count_malformed(request: Request) -> None:
    """Count a request that a device got wrong, as a message of the broker would be; what it held is not kept."""
    caller = getattr(request.state, "caller", None)
    if caller is not None and caller.role is Role.DEVICE:
        parts: Parts = request.app.state.parts
        parts.intake.count(Reason.MALFORMED, caller.token.site or "", caller.token.sensor or "")


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=app.openapi_tags
        )
        session_scheme = SCHEMES["session"] | {"name": app.state.gate.cookie}
        components = made.setdefault("components", {})
        components["securitySchemes"] = SCHEMES | {"session": session_scheme}
        components["schemas"] |= errors.schemas()
        for operations in made["paths"].values():
            for operation in operations.values():
                operation["responses"] |= {str(status): told for status, told in errors.responses(500).items()}
                roles = operation["x-roles"]
                who = f"Roles: {', '.join(roles)}." if roles else "Needs no token."
                operation["description"] = f"{operation.get('description', '')}\n\n{who}".strip()
        app.openapi_schema = made
    return app.openapi_schema
