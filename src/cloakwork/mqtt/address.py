"""Where a broker is, and who the device is to it."""

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
    """A broker by its address, `mqtt://[user@]host[:port]`, or `mqtts://` with TLS.

    >>> parse_broker("mqtts://s07@broker.example")
    BrokerAddress(mqtts://broker.example:8883)
    """
    parts = urlsplit(url)
    try:
        port = PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts.scheme not in PORTS or not parts.hostname or not port or parts.path.strip("/") or parts.query:
        # the address is not repeated: it may hold a password
        raise InputError("--broker: give mqtt://host, mqtts://user@host:8883 or the like.")
    if parts.password is not None:
        raise InputError("--broker: leave the password out of the address; put it into a file for --password-file.")
    tls = parts.scheme == "mqtts"
    if authority is not None and not tls:
        raise InputError("--ca goes with mqtts://, which encrypts; mqtt:// does not.")
    user = None if parts.username is None else unquote(parts.username)
    password = None if password_file is None else _password(password_file)
    if password is not None and user is None:
        raise InputError("--password-file: name the user as well, as in mqtts://user@host.")
    if user is not None and not _USER.fullmatch(user):
        raise InputError("--broker: a user name has 1 to 128 characters, without /, + and #.")
    return BrokerAddress(parts.hostname, port, tls, user, password, authority)


def _password(path: Path) -> str:
    try:
        found = path.read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read. Give a text file with the password on its only line.") from None
    if not found or "\n" in found or len(found) > 1024:
        raise InputError(f"{path}: give a text file with the password on its only line.")
    return found
