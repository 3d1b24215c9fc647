"""Alarms by webhook and mail: what is sent, how often, and what never is."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect import alarm_sender
from cloakwork.collect.alarm_sender import LASTING_S, RETRY_S, AlarmSender, load_alarms
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.service import ListenAddress, Service
from cloakwork.collect.storage import DeviceReport, Store, unix_ms
from cloakwork.errors import InputError, StoreAwayError
from cloakwork.mqtt import AWAY, CLAIM, PHYSICS
from tests.collect.collector_process import SITE
from tests.collect.small_sites import make
from tests.test_docs import ROOT, blocks
from tests.waiting import until


class Receiver:
    """What came by webhook and by mail, while it answers."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.mails: list[EmailMessage] = []
        self.works = True


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield int(server.server_address[1])  # type: ignore[index,unused-ignore]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def received() -> Receiver:
    return Receiver()


@pytest.fixture
def hook(received: Receiver) -> Iterator[int]:
    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.works:
                received.posted.append(json.loads(body))
            self.send_response(204 if received.works else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Hook)) as port:
        yield port


@pytest.fixture
def post(received: Receiver) -> Iterator[int]:
    class Post(socketserver.StreamRequestHandler):
        """As much of RFC 5321 as one mail takes."""

        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().strip().upper():
                if line == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    text = b"".join(iter(self.rfile.readline, b".\r\n"))
                    received.mails.append(message_from_bytes(text, policy=policy.default))
                self.wfile.write(b"221 bye\r\n" if line == b"QUIT" else b"250 fine\r\n")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Post)) as port:
        yield port


def written(folder: Path, text: str) -> Path:
    file = folder / "alarms.toml"
    file.write_text(text, encoding="utf-8")
    return file


def both(folder: Path, hook: int, post: int) -> Path:
    mail = f'server = "smtp://localhost:{post}"\nfrom = "c@site.example"\nto = ["ada@site.example"]\n'
    return written(folder, f'every = "1h"\n[webhook]\nurl = "http://127.0.0.1:{hook}/secret"\n[mail]\n{mail}')


class Bench:
    """A sender whose clock and alarms the test sets."""

    def __init__(self, file: Path) -> None:
        self.now, self.reasons = 0.0, dict[str, list[str]]()
        self.sender = AlarmSender(
            load_alarms(file), ["flat"], lambda _: self.reasons, page_url="https://c.example", steady=lambda: self.now
        )

    def at(self, hours: float, **reasons: list[str]) -> None:
        self.now, self.reasons = 3600 * hours, {name.replace("_", "-"): texts for name, texts in reasons.items()}
        self.sender.look()


def test_an_alarm_goes_out_once_with_its_reasons_and_its_end(
    received: Receiver, hook: int, post: int, tmp_path: Path
) -> None:
    bench = Bench(both(tmp_path, hook, post))
    bench.at(0)
    bench.at(0.1, claim_at_risk=["s1: over budget"])
    for minute in range(50):
        bench.at(0.2 + minute / 100, claim_at_risk=["s1: over budget"])
    assert [(one["site"], one["alarm"], one["on"]) for one in received.posted] == [("flat", CLAIM, True)]
    assert received.posted[0]["text"] == "flat: Claim at risk\n- s1: over budget\nhttps://c.example"
    [mail] = received.mails
    assert (mail["To"], mail["Subject"]) == ("ada@site.example", "[Cloakwork] flat: Claim at risk")
    assert "s1: over budget" in mail.get_content()
    bench.at(2)
    assert received.posted[-1]["text"] == "flat: Claim at risk, over\nhttps://c.example"
    assert len(received.mails) == 2


def test_what_comes_and_goes_is_one_message_an_hour(received: Receiver, hook: int, post: int, tmp_path: Path) -> None:
    bench = Bench(both(tmp_path, hook, post))
    for look in range(240):  # two hours, a look each half minute
        bench.at(look / 120, physics_changed=[f"s{look} is dead"] if look % 2 else [])
    assert len(received.posted) == len(received.mails) == 2


