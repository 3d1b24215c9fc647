"""Caddy with the shipped `deploy/Caddyfile` in front of a collector."""

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.broker import make_certificates
from tests.deploy.installation import DEPLOY
from tests.parts import needs, program
from tests.ports import free_port
from tests.waiting import PATIENCE, until


@contextmanager
def running_proxy(
    folder: Path, port: int, certificate: Path | None = None, authority: Path | None = None
) -> Iterator[tuple[int, ssl.SSLContext]]:
    """Serve https in front of a collector's port; gives the port of the proxy, and what a client has to trust."""
    needs("caddy")
    if certificate is None:
        make_certificates(folder)
    certificate = certificate or folder / "server.pem"
    secure_port = free_port()
    settings = {
        "CLOAKWORK_ADDRESS": f"localhost:{secure_port}",
        "CLOAKWORK_COLLECTOR": f"127.0.0.1:{port}",
        "CLOAKWORK_CERTIFICATE": str(certificate),
        "CLOAKWORK_KEY": str(certificate.with_suffix(".key")),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    words = [str(program("caddy")), "run", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(words, env=settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: _listens(secure_port))
        yield secure_port, ssl.create_default_context(cafile=str(authority or folder / "ca.pem"))
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE):
        return True
    return False
