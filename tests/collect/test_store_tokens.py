"""Tokens in the store: the secret is nowhere in it, and only the right one opens."""

import hashlib
import re

import pytest

from cloakwork.collect.storage import Role, Store, Token, open_store
from cloakwork.errors import InputError
from tests.postgres import Postgres


def test_a_token_is_known_by_its_secret(store: Store) -> None:
    token, secret = store.tokens.create(Role.DEVICE, "flat", "s1", "by the door")
    assert re.fullmatch(r"cw_[A-Za-z0-9_-]{43}", secret)
    assert store.tokens.check(secret) == token
    assert token == Token(token.id, Role.DEVICE, "flat", "s1", "by the door", token.made, None)
    assert store.tokens.list_all() == [token]


def test_part_of_a_secret_or_its_hash_opens_nothing(store: Store) -> None:
    token, secret = store.tokens.create(Role.OPERATOR)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    tries = [secret[:-1], secret + "A", secret[3:], secret.swapcase(), f" {secret}", digest, token.id]
    assert [store.tokens.check(text) for text in tries] == [None] * len(tries)


def test_a_revoked_token_is_refused_and_stays_listed(store: Store) -> None:
    token, secret = store.tokens.create(Role.ANALYST, "flat")
    other = store.tokens.create(Role.ANALYST)
    assert store.tokens.revoke(token.id)
    assert store.tokens.check(secret) is None
    listed = {one.id: one.revoked for one in store.tokens.list_all()}
    first = listed[token.id]
    assert first is not None
    assert listed[other.token.id] is None
    assert store.tokens.revoke(token.id)
    assert {one.id: one.revoked for one in store.tokens.list_all()} == listed
    assert not store.tokens.revoke("nobody")
    assert store.tokens.check(other.secret) == other.token


def test_the_secret_is_in_no_column(postgres: Postgres, postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        _, secret = store.tokens.create(Role.OPERATOR)
    rows = postgres.execute("SELECT t::text FROM tokens AS t", postgres_url.rsplit("/", 1)[-1])
    assert len(rows) == 1
    assert secret[3:] not in str(rows)
    assert hashlib.sha256(secret.encode()).hexdigest() in str(rows)


@pytest.mark.parametrize(
    ("role", "site", "sensor", "label"),
    [
        (Role.DEVICE, None, "s1", ""),
        (Role.DEVICE, "flat", None, ""),
        (Role.DEVICE, "flat", "", ""),
        (Role.ANALYST, "flat", "s1", ""),
        (Role.OPERATOR, None, None, "a\nb"),
        (Role.OPERATOR, None, None, "\x00"),
        (Role.OPERATOR, None, None, "x" * 201),
    ],
)
def test_an_invalid_token_is_refused(
    sqlite_store: Store, role: Role, site: str | None, sensor: str | None, label: str
) -> None:
    with pytest.raises(InputError):
        sqlite_store.tokens.create(role, site, sensor, label)
    assert sqlite_store.tokens.list_all() == []
