"""An installation as the page for operators describes it, from a device to https; and its backups."""

import json
import os
import signal
import sqlite3
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from cloakwork.cli.collect import session_name
from cloakwork.collect.storage import Reading, Role, open_store
from tests.collect.api_kit import SITE
from tests.deploy.installation import Site, running_site
from tests.deploy.proxy import running_proxy
from tests.forking import cloakwork
from tests.parts import postgresql
from tests.ports import free_port
from tests.postgres import Postgres, running_postgres
from tests.waiting import PATIENCE, until

PERIOD = 2011
ROWS = [Reading("hall", "s1", number, number * PERIOD, 7, number * PERIOD) for number in range(1, 500)]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as running:
        yield running


def run(folder: Path, *arguments: str) -> None:
    assert cloakwork(*arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait() == 0


def start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        return cloakwork(*arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def eventually(look: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def answers() -> bool:
        with suppress(OSError):
            found.append(look())
        return bool(found and found[-1])

    until(answers)
    return found[-1]


def test_a_reading_comes_from_a_device_through_the_shipped_broker_to_https(tmp_path: Path) -> None:
    (tmp_path / "hall.toml").write_text(SITE.format(name="hall"), encoding="utf-8")
    run(tmp_path, "plan", "--no-simulation", "hall.toml", "--out", "hall.plan.json")
    port = free_port()
    zones = "\nuser collector-zones\ntopic write cloakwork/zones/#\n\nuser second\ntopic read cloakwork/zones/#\n"
    with running_site(tmp_path, rules=zones) as site:
        told = ("--ca", str(site.authority), "--broker")
        run(tmp_path, "provision", "hall.toml", "--id", "s1", *_as(site, "hall.s1"), *told, _broker(site, "hall.s1"))
        listen = ("--listen", f"127.0.0.1:{port}", "--proxied", "--store", "hall.db", "--keep", "90d")
        collect = ("collect", "hall.toml", *_as(site, "collector"), *told, _broker(site, "collector"), *listen)
        home = site.enter("second")
        home.listen("cloakwork/zones/#")
        working = [
            start(tmp_path, "collector", *collect, "--home-assistant"),
            start(tmp_path, "device", "sensor", "devices/s1", "--source", "simulated"),
        ]
        try:
            with open_store(str(tmp_path / "hall.db")) as store:
                secret = store.tokens.create(Role.ANALYST).secret
            with running_proxy(tmp_path, port, site.made / "secrets" / "server.pem", site.authority) as (
                secure,
                trusted,
            ):
                readings = eventually(lambda: ask(secure, trusted, secret, "readings")["items"])
                health = ask(secure, trusted, secret, "health")
            assert {one["sensor"] for one in readings} == {"s1"}
            assert health["broker"]["state"] == health["store"]["state"] == "ok"
            assert working[0].poll() is None
            assert home.hears(f"cloakwork/zones/{session_name(port)}-zones")
            log = (tmp_path / "collector.log").read_text("utf-8")
            assert log.count("connected to the broker") == 1, "its two connections end each other"
        finally:
            for process in working:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(timeout=PATIENCE) for process in working]
        assert codes == [0, 0], [(tmp_path / f"{name}.log").read_text("utf-8") for name in ("collector", "device")]


def _broker(site: Site, user: str) -> str:
    return f"mqtts://{user}@localhost:{site.port}"


def _as(site: Site, user: str) -> tuple[str, str]:
    return "--password-file", str(site.password_file(user))


def ask(port: int, trusted: ssl.SSLContext, secret: str, what: str) -> Any:
    address = f"https://localhost:{port}/v1/sites/hall/{what}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {secret}"})
    with urllib.request.urlopen(request, timeout=PATIENCE, context=trusted) as answer:  # noqa: S310
        return json.load(answer)


def test_a_backup_of_a_file_in_use_is_whole_and_a_copy_of_it_is_not(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "cloakwork.db")) as store:
        store.readings.add(ROWS)
        with closing(sqlite3.connect(tmp_path / "cloakwork.db")) as connection:
            connection.execute(f"VACUUM INTO '{tmp_path / 'backup.db'}'")
        (tmp_path / "copy.db").write_bytes((tmp_path / "cloakwork.db").read_bytes())
        with open_store(str(tmp_path / "backup.db")) as backup, open_store(str(tmp_path / "copy.db")) as copy:
            assert list(backup.readings.iterate("hall")) == list(store.readings.iterate("hall")) == ROWS
            assert list(copy.readings.iterate("hall")) != ROWS


def test_a_dump_of_postgresql_can_be_restored(server: Postgres, tmp_path: Path) -> None:
    programs = postgresql()
    assert programs is not None
    environment = {**os.environ, "PGPASSWORD": server.password}
    where = ("--host", server.host, "--port", str(server.port), "--username", "cloakwork")
    with server.database() as first, server.database() as second:
        with open_store(first) as store:
            store.readings.add(ROWS)
            kept = store.tokens.create(Role.ANALYST)
            file = str(tmp_path / "backup.dump")
            for command in (
                ["pg_dump", *where, "--format=custom", f"--file={file}", first.rpartition("/")[2]],
                ["pg_restore", *where, "--no-owner", "--role=cloakwork", f"--dbname={second.rpartition('/')[2]}", file],
            ):
                subprocess.run([programs / command[0], *command[1:]], check=True, capture_output=True, env=environment)
        with open_store(second) as restored:
            assert list(restored.readings.iterate("hall")) == ROWS
            assert restored.tokens.check(kept.secret) == kept.token
