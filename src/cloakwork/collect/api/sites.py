"""`GET /v1/sites`, `GET /v1/sites/{site}` and `POST /v1/sites/{site}/erase`."""

import logging
from typing import Annotated

from fastapi import APIRouter, Path

from cloakwork.collect.api.access_models import ErasedBody, EraseIn
from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.geometry import geometry
from cloakwork.collect.api.models import GeometryBody, Name, SiteBody
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Role

log = logging.getLogger(__name__)
SiteName = Annotated[Name, Path(description="Name of a site.")]


async def list_sites(parts: PartsOf, caller: CallerOf) -> list[SiteBody]:
    """The sites that this token may see, each with its claim and its schedule."""
    return [_site(name, parts.sites[name]) for name in parts.names(caller)]


async def show_site(site: SiteName, parts: PartsOf, caller: CallerOf) -> GeometryBody:
    """The shape of a site: places, walls, doors, sensors and zones."""
    return await parts.work.read(geometry, site, parts.site(site, caller))


async def erase(site: SiteName, asked: EraseIn, parts: PartsOf, caller: CallerOf) -> ErasedBody:
    """Erase stored readings of a sensor or a period, and all that was made from them. This cannot be undone."""
    watched = parts.site(site, caller)
    known = asked.sensor is None or asked.sensor in watched.site.sensor_ids
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise Refusal(422, "invalid", "body: until is not after since. Give since <= time < until.")
    erased = await parts.work.write(parts.store.erase, site, asked.sensor, asked.since, asked.until)
    what = "a sensor that the site has no more" if not known else asked.sensor or "all sensors"
    log.warning("token %s erased data of %s: %s, %d readings", caller.token.id, site, what, erased.readings)
    return ErasedBody(readings=erased.readings, results=erased.results, reports=erased.reports)


def _site(name: str, watched: Watched) -> SiteBody:
    site, claim = watched.site, watched.plan.claim
    return SiteBody(
        name=name,
        kind=site.spec.physics.kind,
        sensors=len(watched.plan.sensors),
        places=len(site.physics.space),
        unit=site.unit,
        alpha=claim.alpha,
        epsilon=claim.epsilon,
        delta=claim.delta,
        scope=claim.scope,
        window_s=claim.window,
        readings_per_window=claim.readings_per_window,
        period_ms=watched.plan.schedule.period_ms,
        estimator=type(site.estimator().estimator).__name__,
    )


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    read, own = allow(*READERS), responses(401, 403, 404, 422, 429, 503)
    router.get("/v1/sites", tags=["sites"], responses=responses(401, 403, 429, 503), openapi_extra=read)(list_sites)
    router.get("/v1/sites/{site}", tags=["sites"], responses=own, openapi_extra=read)(show_site)
    router.post(
        "/v1/sites/{site}/erase",
        tags=["administration"],
        responses=own | responses(408, 413, 415),
        openapi_extra=allow(Role.OPERATOR),
    )(erase)
