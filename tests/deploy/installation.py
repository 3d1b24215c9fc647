"""An installation made with `deploy/prepare`, and its broker: the shipped files on a real mosquitto."""

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.parts import needs, program
from tests.ports import free_port
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"


def prepare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    needs("openssl")
    command = [sys.executable, str(DEPLOY / "prepare"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


class Person:
    """Someone at the broker: what they were let in with, what they hear, and how often they were thrown out.

    A `lasting` session stays when they leave; `remembered` says that there was one.
    """

    def __init__(
        self, port: int, authority: Path, user: str | None, password: str | None, *, name: str, lasting: bool
    ) -> None:
        self.heard: Queue[tuple[str, bytes]] = Queue()
        self.code = ""
        self.remembered = False
        self.thrown_out = 0
        self._answers: Queue[str] = Queue()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=not lasting)
        self._client.tls_set_context(ssl.create_default_context(cafile=str(authority)))
        if user is not None:
            self._client.username_pw_set(user, password)
        self._client.on_connect = self._let_in
        self._client.on_disconnect = self._sent_away
        self._client.on_subscribe = lambda *_: self._answers.put("subscribed")
        self._client.on_message = lambda _, __, message: self.heard.put((message.topic, bytes(message.payload)))
        self._client.connect("localhost", port)
        self._client.loop_start()
        self.code = self._answers.get(timeout=PATIENCE)

    def _let_in(self, _: Any, __: Any, flags: Any, code: Any, ___: Any) -> None:
        self.remembered = flags.session_present
        self._answers.put(str(code))

    def _sent_away(self, _: Any, __: Any, ___: Any, code: Any, ____: Any) -> None:
        self.thrown_out += code.is_failure

    def listen(self, topic: str) -> None:
        self._client.subscribe(topic, 1)
        assert self._answers.get(timeout=PATIENCE) == "subscribed"

    def say(self, topic: str, payload: bytes = b"x", *, retain: bool = False) -> None:
        """Returns when the broker has acknowledged it, which it also does where it throws it away."""
        self._client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(PATIENCE)

    def hears(self, topic: str) -> bool:
        """Whether the next message is of this topic."""
        try:
            return self.heard.get(timeout=PATIENCE)[0] == topic
        except Empty:
            return False

    def leave(self) -> None:
        client = self._client
        client.disconnect()
        client.loop_stop()
        # paho closes its sockets when it is collected, which has to come before they are
        client.on_connect = client.on_disconnect = client.on_subscribe = client.on_message = None


class Site:
    """A prepared folder with its broker at work."""

    def __init__(self, folder: Path, port: int) -> None:
        self.made = folder / "installation"
        self.port = port
        self._people: list[Person] = []

    @property
    def authority(self) -> Path:
        return self.made / "secrets" / "ca.pem"

    def password_file(self, user: str) -> Path:
        place = "devices" if "." in user else "secrets"
        return self.made / place / f"{user.removesuffix('-zones')}.password"

    def enter(
        self, user: str | None, password: str | None = None, *, name: str = "someone", lasting: bool = False
    ) -> Person:
        """`name` is the client id that they ask for."""
        known = user is not None and password is None
        word = self.password_file(str(user)).read_text(encoding="utf-8").strip() if known else password
        self._people.append(Person(self.port, self.authority, user, word, name=name, lasting=lasting))
        return self._people[-1]

    def leave(self) -> None:
        """All leave."""
        while self._people:
            self._people.pop().leave()


@contextmanager
def running_site(folder: Path, *, rules: str = "") -> Iterator[Site]:
    """Sensors s1 and s2 of hall, s1 of yard, collectors `collector` and `second`; `rules` are added to the shipped."""
    needs("mosquitto", "openssl")
    host = "broker.example"
    for arguments in ((host, "hall", "s1", "s2"), (host, "yard", "s1", "--collector", "second")):
        done = prepare(folder, *arguments)
        assert done.returncode == 0, done.stderr
    site = Site(folder, free_port())
    broker = site.made / "broker"
    settings = (broker / "mosquitto.conf").read_text(encoding="utf-8")
    settings = settings.replace("/etc/mosquitto/", f"{broker}/").replace("/var/lib/mosquitto/", f"{broker}/")
    settings = settings.replace("listener 8883", f"listener {site.port} 127.0.0.1")
    if os.geteuid() == 0:
        settings += "user root\n"  # it would become another user, who may not enter the test's folder
    (broker / "test.conf").write_text(settings, encoding="utf-8")
    with (broker / "mosquitto.acl").open("a", encoding="utf-8") as file:
        file.write(rules)
    name = program("mosquitto")
    assert name is not None
    with (broker / "log").open("wb") as log:
        process = subprocess.Popen([name, "-c", str(broker / "test.conf")], stdout=log, stderr=log)
    try:
        _wait(site.port, process, broker / "log")
        yield site
    finally:
        site.leave()
        process.kill()
        process.wait(timeout=PATIENCE)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError("the broker did not start:\n" + log.read_text(encoding="utf-8"))
