"""Limits and times of the HTTP interface that an operator may set."""

from dataclasses import dataclass, fields

from cloakwork.errors import InputError


@dataclass(frozen=True)
class ApiSettings:
    """Limits and times of the HTTP interface; the defaults suit a building.

    Attributes
    ----------
    tls
        Whether clients connect by https, here or at a proxy: cookies are then sent by https only.
    body_bytes, small_bytes, body_s
        The largest body of a device, that of any other client, and how long a body may take to arrive.
    connections, connections_per_address, head_s, read_s
        Connections in total (fewer where the process may not open so many files) and from one address; how long a
        client may take to begin a request, and to read what is buffered of a response.
    device_rate, device_burst
        Requests a second of one device, and how many at once after a pause.
    readings_per_request
        A batch counts as one request for every so many readings in it, or for as many bytes as those may have.
    reader_rate, reader_burst
        The same for one analyst or operator.
    rows_per_request
        A page of results or readings counts as one request for every so many rows that it may have.
    failure_rate, failure_burst
        Wrong tokens a second from one address before it has to wait.
    sign_in_rate, sign_in_burst
        Attempts to sign in to the page a second from one address.
    device_at_once, reader_at_once
        Requests of one token that may be under way.
    writes_at_once, reads_at_once
        Calls of the store that may be under way, for devices and for readers.
    streams, streams_per_token, stream_queue, stream_s
        Event streams in total and for one token, how many events may wait for a slow client, and after how long a
        stream ends (a browser reconnects automatically, and misses nothing).
    heartbeat_s, follow_s, send_s
        How often a stream sends a comment to stay open, how often the store is polled for news, and how long a client
        may take to read an event.
    token_s
        How long a valid token is not looked up again: a token that another process revokes works for so long.
    sessions, sessions_per_token, session_s
        Sessions of the page in total and for one token, and how long one lasts.
    code_s
        How long a one-time code in an address can be used.
    """

    tls: bool = False
    body_bytes: int = 1 << 20
    small_bytes: int = 2048
    body_s: float = 20.0
    connections: int = 1000
    connections_per_address: int = 400
    head_s: float = 10.0
    read_s: float = 60.0
    device_rate: float = 50.0
    device_burst: float = 100.0
    readings_per_request: int = 20
    reader_rate: float = 50.0
    reader_burst: float = 200.0
    rows_per_request: int = 100
    failure_rate: float = 0.2
    failure_burst: float = 10.0
    sign_in_rate: float = 2.0
    sign_in_burst: float = 30.0
    device_at_once: int = 8
    reader_at_once: int = 32
    writes_at_once: int = 24
    reads_at_once: int = 12
    streams: int = 200
    streams_per_token: int = 16
    stream_queue: int = 256
    stream_s: float = 3600.0
    heartbeat_s: float = 15.0
    follow_s: float = 0.5
    send_s: float = 20.0
    token_s: float = 1.0
    sessions: int = 1000
    sessions_per_token: int = 16
    session_s: float = 12 * 3600.0
    code_s: float = 600.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name not in {"tls", "token_s"} and not 0 < value < float("inf"):
                raise InputError(f"{name}={value!r}: give a number above 0.", **{name: value})
        if not 0 <= self.token_s <= 60:
            raise InputError(f"token_s={self.token_s!r}: give seconds from 0 to 60.", token_s=self.token_s)
