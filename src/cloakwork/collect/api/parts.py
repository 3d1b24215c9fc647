"""All that the routes of one app work with, and how a route gets at it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from cloakwork.collect.api.attack import Attacks
from cloakwork.collect.api.auth import Caller
from cloakwork.collect.api.errors import unknown_site
from cloakwork.collect.api.gate import Gate
from cloakwork.collect.api.hub import Hub
from cloakwork.collect.api.metrics import Metrics
from cloakwork.collect.api.needs import Broker, Intake, Live
from cloakwork.collect.api.settings import Settings
from cloakwork.collect.api.watch import Watch
from cloakwork.collect.api.work import Work
from cloakwork.collect.place import Watched
from cloakwork.collect.store import Store


@dataclass(frozen=True)
class Parts:
    """All of it, for one app. `broker` is None where readings come by HTTP only."""

    store: Store
    sites: Mapping[str, Watched]
    intake: Intake
    live: Live
    broker: Broker | None
    hub: Hub
    work: Work
    gate: Gate
    metrics: Metrics
    settings: Settings
    attacks: Attacks
    watch: Watch

    def site(self, name: str, caller: Caller) -> Watched:
        """A site that the caller may see."""
        watched = self.sites.get(name)
        if watched is None or not caller.sees(name):
            raise unknown_site()
        return watched

    def names(self, caller: Caller) -> list[str]:
        """The sites that the caller may see."""
        return [name for name in self.sites if caller.sees(name)]


def _parts(connection: HTTPConnection) -> Parts:
    parts: Parts = connection.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(_parts)]
