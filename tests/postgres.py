"""A real PostgreSQL server in a folder of its own, for tests: it can be killed and started again."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.parts import needs, postgresql
from tests.ports import free_port
from tests.waiting import PATIENCE

USER = "cloakwork"


class Postgres:
    """A server that waits for the disk at each commit. It refuses to run as root, so root's runs as `postgres`."""

    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        needs("postgresql")
        self.folder = folder
        self.port = free_port()
        self.password = secrets.token_hex(8)
        self._owner = "postgres" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._made = False
        folder.mkdir(parents=True, exist_ok=True)
        self._own(folder)
        word = folder / "password"
        word.write_text(self.password, encoding="utf-8")
        self._own(word)
        login = ("--username", USER, "--auth", "scram-sha-256", "--pwfile", str(word))
        made = self._run(
            "initdb", "--pgdata", str(self.data), *login, "--locale", "C", "--encoding", "UTF8", "--no-sync"
        )
        if made.wait(timeout=PATIENCE) != 0:
            raise RuntimeError("no database server could be made:\n" + self._told())

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{self.password}@{self.host}:{self.port}/{database}"

    def start(self) -> None:
        """Returns when it answers."""
        assert self._process is None, "it runs already"
        settings = {
            "port": self.port,
            "listen_addresses": self.host,
            "unix_socket_directories": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "64MB",
            "lc_messages": "C",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = self._run("postgres", "-D", str(self.data), *options)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=5):
                return
            time.sleep(0.05)
        self.kill()
        raise RuntimeError("the database server did not start:\n" + self._told())

    def stop(self) -> None:
        """Ask it to end at once and in order."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it, with all that it runs, as a power cut would: it has to recover from its log."""
        self._end(signal.SIGQUIT)

    @contextmanager
    def restarted(self) -> Iterator[None]:
        """The block may stop or kill the server: it runs again afterwards."""
        try:
            yield
        finally:
            if self._process is None:
                self.start()

    def pause(self) -> None:
        """Let it take no new connections, until it resumes or ends; those that are open go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement of the test's own; gives its rows, if it has any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of an empty database that is removed afterwards."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def emptied(self) -> str:
        """The address of one and the same database, emptied: far quicker than making a new one each time."""
        name = "emptied"
        if not self._made:
            self.execute(f"CREATE DATABASE {name}")
            self._made = True
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"  # noqa: S608
        self.execute(f"{end}; DROP SCHEMA public CASCADE; CREATE SCHEMA public", name)
        return self.url(name)

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
                self._process.send_signal(by)
            self._process.wait(timeout=PATIENCE)
            self._process = None

    def _run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        programs = postgresql()
        assert programs is not None
        environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [programs / name, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment,
                user=self._owner,
                group=None if self._owner is None else pwd.getpwnam(self._owner).pw_gid,
                extra_groups=None if self._owner is None else [],
            )

    def _own(self, path: Path) -> None:
        if self._owner is not None:
            account = pwd.getpwnam(self._owner)
            os.chown(path, account.pw_uid, account.pw_gid)

    def _told(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-4000:]


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server that runs until the block ends. Its folder is not pytest's, where another user may not look."""
    needs("postgresql")
    folder = Path(tempfile.mkdtemp(prefix="cloakwork-postgres-"))
    server = None
    try:
        server = Postgres(folder)
        server.start()
        yield server
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
