"""What a device must not forget: the counter, the key, the clock and the slots it has used.

It is kept in two copies. Both are written, one after the other, before anything that they allow is used. So whatever
happens to one copy (a torn write, a damaged sector, an older version put in its place), the other one knows of
everything that was used; and the newer of the two is right. Where neither can be read, the device refuses to work.
"""

import hashlib
import json

from cloakwork.sensor.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Store(Protocol):
        """Somewhere to keep two small files."""

        def read(self, name: str) -> bytes | None:
            """All of a file."""

        def write(self, name: str, data: bytes) -> None:
            """Replace a file, durably."""


COPIES = ("state.0", "state.1")


class State:
    """The numbers below, and the key of the current epoch (None for noise that nobody can remove).

    `counter` is the first that no reading has been promised; `clock` the powered milliseconds when this was written;
    `runs` the slots used, as [first, last]; `blocked` the first slot that may be used at all.
    """

    def __init__(
        self,
        generation: int,
        key: bytes | None,
        *,
        version: int = 0,
        counter: int = 0,
        clock: int = 0,
        runs: list[list[int]] | None = None,
        blocked: int = 0,
    ) -> None:
        self.generation = generation
        self.key = key
        self.version = version
        self.counter = counter
        self.clock = clock
        self.runs = runs or []
        self.blocked = blocked
        self._first = 0  # the copy to write first: one that failed, so that there is always a whole one

    def pack(self) -> bytes:
        """The bytes of one copy."""
        held = {
            "v": 1,
            "generation": self.generation,
            "version": self.version,
            "counter": self.counter,
            "clock": self.clock,
            "runs": self.runs,
            "blocked": self.blocked,
            "key": None if self.key is None else self.key.hex(),
        }
        body = json.dumps(held).encode()
        return body + b"\n" + hashlib.sha256(body).digest().hex().encode() + b"\n"

    def save(self, store: "Store") -> None:
        """Write both copies. What they allow may be used when this has returned, and not before."""
        self.version += 1
        packed = self.pack()
        for copy in (self._first, 1 - self._first):
            self._first = copy
            store.write(COPIES[copy], packed)
        self._first = 0


def unpack(data: bytes | None) -> State | None:
    """The state in one copy, or None if it is not whole."""
    if data is None or data.count(b"\n") != 2:
        return None
    body, digest, _ = data.split(b"\n")
    if hashlib.sha256(body).digest().hex().encode() != digest:
        return None
    held = json.loads(body)
    if held["v"] != 1:
        return None
    return State(
        held["generation"],
        None if held["key"] is None else bytes.fromhex(held["key"]),
        version=held["version"],
        counter=held["counter"],
        clock=held["clock"],
        runs=held["runs"],
        blocked=held["blocked"],
    )


def load_state(store: "Store", generation: int) -> State:
    """The newest state of this generation; both copies hold it when this returns."""
    copies = [store.read(name) for name in COPIES]
    whole = [state for state in map(unpack, copies) if state is not None and state.generation == generation]
    if not whole:
        raise StateError(
            "neither copy of the state can be read, so the counter is not known and noise might be used twice. "
            "Provision this device again: it gets a new key and starts anew."
        )
    newest = max(whole, key=lambda state: state.version)
    packed = newest.pack()
    for state in whole:
        if state.version == newest.version and state.pack() != packed:
            raise StateError("the two copies of the state contradict each other. Provision this device again.")
    for name, data in zip(COPIES, copies):  # noqa: B905 - MicroPython's zip has no `strict`
        if data != packed:
            store.write(name, packed)
    return newest