def test_a_device_that_starts_again_is_no_alarm_and_one_that_stays_away_is(
    received: Receiver, hook: int, post: int, tmp_path: Path
) -> None:
    bench, after = Bench(both(tmp_path, hook, post)), LASTING_S[AWAY] / 3600
    bench.at(0, sensors_away=["s1: offline"])
    bench.at(after / 2)
    bench.at(after, sensors_away=["s1: offline"])
    assert received.posted == []
    bench.at(2 * after, sensors_away=["s1: offline"])
    assert [one["reasons"] for one in received.posted] == [["s1: offline"]]
    bench.at(2 * after + 2, sensors_away=["s1: offline", "s2: offline"])
    assert received.posted[-1]["reasons"] == ["s1: offline", "s2: offline"]


def test_a_channel_that_fails_is_tried_again_and_its_address_not_logged(
    received: Receiver, hook: int, post: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench, received.works = Bench(both(tmp_path, hook, post)), False
    bench.at(0, physics_changed=["a door"])
    assert (len(received.posted), len(received.mails)) == (0, 1)
    received.works = True
    bench.at(RETRY_S / 7200, physics_changed=["a door"])
    assert received.posted == []
    bench.at(2 * RETRY_S / 3600, physics_changed=["a door"])
    assert [one["alarm"] for one in received.posted] == [PHYSICS]
    assert len(received.mails) == 1
    assert "could not be sent by webhook" in caplog.text
    assert "secret" not in caplog.text
    bench.sender = AlarmSender(load_alarms(both(tmp_path, hook, post)), ["flat"], away)
    bench.sender.look()  # a store that is away ends nothing


def away(_: str) -> dict[str, list[str]]:
    raise StoreAwayError("the store is away")


def test_the_file_on_the_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "mail.password").write_text("secret\n", encoding="utf-8")
    [text] = [text for text in blocks(ROOT / "docs" / "collector.md", "toml") if "[webhook]" in text]
    found = load_alarms(written(tmp_path, text))
    assert (found.every, set(found.channels)) == (3600.0, {"webhook", "mail"})
    assert found.mail is not None
    assert found.mail.password_file == tmp_path / "mail.password"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "give"),
        ("[webhook]\nurl = 'ftp://secret'", "webhook.url"),
        ("[webhook]\nurl = 'https://a'\nmore = 1", "webhook.more"),
        ("[webhook]\nurl = 'https://[secret'", "webhook.url"),
        ("[webhook]\nurl = 'https://bot:secret/x@host'", "webhook.url"),
        ("[mail]\nserver = 'smtp://a:99999'\nfrom = 'a@b'\nto = ['c@d']", "mail.server"),
        ("every = 0\n[webhook]\nurl = 'https://a'", "every"),
        ("[mail]\nserver = 'smtp://a'\nfrom = 'a@b'\nto = []", "mail.to"),
        ("[mail]\nserver = 'smtp://u:secret@a'\nfrom = 'a@b'\nto = ['c@d']", "mail.server"),
        ("[mail]\nserver = 'smtp://a'\nfrom = 'a@b'\nto = ['c@d']\npassword_file = 'p'", "mail.server"),
        ("[mail]\nserver = 'smtp://u@a'\nfrom = 'a@b'\nto = ['c@d']\npassword_file = 'p'", "No such file"),
        ("[mail", "alarms.toml"),
    ],
)
def test_a_file_that_cannot_work_is_refused_without_its_secrets(text: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_alarms(written(tmp_path, text))
    assert key in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_collector_sends_what_its_store_says(
    received: Receiver, hook: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloakwork.collect.service.ALARMS_S", 0.05)
    monkeypatch.setattr(alarm_sender, "LASTING_S", {})
    watched: CollectedSite = make(tmp_path, SITE)
    sensor, file = watched.ids[0], written(tmp_path, f'[webhook]\nurl = "http://127.0.0.1:{hook}"')
    service = Service({"hall": watched}, store, broker=None, listen=ListenAddress(port=0), alarms=load_alarms(file))
    service.start()
    try:
        store.reports.add([DeviceReport("hall", sensor, "offline", 0, 10, unix_ms())])
        until(lambda: received.posted)
    finally:
        service.stop()
    assert [(one["alarm"], one["reasons"]) for one in received.posted] == [(AWAY, [f"{sensor}: offline"])]
