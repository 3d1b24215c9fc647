"""What tests of devices share: a folder, a broker and a time server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
