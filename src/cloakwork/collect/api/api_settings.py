"""Limits and times of the HTTP interface."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiSettings:
    """The defaults suit a building; names that end in `_s` are seconds."""

    tls: bool = False  # clients connect by https, to a proxy: cookies are sent by https only
    body_bytes: int = 1 << 20  # largest body of a device
    small_bytes: int = 2048  # largest body of any other client
    streams: int = 200  # event streams in total
    streams_per_token: int = 16
    stream_queue: int = 256  # events that may wait for a slow client
    stream_s: float = 3600.0  # until a stream ends; a browser reconnects and misses nothing
    heartbeat_s: float = 15.0  # between comments that keep a stream open
    follow_s: float = 0.5  # between polls of the store for news
    send_s: float = 20.0  # for a client to read an event
    token_s: float = 1.0  # until a valid token is checked again, in case another process revoked it
    sessions: int = 1000  # of the page, in total
    sessions_per_token: int = 16
    session_s: float = 12 * 3600.0
    code_s: float = 600.0  # until a one-time code in an address expires
