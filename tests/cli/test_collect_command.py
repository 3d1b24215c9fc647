"""`cloakwork collect`: how it starts, what it says, what it refuses, and how it ends."""

import http.client
import json
import logging
import os
import pty
import re
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.storage import open_store
from tests.cli.conftest import Run
from tests.collect.collector_process import SITE
from tests.collect.small_sites import site_file
from tests.forking import COMMAND, python
from tests.waiting import PATIENCE, until

PAGE = re.compile(r"the page is at (https?)://([\w.]+):(\d+)/")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_file(tmp_path, SITE)


@pytest.fixture(autouse=True)
def _same_process() -> Iterator[None]:
    """The command sets how much is logged and what signals do, as is right for a process of its own."""
    ours = logging.getLogger("cloakwork")
    level = ours.level
    usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    ours.setLevel(level)
    for number, handler in usual.items():
        signal.signal(number, handler)


class Started:
    """A process that runs `cloakwork`, and all that it says."""

    def __init__(self, *words: object, stdin: int = subprocess.DEVNULL, out: int | None = None) -> None:
        streams = subprocess.PIPE if out is None else out
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
        self.process = python(COMMAND, *words, stdin=stdin, stdout=streams, stderr=streams, env=environment)
        self._said = b""
        self._source = out
        if self.process.stderr is not None:
            os.set_blocking(self.process.stderr.fileno(), False)

    @property
    def said(self) -> str:
        if self.process.stderr is not None:
            self._said += self.process.stderr.read() or b""
        return self._said.decode()

    def wait_for(self, pattern: str) -> re.Match[str]:
        found: list[re.Match[str]] = []

        def look() -> bool:
            match = re.search(pattern, self.said)
            if match is not None:
                found.append(match)
            assert match or self.process.poll() is None, self.said
            return match is not None

        until(look, self._said.decode())
        return found[0]

    def end(self) -> int:
        """Ask it to end; gives its code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def started(*words: object) -> Iterator[Started]:
    one = Started(*words)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdout, one.process.stderr):
            if stream is not None:
                stream.close()


def ask(port: int, method: str, path: str, body: object = None, context: ssl.SSLContext | None = None) -> Any:
    """The status, the cookie and the body of an answer."""
    if context is None:
        link = http.client.HTTPConnection("localhost", port, timeout=PATIENCE)
    else:
        link = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)
    with closing(link):
        link.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = link.getresponse()
        return answer.status, answer.getheader("Set-Cookie") or "", answer.read()


def test_without_a_terminal_it_says_where_the_page_is_and_no_token_and_ends_when_asked(
    site: Path, tmp_path: Path
) -> None:
    store = tmp_path / "new.db"
    with started("collect", site, "--broker", "none", "--listen", "127.0.0.1:0", "--store", store) as one:
        port = int(one.wait_for(PAGE.pattern)[3])
        assert "collecting hall (4 sensors)" in one.said
        assert "create a token with: cloakwork token new --role operator" in one.said
        assert ask(port, "GET", "/healthz")[0] == 200
        assert b"<html" in ask(port, "GET", "/")[2]
        assert ask(port, "GET", "/v1/sites")[0] == 401
        assert one.end() == 0
        assert "stopping: storing what has been received ...\n" in one.said
        assert one.said.endswith("stopped\n")
        assert one.process.stdout is not None
        assert "cw_" not in one.said + one.process.stdout.read().decode()
    with open_store(str(store)) as opened:
        assert opened.tokens.list_all() == []


def read_terminal(terminal: int, seconds: float, enough: str) -> str:
    os.set_blocking(terminal, False)
    said, end = b"", time.monotonic() + seconds
    while enough not in said.decode() and time.monotonic() < end:
        try:
            said += os.read(terminal, 4096)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:  # it was closed
            break
    return said.decode()


def test_on_a_terminal_with_a_new_store_it_shows_a_link_that_signs_in_and_only_once(site: Path, tmp_path: Path) -> None:
    words = ("collect", site, "--broker", "none", "--listen", "127.0.0.1:0", "--store", tmp_path / "new.db")
    for first in (True, False):
        ours, theirs = pty.openpty()
        one = Started(*words, stdin=theirs, out=theirs)
        try:
            said = read_terminal(ours, PATIENCE, "#code=" if first else "the page is at")
            said += read_terminal(ours, 1, "\0")
            if first:
                link = re.search(r"http://127\.0\.0\.1:(\d+)/#code=([\w-]{32})\s", said)
                assert link is not None, said
                assert "cw_" not in said, "no token, which a browser would keep for ever"
                status, cookie, body = ask(int(link[1]), "POST", "/v1/session", {"code": link[2]})
                assert (status, json.loads(body)["role"]) == (200, "operator")
                assert "HttpOnly" in cookie
                assert ask(int(link[1]), "POST", "/v1/session", {"code": link[2]})[0] == 401
            else:
                assert "#code=" not in said
                assert "the page is at http://127.0.0.1:" in said
                assert "if you have no token, create a token" in said
            assert one.end() == 0
        finally:
            one.process.kill()
            one.process.wait()
            os.close(theirs)
            os.close(ours)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--keep", "soon"), 2, "'--keep': soon: give a whole number with m, h, d or w, such as"),
        (("--keep", "0d"), 2, "'--keep': 0d: give a whole number"),
        (("--keep", "-1d"), 2, "'--keep': -1d: give a whole number"),
        (("--keep", "90"), 2, "'--keep': 90: give a whole number"),
        (("--listen", "0.0.0.0:0"), 2, "--listen 127.0.0.1:0 --proxied"),
        (("--listen", "[::]:0", "--proxied"), 2, "--listen :::0 --private-network"),
        (("--listen", "8080"), 2, "--listen 8080: give an address and a port, such as 127.0.0.1:8080"),
        (("--listen", "127.0.0.1:99999"), 2, "--listen 127.0.0.1:99999: give an address and a port"),
        (("--broker", "embedded:99999"), 2, "give mqtt://host"),
        (("--listen", "192.0.2.1:8080", "--private-network"), 2, "Give an address of this machine and a free port"),
        (("--listen", "nowhere.invalid:8080", "--private-network"), 2, "nowhere.invalid:8080"),
        (("--store", "mysql://me@host/db"), 2, "mysql"),
        (("--store", "postgresql://me@127.0.0.1:1/db"), 1, "does not answer"),
        (("--store", "postgresql://me:hush@127.0.0.1:1/db"), 2, "do not put the password on the command line"),
        (("--store", "postgresql://me@127.0.0.1:1/db?password=hush"), 2, "do not put the password on the command line"),
        (("--store", "no/such/folder/x.db"), 1, "no/such/folder/x.db"),
        (("--home-assistant",), 2, "Home Assistant"),
        (("--group", "a"), 2, "--group need --broker"),
        (("--password-file", "site.toml"), 2, "need --broker"),
        (("--broker", "mqtt://me:hush@host"), 2, "leave the password out of the address"),
        (("--broker", "http://host"), 2, "give mqtt://host"),
        (("--broker", "mqtts://me@host", "--password-file", "no.txt"), 2, "no.txt"),
        (("--broker", "mqtts://me@host", "--ca", "site.toml"), 2, "site.toml: cannot be read. Give a file of"),
        (("--broker", "mqtts://me@host", "--name", ""), 2, "the client id is empty"),
        (("--broker", "mqtts://me@host", "--group", "a/b"), 2, "give a name without /, + and #"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    run: Run, site: Path, words: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.parent)
    usual = ("--broker", "none", "--listen", "127.0.0.1:0")
    done = run("collect", site, *usual, *words)
    assert (done.code, said in done.err) == (code, True), done.err
    assert "Traceback" not in done.said
    assert "hush" not in done.said
    assert done.out == ""


def test_a_site_without_its_plan_or_twice_is_refused(run: Run, site: Path, tmp_path: Path) -> None:
    twice = run("collect", site, site, "--broker", "none")
    assert (twice.code, "hall" in twice.err) == (2, True)
    next(tmp_path.glob("*.plan.json")).unlink()
    without = run("collect", site, "--broker", "none")
    assert (without.code, "has no plan next to it" in without.err, "cloakwork plan" in without.err) == (2, True, True)
    missing = run("collect", tmp_path / "no.toml", "--broker", "none")
    assert missing.code in {1, 2}
    assert "no.toml" in missing.err
    assert not (tmp_path / "cloakwork.db").exists()
