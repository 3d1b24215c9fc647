"""`GET /v1/sites/{site}/truth`: where simulated sources really are. A collector of real devices has no such route."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.models import Moment, Told
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.api.sites import SiteName


@dataclass(frozen=True)
class Truth:
    """Where simulated sources were at a time."""

    time: int
    sources: Sequence[tuple[float, ...]]


Simulation = Callable[[str, int | None], Truth | None]
"""Says for a site and a time (the newest if None) what is simulated there; None where nothing is."""


class TrueSpot(Told):
    """A simulated source."""

    at: list[float]


class TruthBody(Told):
    """All that are simulated at a time."""

    time: int
    sources: list[TrueSpot]


def add(router: APIRouter, simulation: Simulation) -> None:
    """Put the route of this module in place."""

    async def truth(
        site: SiteName,
        parts: PartsOf,
        caller: CallerOf,
        time: Annotated[Moment | None, Query(description="Unix milliseconds; the newest if left out.")] = None,
    ) -> TruthBody:
        """Where simulated sources really are, for a demonstration."""
        parts.site(site, caller)
        found = await parts.work.read(simulation, site, time)
        if found is None:
            raise Refusal(404, "no-truth", "Nothing is simulated at this site at this time.")
        return TruthBody(time=found.time, sources=[TrueSpot(at=list(at)) for at in found.sources])

    router.get(
        "/v1/sites/{site}/truth",
        tags=["results"],
        responses=responses(401, 403, 404, 422, 429, 503),
        openapi_extra=allow(*READERS),
    )(truth)
