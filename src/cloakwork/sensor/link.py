"""Sockets on CPython and on boards: a connection to the broker, with or without TLS, and datagrams to a time server."""

import socket
import ssl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECT = 5  # seconds
WRITE = 2


class Link:
    """A stream of bytes; `authority` is a file of certificates to trust instead of the system's."""

    def __init__(self, host: str, port: int, tls: bool, authority: str | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._authority = authority
        self._socket: Any = None
        self._reason = ""

    def start(self) -> None:
        """Connect. This waits for at most five seconds per address of the host."""
        self._reason = ""
        try:
            addresses = socket.getaddrinfo(self._host, self._port, 0, socket.SOCK_STREAM)
        except OSError as problem:
            self._reason = f"cannot find {self._host}: {problem}"
            return
        for address in addresses:
            self._connect(address)
            if self._socket is not None:
                return

    def _connect(self, address: "tuple[Any, ...]") -> None:
        raw: Any = None
        try:
            raw = socket.socket(address[0], socket.SOCK_STREAM)
            raw.settimeout(CONNECT)
            raw.connect(address[-1])
            wrapped: Any = self._context().wrap_socket(raw, server_hostname=self._host) if self._tls else raw
            wrapped.setblocking(False)
            self._socket = wrapped
            self._reason = ""
        except (OSError, ValueError) as problem:
            self._reason = f"cannot connect to {self._host}:{self._port}: {problem}"
            if raw is not None:
                raw.close()

    def reason(self) -> str:
        """Why the last attempt failed; empty if it succeeded."""
        return self._reason

    def status(self) -> str:
        """`open` or `closed`."""
        return "closed" if self._socket is None else "open"

    def read(self) -> bytes:
        """The bytes that have arrived. If the other side has closed the link, so does this side."""
        if self._socket is None:
            return b""
        try:
            data = self._socket.recv(1024) if hasattr(self._socket, "recv") else self._socket.read(1024)
        except OSError as problem:
            if not _again(problem):
                self.close()
            return b""
        if data is None:
            return b""
        if not data:
            self.close()
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Send all bytes, or close the link."""
        if self._socket is None:
            return
        try:
            self._socket.settimeout(WRITE)
            if hasattr(self._socket, "sendall"):
                self._socket.sendall(data)
            else:
                self._socket.write(data)
            self._socket.setblocking(False)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close once the other side has received everything: it might drop data if the link broke off."""
        link, self._socket = self._socket, None
        if link is None:
            return
        try:
            if hasattr(link, "shutdown"):
                link.settimeout(WRITE)
                link.shutdown(socket.SHUT_WR)
                while link.recv(1024):
                    pass
        except OSError:
            pass
        link.close()

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_mode = ssl.CERT_REQUIRED
        if self._authority is not None:
            context.load_verify_locations(self._authority)
        elif hasattr(context, "load_default_certs"):
            context.load_default_certs()
        return context


class Datagrams:
    """Datagrams to and from one address; the system drops those from elsewhere."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._port = port
        self._socket: Any = None

    def open(self) -> None:
        """Look up the host, and begin anew with its first address that has a route."""
        self.close()
        problem = OSError("it has no address")
        for address in socket.getaddrinfo(self.host, self._port, 0, socket.SOCK_DGRAM):
            raw: Any = None
            try:
                raw = socket.socket(address[0], socket.SOCK_DGRAM)
                raw.connect(address[-1])
                raw.setblocking(False)
            except OSError as error:
                problem = error
                if raw is not None:
                    raw.close()
            else:
                self._socket = raw
                return
        raise problem

    def send(self, data: bytes) -> None:
        """Send one datagram."""
        self._socket.send(data)

    def receive(self) -> bytes:
        """A datagram that has arrived, or nothing."""
        try:
            return bytes(self._socket.recv(128))
        except OSError as problem:
            if not _again(problem):
                raise
            return b""

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _again(problem: OSError) -> bool:
    """Whether an error only means that nothing has arrived yet."""
    waiting = getattr(ssl, "SSLWantReadError", None)
    if waiting is not None and isinstance(problem, waiting):
        return True
    return bool(problem.args) and problem.args[0] in (11, 35, 10035)
