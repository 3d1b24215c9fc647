"""What tests of devices share: a folder, a broker, a time server, and the plan and keys of a module's site."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloakwork.keys import new_keys, save_keys
from cloakwork.site import Plan, Site, freeze
from tests.broker import Broker, running_broker
from tests.clocks import running_time_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "s07"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as found:
        yield found


@pytest.fixture
def time_server() -> Iterator[dict[str, Any]]:
    with running_time_server() as port:
        yield {"host": "localhost", "port": port}


@pytest.fixture(scope="module")
def plan(site: Site) -> Plan:
    return freeze(site, site.cloak())


@pytest.fixture
def keys(tmp_path: Path, site: Site) -> Path:
    save_keys(new_keys(site.name), tmp_path / "keys.json")
    return tmp_path / "keys.json"
