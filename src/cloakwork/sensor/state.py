"""The persistent state of a device: the counter, the key, the clock, the used slots and the offset.

The state is kept in two copies. Both are written, one after the other, before the device uses anything that they allow.
So if one copy is lost (a torn write, a damaged sector, an older version in its place), the other one records everything
that was used, and the newer of the two is right. If neither can be read, the device refuses to work.
"""

import hashlib
import json

from cloakwork.sensor.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cloakwork.sensor.store import Folder

COPIES = ("state.0", "state.1")
_FIELDS = ("site", "sensor", "generation", "version", "counter", "clock", "runs", "blocked")  # and the key and offset


class State:
    """The state of one generation of a sensor; `key` is that of the current epoch, or None for noise without a key.

    `counter` is the first one that is not reserved for a reading, `clock` the powered milliseconds of the last write,
    `runs` the used slots as [first, last], `blocked` the first slot that may be used, and `offset` the slow offset of
    the last reserved reading, in parts of a step; None if the plan has none.
    """

    def __init__(
        self,
        site: str,
        sensor: str,
        generation: int,
        key: bytes | None,
        *,
        version: int = 0,
        counter: int = 0,
        clock: int = 0,
        runs: list[list[int]] | None = None,
        blocked: int = 0,
        offset: int | None = None,
    ) -> None:
        self.site = site
        self.sensor = sensor
        self.generation = generation
        self.key = key
        self.version = version
        self.counter = counter
        self.clock = clock
        self.runs = runs or []
        self.blocked = blocked
        self.offset = offset
        self._first = 0  # the copy to write first: the one whose write failed, so that the other stays whole

    def pack(self) -> bytes:
        """The bytes of one copy."""
        fields: dict[str, object] = {"v": 1}  # in the order in which the device in C writes and expects them
        for name in _FIELDS:
            fields[name] = getattr(self, name)
        fields["key"] = None if self.key is None else self.key.hex()
        if self.offset is not None:
            fields["offset"] = self.offset
        body = json.dumps(fields).encode()
        return body + b"\n" + hashlib.sha256(body).digest().hex().encode() + b"\n"

    def save(self, store: "Folder") -> None:
        """Write both copies. The device may use what they allow only after this returns."""
        self.version += 1
        packed = self.pack()
        for copy in (self._first, 1 - self._first):
            self._first = copy
            store.write(COPIES[copy], packed)
        self._first = 0


def unpack(data: bytes | None) -> State | None:
    """The state in one copy, or None if the copy is damaged."""
    if data is None or data.count(b"\n") != 2:
        return None
    body, digest, _ = data.split(b"\n")
    if hashlib.sha256(body).digest().hex().encode() != digest:
        return None
    fields = json.loads(body)
    if fields.pop("v") != 1:
        return None
    key = fields.pop("key")
    return State(key=None if key is None else bytes.fromhex(key), **fields)


def load_state(store: "Folder", site: str, sensor: str, generation: int) -> State:
    """The newest state of this device; both copies hold it when this returns."""
    own = site, sensor, generation
    copies = [store.read(name) for name in COPIES]
    states = [state for state in map(unpack, copies) if state is not None]
    whole = [state for state in states if (state.site, state.sensor, state.generation) == own]
    if not whole:
        raise StateError(
            "no copy of the state is whole and belongs to this device, so the counter is unknown and noise might be "
            "used twice. Provision this device again: it gets a new key and a new counter."
        )
    newest = max(whole, key=lambda state: state.version)
    packed = newest.pack()
    for state in whole:
        if state.version == newest.version and state.pack() != packed:
            raise StateError("the two copies of the state contradict each other. Provision this device again.")
    for name, data in zip(COPIES, copies):
        if data != packed:
            store.write(name, packed)
    return newest
