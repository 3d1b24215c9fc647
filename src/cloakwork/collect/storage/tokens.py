"""Stored tokens. A secret is shown once; the store keeps its hash."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from cloakwork.collect.storage.database import Database, unix_ms
from cloakwork.errors import InputError

PREFIX = "cw_"
LONGEST_LABEL = 200
_BYTES = 32  # random ones, so a fast hash is enough: unlike passwords, they cannot be guessed
_COLUMNS = "id, role, site, sensor, label, made, revoked"


class Role(StrEnum):
    """A token's role: a device writes its own sensor, an analyst reads, an operator may do everything."""

    DEVICE = "device"
    ANALYST = "analyst"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Token:
    """A token without its secret. A device token names its site and sensor; others may be limited to one site."""

    id: str
    role: Role
    site: str | None
    sensor: str | None
    label: str
    made: int
    revoked: int | None


class NewToken(NamedTuple):
    """A new token with its secret, which is known only now: the store keeps a hash."""

    token: Token
    secret: str


class TokenTable:
    """The tokens of a store."""

    def __init__(self, database: Database, *, now: Callable[[], int] = unix_ms) -> None:
        self._database = database
        self._now = now

    def create(self, role: Role, site: str | None = None, sensor: str | None = None, label: str = "") -> NewToken:
        """Create a token for a device (site and sensor), or for a person (perhaps limited to a site).

        The secret is `cw_` and 43 characters of base64url.
        """
        _check(role, site, sensor, label)
        secret = PREFIX + secrets.token_urlsafe(_BYTES)
        token = Token(secrets.token_hex(6), role, site, sensor, label, self._now(), None)
        sql = f"""
            INSERT INTO tokens ({_COLUMNS}, digest)
            VALUES (:id, :role, :site, :sensor, :label, :made, :revoked, :digest)"""
        self._database.change(sql, **{**vars(token), "role": role.value, "digest": _digest(secret)})
        return NewToken(token, secret)

    def check(self, secret: str) -> Token | None:
        """Return the token of a secret; None if it is unknown or revoked.

        The database looks up the hash; its timing reveals at most something about hashes, from which no secret follows.
        The hash that it returns is compared in constant time.
        """
        digest = _digest(secret)
        sql = f"SELECT {_COLUMNS}, digest FROM tokens WHERE digest = :digest AND revoked IS NULL"
        found = self._database.rows(sql, digest=digest)
        return next((_token(row) for row in found if hmac.compare_digest(row[-1], digest)), None)

    def is_valid(self, token_id: str) -> bool:
        """Return whether there is a token of this id that was not revoked."""
        return bool(self._database.rows("SELECT id FROM tokens WHERE id = :id AND revoked IS NULL", id=token_id))

    def list_all(self) -> list[Token]:
        """Return all tokens, including revoked ones, the oldest first."""
        return [_token(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM tokens ORDER BY made, id")]

    def revoke(self, token_id: str) -> bool:
        """Revoke a token; returns False if there is none. The time of its first revocation stays."""
        sql = "UPDATE tokens SET revoked = coalesce(revoked, :now) WHERE id = :id RETURNING id"
        return bool(self._database.change(sql, id=token_id, now=self._now()))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _token(row: Any) -> Token:
    return Token(row[0], Role(row[1]), *row[2:7])


def _check(role: Role, site: str | None, sensor: str | None, label: str) -> None:
    if role is Role.DEVICE and not (site and sensor):
        raise InputError("a device token needs a site and a sensor: it may write nothing else.", role=role)
    if role is not Role.DEVICE and sensor is not None:
        raise InputError(f"an {role.value}'s token is for no sensor: leave it out.", role=role, sensor=sensor)
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise InputError(
            f"a label has at most {LONGEST_LABEL} printable characters, this one has {len(label)}.", length=len(label)
        )
