"""Limits and times of the HTTP interface."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiSettings:
    """The defaults suit a building.

    A `rate` is per second, a `burst` allowed at once after a pause; names that end in `_s` are seconds.
    """

    tls: bool = False  # clients connect by https, here or at a proxy: cookies are sent by https only
    body_bytes: int = 1 << 20  # largest body of a device
    small_bytes: int = 2048  # largest body of any other client
    body_s: float = 20.0  # for a body to arrive
    connections: int = 1000  # fewer where the process may not open so many files
    connections_per_address: int = 400
    head_s: float = 10.0  # for a client to begin a request
    read_s: float = 60.0  # for a client to read what is buffered of a response
    device_rate: float = 50.0  # requests of one device
    device_burst: float = 100.0
    readings_per_request: int = 20  # in a batch, or their size in bytes, that count as one request
    reader_rate: float = 50.0  # requests of one analyst or operator
    reader_burst: float = 200.0
    rows_per_request: int = 100  # of a page of results or readings that count as one request
    failure_rate: float = 0.2  # wrong tokens from one address
    failure_burst: float = 10.0
    sign_in_rate: float = 2.0  # attempts to sign in to the page from one address
    sign_in_burst: float = 30.0
    device_at_once: int = 8  # requests of one token under way
    reader_at_once: int = 32
    writes_at_once: int = 24  # calls of the store under way, for devices
    reads_at_once: int = 12  # and for readers
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
