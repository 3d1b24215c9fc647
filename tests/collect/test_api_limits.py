"""Limits on bodies."""

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cloakwork.collect.api import error_responses
from tests.collect.api_kit import Bench, served
from tests.waiting import PATIENCE


def test_a_body_declared_too_large_is_refused_unread(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 2000000"))
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 413")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too-large"


def test_a_body_that_grows_too_large_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_responses, "BODY_BYTES", 100_000)
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Transfer-Encoding: chunked"))
            piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
            for _ in range(4):  # more than is allowed, and there is no end of it yet
                link.sendall(piece)
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 413")


def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 5\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n")
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in answer.lower()


def test_without_a_token_no_body_is_read(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 50", who="anonymous"))
            assert _answer(link).startswith(b"HTTP/1.1 401")


def _head(made: Bench, length: str, who: str = "device") -> bytes:
    lines = ["POST /v1/readings HTTP/1.1", "Host: localhost", "Content-Type: application/json", length]
    lines += [f"{name}: {value}" for name, value in made.bearer(who).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _answer(link: socket.socket) -> bytes:
    """All of an answer, whose body is in one piece with a length."""
    found = b""
    while b"\r\n\r\n" not in found or not found.endswith(b"}"):
        piece = link.recv(4096)
        if not piece:
            break
        found += piece
    return found
