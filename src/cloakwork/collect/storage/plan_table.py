"""Which plan the readings of a site were made under, as far as a collector can know: the one that it worked with."""

import json
from dataclasses import asdict
from typing import NamedTuple

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.readings import ReadingScale

_TABLE = tables.plans


class PlanPeriod(NamedTuple):
    """A plan, and the time from which readings were received under it."""

    received: int
    scale: ReadingScale


class PlanTable:
    """The plans of each site, in the order of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, site: str, scale: ReadingScale, now: int) -> None:
        """Record that readings received from now on are under this plan, unless the last one is the same."""
        known = self.periods(site)
        if known and known[-1].scale == scale:
            return
        readings = tables.readings.c.site
        with self._database.reading() as connection:
            first = connection.execute(sa.select(readings).where(readings == site).limit(1)).first() is None
        received = max(now, known[-1].received + 1) if known else 0 if first else now
        row = {"site": site, "received": received, "scale": json.dumps(asdict(scale))}
        self._database.write(
            lambda connection: connection.execute(
                queries.insert(connection, _TABLE).values(row).on_conflict_do_nothing()
            )
        )

    def periods(self, site: str) -> list[PlanPeriod]:
        """Return the plans of a site; what was received before the first one has an unknown plan."""
        query = sa.select(_TABLE.c.received, _TABLE.c.scale).where(_TABLE.c.site == site).order_by(_TABLE.c.received)
        with self._database.reading() as connection:
            return [PlanPeriod(row[0], ReadingScale(**json.loads(row[1]))) for row in connection.execute(query)]
