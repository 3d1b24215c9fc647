"""The address of a broker: where it is, whom to trust, and the user to connect as."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cloakwork.errors import InputError

PORTS = {"mqtt": 1883, "mqtts": 8883}
_USER = re.compile(r"[^\x00-\x1f/+#]{1,128}")


@dataclass(frozen=True)
class BrokerAddress:
    """A broker; `authority` is a file of certificates to trust instead of the system's."""

    host: str = "localhost"
    port: int = 1883
    tls: bool = False
    user: str | None = None
    password: str | None = None
    authority: Path | None = None

    def __repr__(self) -> str:
        return f"BrokerAddress({'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port})"


def parse_broker(url: str, *, password_file: Path | None = None, authority: Path | None = None) -> BrokerAddress:
    """Read the address of a broker, `mqtt://[user@]host[:port]`, or `mqtts://` with TLS.

    >>> parse_broker("mqtts://s07@broker.example")
    BrokerAddress(mqtts://broker.example:8883)
    """
    parts = urlsplit(url)
    try:
        missing = 0 if parts.netloc.endswith(":") else PORTS.get(parts.scheme, 0)
        port = missing if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts.scheme not in PORTS or not parts.hostname or not port or parts.path.strip("/") or parts.query:
        # the address is not repeated: it may hold a password
        raise InputError("broker address: give mqtt://host, mqtts://user@host:8883 or the like.", key="broker")
    if parts.password is not None:
        raise InputError(
            "broker address: leave the password out of the address, and put it into a password file.", key="password"
        )
    tls = parts.scheme == "mqtts"
    if authority is not None and not tls:
        raise InputError("certificates go with mqtts://, which encrypts; mqtt:// does not.", key="authority")
    user = None if parts.username is None else unquote(parts.username)
    if user is not None and not _USER.fullmatch(user):
        raise InputError("broker address: a user name has 1 to 128 characters, without /, + and #.", key="user")
    password = None if password_file is None else read_password(password_file)
    if password is not None and user is None:
        raise InputError("a password goes with a user: give mqtts://user@host.", key="user")
    return BrokerAddress(parts.hostname, port, tls, user, password, authority)


def read_password(path: Path) -> str:
    """The password on the only line of a file."""
    try:
        password = path.read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError):
        password = ""
    if not password or "\n" in password or len(password) > 1024:
        raise InputError(f"{path}: give a text file with the password on its only line.", path=str(path))
    return password
