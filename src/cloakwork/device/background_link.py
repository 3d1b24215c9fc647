"""A link to the broker that connects in the background, so that no slot is missed while a broker does not answer."""

from threading import Thread

from cloakwork.sensor.link import Link


class BackgroundLink:
    """Like the device's own link, except that `start` returns at once."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to connect."""
        if self._thread is None:
            self._thread = Thread(target=self._link.start, daemon=True, name="cloakwork link")
            self._thread.start()

    def status(self) -> str:
        """`opening` while the connection is being made, then `open` or `closed`."""
        if self._thread is not None:
            if self._thread.is_alive():
                return "opening"
            self._thread = None
        return self._link.status()

    def reason(self) -> str:
        """Why the last attempt failed; empty if it did not."""
        return self._link.reason()

    def read(self) -> bytes:
        """What has arrived."""
        return self._link.read()

    def write(self, data: bytes) -> None:
        """Send."""
        self._link.write(data)

    def close(self) -> None:
        """Let go, when an attempt under way has ended."""
        if self._thread is not None:
            self._thread.join()
        self._link.close()
