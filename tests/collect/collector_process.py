"""The collector as a process that can be killed, and its HTTP side."""

import atexit
import http.client
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cloakwork.collect.storage import Reading
from tests.collect.small_sites import site_file
from tests.forking import COMMAND
from tests.parts import ROOT
from tests.ports import free_port
from tests.waiting import PATIENCE, until

SITE = """name = "hall"
sensors = 4
baseline = 20.0
[physics]
kind = "line"
places = 12
T = 0.01
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.05
window = "1min"
readings_per_window = 30
"""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, eq=False)
class HttpClient:
    """Requests to a collector, with a token."""

    port: int
    secret: str
    timeout: float = 30.0

    def ask(self, method: str, path: str, body: object = None, *, cookie: str | None = None) -> Answer:
        """One request, with the token or with a cookie; raises `OSError` or `HTTPException` without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            known = {"Authorization": f"Bearer {self.secret}"} if cookie is None else {"Cookie": cookie}
            headers = {**known, "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, json.loads(answer.read() or b"null"))
        finally:
            connection.close()

    def post(self, readings: Sequence[Reading]) -> Answer:
        return self.ask("POST", "/v1/readings", [as_json(row) for row in readings])

    def health(self, site: str = "hall") -> Any:
        """The health of a site; None without an answer."""
        try:
            answer = self.ask("GET", f"/v1/sites/{site}/health")
        except (OSError, http.client.HTTPException):
            return None
        return answer.body if answer.status == 200 else None

    def insist(self, readings: Sequence[Reading]) -> None:
        """Post until acknowledged, as a device does."""
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError, http.client.HTTPException):
                if self.post(readings).status == 200:
                    return
            assert time.monotonic() < end, "nothing is taken by HTTP"
            time.sleep(0.05)


def as_json(row: Reading) -> dict[str, object]:
    return {"v": 1, "site": row.site, "sensor": row.sensor, "seq": row.seq, "time": row.time, "value": row.value}


@cache
def fork_server() -> "ForkServer":
    """One server for all tests, because loading everything takes seconds."""
    made = ForkServer(Path(tempfile.mkdtemp(prefix="cloakwork-fork-server-")))
    atexit.register(made.close)
    return made


class ForkServer:
    """Forks collectors, and sets the wall clock of all of them wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        self._clock.write_bytes(bytes(8))
        site = site_file(folder, SITE)
        command = [sys.executable, "-m", "tests.collect.fork_server", str(site), str(self._clock)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        assert self._line() == "ready"

    def fork(self, words: Sequence[str], log: Path, store: str) -> int:
        """Return the id of a new process that runs `cloakwork` with these words."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"words": list(words), "log": str(log), "store": store}) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def set_clock(self, wrong_by_s: float) -> None:
        """From now on, the wall clock of every collector is ahead by this much."""
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<q", round(1000 * wrong_by_s)))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the fork server has died"
        return line


class Collector:
    """A process that runs `cloakwork collect`, and can be started again."""

    def __init__(
        self, fork_server: ForkServer, words: Sequence[str], log: Path, client: HttpClient, store: str
    ) -> None:
        self._fork_server = fork_server
        self._words = ["collect", *words]
        self._log = log
        self._store = store
        self.client = client
        self.number = 0

    def beside(self, name: str) -> "Collector":
        """Another one, with its own name and port."""
        port = free_port()
        words = [f"127.0.0.1:{port}" if before == "--listen" else word for before, word in pairwise(self._words)]
        return Collector(
            self._fork_server,
            [*words, "--name", name],
            self._log.with_name(f"log-{name}"),
            replace(self.client, port=port),
            self._store,
        )

    def start(self, *, fresh: bool = False) -> None:
        """Begin a life: forked, or `fresh`, as a person starts it."""
        assert not self.alive
        if fresh:
            with self._log.open("ab") as log:
                command = [sys.executable, "-c", COMMAND, *self._words]
                self._own = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "CLOAKWORK_STORE": self._store},
                )
            self.number = self._own.pid
        else:
            self.number = self._fork_server.fork(self._words, self._log, self._store)

    @property
    def alive(self) -> bool:
        if self.number == 0:
            return False
        if "_own" in vars(self) and self._own.pid == self.number:
            return self._own.poll() is None
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    @property
    def log(self) -> str:
        """The output of all its lives."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """End this life, and wait for the end."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.number, by)
            until(lambda: not self.alive, f"it does not end:\n{self.log}")
        self.number = 0

    def wait_ready(self) -> Any:
        """Wait until it answers and is connected to its broker; returns its health."""
        health: list[Any] = [None]

        def ready() -> bool:
            assert self.alive, f"it has ended:\n{self.log}"
            health[0] = self.client.health()
            return health[0] is not None and health[0]["broker"]["state"] in {"ok", "none"}

        until(ready, "it does not get ready")
        return health[0]
