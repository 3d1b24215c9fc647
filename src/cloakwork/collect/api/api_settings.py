"""Limits and times of the HTTP interface."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiSettings:
    """The defaults suit a building; names that end in `_s` are seconds."""

    tls: bool = False  # clients connect by https, to a proxy: cookies are sent by https only
    body_bytes: int = 1 << 20  # largest body of a device
    streams: int = 200  # event streams in total
    streams_per_token: int = 16
    stream_queue: int = 256  # events that may wait for a slow client
    stream_s: float = 3600.0  # until a stream ends; a browser reconnects and misses nothing
    heartbeat_s: float = 15.0  # between comments that keep a stream open
    check_s: float = 5.0  # between two looks of a stream whether its token is still valid
    follow_s: float = 0.25  # between two looks at the store for news
    send_s: float = 20.0  # for a client to read an event
