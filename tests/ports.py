"""Ports for servers that a test starts later, or again."""

import itertools
import os
import random
import socket

FIRST, LAST = 20_000, 32_000  # below those that the system gives to connections, and to who asks for any port
WORKERS = 32
_numbers = itertools.count(random.SystemRandom().randrange(LAST))


def free_port() -> int:
    """A port of this machine that nobody has now, and that no other test takes before it is used.

    What the system would choose it may choose again for someone else, as soon as it is let go.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    for number in itertools.islice(_numbers, LAST - FIRST):
        port = FIRST + number * WORKERS % (LAST - FIRST) + worker
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
