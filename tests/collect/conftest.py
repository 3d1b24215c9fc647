"""What tests of the collector share: a store on each database. A test that takes `store` runs on both."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.storage import Store, open_store
from tests.collect.small_sites import make
from tests.postgres import Postgres, running_postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser import Visit
    from tests.collect.page_kit import Home


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests; a test that stops it starts it again, or makes its own."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """An empty database, for one test at a time."""
    return postgres.emptied()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where a store can be made; the test runs once on each kind of database."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with open_store(store_url) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    """A store where one kind of database is enough."""
    with open_store(sqlite_url) as opened:
        yield opened


@pytest.fixture
def watched(tmp_path: Path) -> CollectedSite:
    """A corridor with its plan."""
    return make(tmp_path)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One browser for a file of tests: it cannot stay open beside tests that run an event loop."""
    from tests.browser import running_browser  # noqa: PLC0415 - most tests need no browser

    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def flat_visit(browser: "Browser") -> "Iterator[tuple[Visit, Home]]":
    """A visit to the flat that tests share; each leaves the page live."""
    from tests.collect.page_kit import Home, watching  # noqa: PLC0415 - as above

    home = Home()
    with watching(browser, home, expected=("net::ERR", "Failed to load resource")) as visit:
        yield visit, home


@pytest.fixture(scope="module")
def page(browser: "Browser") -> "Iterator[Page]":
    """The page's code in a browser, to call its functions; no one is signed in."""
    from tests.browser import visiting  # noqa: PLC0415 - as above
    from tests.collect.page_kit import USUAL, Home, collecting  # noqa: PLC0415

    with collecting(Home([])) as url, visiting(browser, url, expected=USUAL) as visit:
        yield visit.page
