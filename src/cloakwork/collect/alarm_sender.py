"""Sends alarms by webhook and mail: sensors are away, the claim is at risk, the physics has changed.

A message names a site, sensors and reasons; it has no room for a reading.
"""

import json
import logging
import smtplib
import ssl
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cloakwork.errors import InputError, StoreError
from cloakwork.mqtt import ALARMS, AWAY, read_password
from cloakwork.site import Seconds

LASTING_S = {AWAY: 900.0}  # before it is an alarm: a device may only start again
RETRY_S = 300.0  # after a message that could not be sent
TIMEOUT_S = 10.0
PORTS = {"smtp": 587, "smtps": 465}
LOCAL = ("localhost", "127.0.0.1", "::1")
log = logging.getLogger(__name__)

Reasons: TypeAlias = Callable[[str], Mapping[str, Sequence[str]]]


def _reachable(address: str) -> str:
    try:
        _ = urlsplit(address).port
    except ValueError:  # its text repeats parts of the address
        raise ValueError("its host or its port cannot be one") from None
    return address


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Webhook(_Table):
    """`[webhook]`: an address that takes JSON by POST."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s/]+\S*$"), AfterValidator(_reachable)]

    def send(self, alarm: "AlarmMessage") -> None:
        body = json.dumps({**vars(alarm), "title": alarm.title, "text": alarm.text}).encode()
        request = Request(self.url, body, {"Content-Type": "application/json"})  # noqa: S310 - checked above
        with urlopen(request, timeout=TIMEOUT_S):  # noqa: S310
            pass


class Mail(_Table):
    """`[mail]`: a mail server, smtps:// or smtp:// with STARTTLS, and who writes to whom."""

    server: Annotated[
        str,
        Field(pattern=r"^smtps?://([^\s/@:]+@)?([^\s/@:]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$"),
        AfterValidator(_reachable),
    ]
    sender: Annotated[str, Field(alias="from", pattern=r"^[^\s@]+@[^\s@]+$")]
    to: Annotated[list[Annotated[str, Field(pattern=r"^[^\s@]+@[^\s@]+$")]], Field(min_length=1)]
    password_file: Path | None = None

    def send(self, alarm: "AlarmMessage") -> None:
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = f"[Cloakwork] {alarm.title}", self.sender, ", ".join(self.to)
        mail.set_content(alarm.text)
        with self._connected() as server:
            server.send_message(mail)

    def _connected(self) -> smtplib.SMTP:
        parts, context = urlsplit(self.server), ssl.create_default_context()
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
            if host not in LOCAL:
                server.starttls(context=context)
        if parts.username is not None and self.password_file is not None:
            server.login(parts.username, read_password(self.password_file))
        return server


class AlarmSettings(_Table):
    """Where alarms go; at most one message of each alarm in `every` seconds."""

    every: Seconds = 3600.0
    webhook: Webhook | None = None
    mail: Mail | None = None

    @property
    def channels(self) -> dict[str, Webhook | Mail]:
        given = {"webhook": self.webhook, "mail": self.mail}
        return {name: channel for name, channel in given.items() if channel is not None}


def load_alarms(path: Path) -> AlarmSettings:
    """Read the file of `collect --alarms`; an error names the key and repeats no value, which may be a secret."""
    try:
        found = AlarmSettings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"{path}: {problem}.", path=str(path)) from None
    except ValidationError as problem:
        key = ".".join(map(str, problem.errors()[0]["loc"]))
        raise InputError(f"{path}: {key}: {problem.errors()[0]['msg']}.", path=str(path), key=key) from None
    if not found.channels:
        raise InputError(f"{path}: give [webhook], [mail] or both.", path=str(path))
    mail = found.mail
    if mail is None or mail.password_file is None:
        return found
    if "@" not in mail.server:
        raise InputError(f"{path}: mail.server: a password goes with a user: smtps://user@host.", path=str(path))
    file = path.parent / mail.password_file
    read_password(file)
    return found.model_copy(update={"mail": mail.model_copy(update={"password_file": file})})


@dataclass(frozen=True)
class AlarmMessage:
    """One of the `ALARMS` of a site that begins, has new reasons, or ends."""

    site: str
    alarm: str
    on: bool
    reasons: tuple[str, ...]
    page: str | None

    @property
    def title(self) -> str:
        return f"{self.site}: {ALARMS[self.alarm]}{'' if self.on else ', over'}"

    @property
    def text(self) -> str:
        """The whole message for people."""
        return "\n".join((self.title, *(f"- {reason}" for reason in self.reasons), *filter(None, [self.page])))


class LastingReasons:
    """The reasons of the alarms of a site that have lasted long enough, from those that are on now."""

    def __init__(self, reasons: Reasons, steady: Callable[[], float] = time.monotonic) -> None:
        self._reasons, self._steady = reasons, steady
        self._since: dict[tuple[str, str], float] = {}

    def __call__(self, site: str) -> dict[str, tuple[str, ...]]:
        """The reasons by alarm, none for one that is not on or not yet."""
        found, lasting = self._reasons(site), {}
        for alarm in ALARMS:
            reasons, now = tuple(found.get(alarm, ())), self._steady()
            if not reasons:
                self._since.pop((site, alarm), None)
            elif now - self._since.setdefault((site, alarm), now) < LASTING_S.get(alarm, 0.0):
                reasons = ()
            lasting[alarm] = reasons
        return lasting


@dataclass(frozen=True)
class _Sent:
    """The last message of a channel about an alarm."""

    on: bool = False
    reasons: frozenset[str] = frozenset()
    at: float = -float("inf")


class AlarmSender:
    """Sends what is new about the alarms of some sites. Call `look` every half minute.

    `reasons` gives those of each of the `ALARMS` of a site that are on now. Changes within `settings.every` of a
    message are held back; after it, only what still differs is sent. A channel that fails is tried again.
    """

    def __init__(
        self,
        settings: AlarmSettings,
        sites: Iterable[str],
        reasons: Reasons,
        *,
        page_url: str | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._sites, self._reasons = settings, sorted(sites), LastingReasons(reasons, steady)
        self._page, self._steady = page_url, steady
        self._sent: dict[tuple[str, str, str], _Sent] = {}
        self._retry: dict[str, float] = {}

    def look(self) -> None:
        """Send what is new."""
        for site in self._sites:
            with suppress(StoreError):  # the next look says it
                for alarm, reasons in self._reasons(site).items():
                    self._tell(site, alarm, reasons)

    def _tell(self, site: str, alarm: str, reasons: tuple[str, ...]) -> None:
        now, message = self._steady(), AlarmMessage(site, alarm, bool(reasons), reasons, self._page)
        for name, channel in self._settings.channels.items():
            last = self._sent.get((name, site, alarm), _Sent())
            news = message.on != last.on or set(reasons) - last.reasons
            if not news or now - last.at < self._settings.every or now < self._retry.get(name, now):
                continue
            try:
                channel.send(message)
            except (OSError, HTTPException, smtplib.SMTPException, InputError) as problem:
                # its text may hold the address, which may be a secret
                log.warning("an alarm of %s could not be sent by %s: %s", site, name, type(problem).__name__)
                self._retry[name] = now + RETRY_S
            else:
                self._sent[name, site, alarm] = _Sent(message.on, frozenset(reasons), now)
