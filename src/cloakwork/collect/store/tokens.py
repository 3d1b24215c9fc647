"""Tokens: who may do what. A secret is shown once; the store knows its hash."""

import hashlib
import hmac
import secrets
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.records import NewToken, Role, Token
from cloakwork.collect.store import tables
from cloakwork.collect.store.database import Database
from cloakwork.errors import InputError

PREFIX = "cw_"
LONGEST_LABEL = 200
# A fast hash will do: nobody finds 32 random bytes by trying, as one finds a word that a person chose.
_BYTES = 32


def new(database: Database, role: Role, site: str | None, sensor: str | None, label: str, *, now: int) -> NewToken:
    """Make a token for a device (site and sensor), or for a person (perhaps a site)."""
    _check(role, site, sensor, label)
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    token = Token(secrets.token_hex(6), role, site, sensor, label, now, None)
    row = {
        "id": token.id,
        "digest": _digest(secret),
        "role": token.role.value,
        "site": site,
        "sensor": sensor,
        "label": label,
        "made": now,
        "revoked": None,
    }
    database.write(lambda connection: connection.execute(sa.insert(tables.tokens), row))
    return NewToken(token, secret)


def check(database: Database, secret: str) -> Token | None:
    """Whose secret this is.

    The database looks for the hash; how long that takes tells at most about hashes, from which no secret follows. What
    was found is compared in constant time.
    """
    digest = _digest(secret)
    with database.reading() as connection:
        row = connection.execute(sa.select(tables.tokens).where(tables.tokens.c.digest == digest)).one_or_none()
    if row is None or not hmac.compare_digest(row.digest, digest) or row.revoked is not None:
        return None
    return _token(row)


def every(database: Database) -> list[Token]:
    """All, the oldest first."""
    with database.reading() as connection:
        rows = connection.execute(sa.select(tables.tokens).order_by(tables.tokens.c.made, tables.tokens.c.id))
        return [_token(row) for row in rows]


def revoke(database: Database, token: str, *, now: int) -> bool:
    """Whether there is such a token; it keeps the time of its first revocation."""
    table = tables.tokens
    change = sa.update(table).where(table.c.id == token).values(revoked=sa.func.coalesce(table.c.revoked, now))
    return database.write(lambda connection: connection.execute(change).rowcount > 0)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _token(row: sa.Row[Any]) -> Token:
    return Token(row.id, Role(row.role), row.site, row.sensor, row.label, row.made, row.revoked)


def _check(role: Role, site: str | None, sensor: str | None, label: str) -> None:
    if role is Role.DEVICE and not (site and sensor):
        raise InputError("a device's token needs its site and its sensor: it may write nothing else.")
    if role is not Role.DEVICE and sensor is not None:
        raise InputError(
            f"sensor={sensor!r} for an {role.value}: only a device's token is for one sensor; leave it out."
        )
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise InputError(f"a label has at most {LONGEST_LABEL} printable characters, this one has {len(label)}.")
