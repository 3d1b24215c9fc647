"""How far the tests of each site's physics are, and the faults that they found."""

import json
from dataclasses import asdict

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import FoundFault, PhysicsCheck

_TABLE = tables.physics_checks


class CheckTable:
    """The latest check of each site."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, site: str) -> PhysicsCheck | None:
        """Return the latest check of a site."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(_TABLE).where(_TABLE.c.site == site)).one_or_none()
        return None if row is None else PhysicsCheck(row.site, row.model, row.time, row.state, _faults(row.faults))

    def faults(self, site: str) -> tuple[FoundFault, ...]:
        """Return the faults of a site, those that have ended too, the latest last."""
        with self._database.reading() as connection:
            text = connection.execute(sa.select(_TABLE.c.faults).where(_TABLE.c.site == site)).scalar()
        return () if text is None else _faults(text)

    def save(self, check: PhysicsCheck, *, after: int | None) -> bool:
        """Store a check that goes on from the one of time `after`, None for the first; False if another is stored."""
        values = {**vars(check), "faults": json.dumps([asdict(fault) for fault in check.faults])}

        def work(connection: sa.Connection) -> bool:
            if after is None:
                new = queries.insert(connection, _TABLE).values(values).on_conflict_do_nothing()
                return connection.execute(new.returning(_TABLE.c.site)).first() is not None
            unchanged = (_TABLE.c.site == check.site, _TABLE.c.time == after)
            return connection.execute(sa.update(_TABLE).where(*unchanged).values(values)).rowcount == 1

        return self._database.write(work)

    def forget(self, site: str) -> None:
        """Remove what the tests of a site know."""
        self._database.write(lambda connection: connection.execute(sa.delete(_TABLE).where(_TABLE.c.site == site)))


def _faults(text: str) -> tuple[FoundFault, ...]:
    return tuple(FoundFault(**fields) for fields in json.loads(text))
