"""A device: its plan, its noise, its counter and its budget."""

from cloakwork.sensor.clock import GAIN, Clock, board_ticks
from cloakwork.sensor.errors import StateError, WireError
from cloakwork.sensor.keystream import EPOCH, LARGEST_COUNTER, ratchet, sequence, split, stream_key, words
from cloakwork.sensor.noise import Noise, board_words, renewed, whole_steps
from cloakwork.sensor.slots import Slots
from cloakwork.sensor.state import load_state
from cloakwork.sensor.wire import read_reading, topic, write_reading, write_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from typing import Any

    from cloakwork.sensor.measuring import Measured
    from cloakwork.sensor.store import Folder

MAX_STEPS = (1 << 31) - 1
FARTHEST = 1 << 18  # readings by which the broker may be ahead of a device that was restored from a backup
TAKE, SPENT, WAIT = "take", "spent", "wait"


class Device:
    """A provisioned sensor: `config` is its device.json, `store` the folder with its files.

    Call `begin` in each round of the loop. When it returns `take`, measure once and call `cloak` once.
    """

    def __init__(self, config: "dict[str, Any]", store: "Folder", ticks: "Callable[[], int]" = board_ticks) -> None:
        self.config = config
        self._store = store
        self._lock = store.lock()
        self._tables: list[BufferedReader] = []
        try:
            self._open(config, ticks)
        except Exception:
            self.close()
            raise

    def _open(self, config: "dict[str, Any]", ticks: "Callable[[], int]") -> None:
        store, slow = self._store, config["slow"]
        self._noise = self._open_noise("noise.tab", config["noise"])
        self._slow = self._open_noise("slow.tab", slow) if slow else None
        self._state = load_state(store, config["site"], config["sensor"], config["generation"])
        if config["keyed"] != (self._state.key is not None) or bool(slow) != (self._state.offset is not None):
            raise StateError("the state does not belong to this device. Provision it again.")
        self.clock = Clock(self._state.clock, ticks, GAIN)
        plan = config["schedule"]
        self.period: int = plan["period_ms"]
        self.late: int = plan["late_ms"]
        # powered time that a power cut may lose: a small part of a window, and writes rare enough for the storage
        self._checkpoint_after = min(300000, plan["window_slots"] * self.period // 16)
        self._slots = Slots(self._state.runs, plan["window_slots"], plan["allowed"])
        self._handled = self._slots.last
        self._promised = -1  # the last slot of the reserved block
        self._taken = False  # whether a slot has begun that has no message yet
        self._next = self._state.counter  # the next counter of that block
        self._epoch = self._state.counter // EPOCH
        self._key = self._state.key
        self._stream: bytes | None = None  # made from the key for the first reading of the epoch
        self._offsets: list[int] = []  # of the reserved block, in steps
        if not config["keyed"]:
            board_words(1)

    def _open_noise(self, name: str, plan: "dict[str, Any]") -> Noise:
        self._tables.append(self._store.table(name))
        return Noise(self._tables[-1], plan["levels"], plan["digest"])

    def close(self) -> None:
        """Close the files, so that another process may use them."""
        for table in self._tables:
            table.close()
        if self._lock is not None:
            self._lock.close()

    @property
    def fresh(self) -> bool:
        """Whether this device has never taken a reading; it must first hear what the broker knows of it."""
        return self._state.counter == 0

    def topic(self, kind: str) -> str:
        """The topic to publish on: kind is `status`, or `data` for readings."""
        config = self.config
        return topic(config["site"], config["sensor"], config["kind"] if kind == "data" else kind)

    def slot_start(self, now: int) -> int:
        """The start of the slot that contains `now`."""
        return now - now % self.period

    def in_time(self, now: int) -> bool:
        """Whether a reading may still be measured in the slot that contains `now`."""
        return now % self.period < self.late  # a clock of whole milliseconds may be one behind

    def begin(self, now: int, *, pause: bool = False) -> str:
        """Decide once per slot: `take` a reading, report the budget as `spent`, or `wait`.

        During a `pause` of all devices, the budget counts as spent.
        """
        slot = now // self.period
        if slot <= self._handled or not self.in_time(now):
            self.checkpoint(now)
            return WAIT
        self._handled = slot
        self._taken = False
        if pause or (slot > self._promised and not self._reserve(slot, now)):
            return SPENT
        self._taken = True
        return TAKE

    def cloak(self, reading: "Measured", time: int) -> bytes:
        """Make the message of the current slot. Call it once for each `take`.

        `reading` is a fraction (numerator, denominator) in the site's unit. None stands for a missing reading: the
        device then sends a public constant instead, with noise like any other reading.
        """
        counter = self._next
        if not self._taken or counter >= self._state.counter:
            raise StateError("no number is reserved for another reading")
        self._taken = False
        self._next += 1
        seq = sequence(self.config["generation"], counter)
        offset = self._offsets.pop(0)
        value = self._steps(reading) + self._noise.draw(self._words(seq, self._noise.words)) + offset
        values = self.config["values"]
        return write_reading(seq, time, value % values if values else value)

    def status(self, state: str, now: int) -> bytes:
        """Make a status message with the budget; `online` becomes `bench` on a device for audits."""
        if state == "online" and self.config["kind"] == "bench":
            state = "bench"
        slot, allowed = now // self.period, self._slots.allowed
        return write_status(state, allowed if self._is_blocked(now) else self._slots.used(slot), allowed)

    def heard(self, payload: bytes, retained: bool, now: int, drop: "Callable[[], None] | None" = None) -> bool:
        """Handle a reading of this sensor that this device did not send; True if the device moves forward.

        It calls `drop` before it moves: unsent messages may repeat numbers, and must be gone if the power fails then.

        A retained reading of the same generation means that the storage was restored from a backup: the counter moves
        past that reading. A reading of an earlier generation matters only to a device that has not started yet. In both
        cases the device stays silent for a whole window, since that window may be used already. A reading of the same
        generation that arrives while this device runs comes from a copy of it: the device stops.
        """
        try:
            generation, counter = split(read_reading(payload)[0])
        except WireError:
            return False
        own = self.config["generation"]
        if generation > own:
            raise StateError("this sensor was provisioned again later: use the newer folder.")
        if generation < own and not (self.fresh and self._state.blocked == 0):
            return False
        if generation == own:
            if counter < self._state.counter and self._is_blocked(now):
                return False  # the counter is already past this reading
            if not retained or self._is_blocked(now):
                raise StateError("a copy of this device runs elsewhere. Stop both, and provision it again.")
            if counter - self._state.counter > FARTHEST:
                raise StateError("the broker knows readings far ahead of this device's counter. Provision it again.")
        if drop is not None:
            drop()
        self._move_on(counter + 1 if generation == own else 0, now)
        return True

    def ahead(self, payload: bytes) -> bool:
        """Whether a message has a number that this device has not reached yet."""
        generation, counter = split(read_reading(payload)[0])
        return generation == self.config["generation"] and counter >= self._state.counter

    def hold(self, amount: int) -> None:
        """Leave time uncounted. If that goes back before the stored clock, store the clock again."""
        self.clock.hold(amount)
        now = self.clock.now()
        if now < self._state.clock:
            self._state.clock = now
            self._state.save(self._store)

    def _is_blocked(self, now: int) -> bool:
        return 0 < self._state.blocked > now // self.period

    def _reserve(self, slot: int, now: int) -> bool:
        """Reserve this slot and some after it, with as many counters, on durable storage."""
        state = self._state
        self._promised = -1
        if slot < state.blocked:
            return False
        # a block ends with its epoch, so the storage never holds the key of a past epoch
        most = min(self.config["schedule"]["block"], EPOCH - state.counter % EPOCH)
        if state.counter + most > LARGEST_COUNTER:
            raise StateError("all numbers of this provisioning are used. Provision this device again.")
        taken = self._slots.take(slot, most)
        if not taken:
            return False
        self._next = state.counter
        self._use_epoch(state.counter // EPOCH)
        offset, self._offsets = state.offset, []
        for counter in range(state.counter, state.counter + taken):
            offset = self._next_offset(offset, counter)
            self._offsets.append(0 if offset is None else whole_steps(offset))
        self._save(state.counter + taken, now, offset)
        self._promised = slot + taken - 1
        return True

    def _next_offset(self, offset: "int | None", counter: int) -> "int | None":
        """The offset at a counter, in parts of a step, from that at the counter before; None if there is none."""
        slow, plan = self._slow, self.config["slow"]
        if offset is None or slow is None or counter % plan["renew"]:
            return offset
        self._use_epoch(counter // EPOCH)
        seq, fresh = sequence(self.config["generation"], counter), self._noise.words
        drawn: int = slow.draw(self._words(seq, fresh + slow.words)[fresh:])
        return int(renewed(offset, drawn, plan["carry"]))

    def _use_epoch(self, epoch: int) -> None:
        """Ratchet the key forward to an epoch; earlier keys cannot be recovered."""
        while self._epoch < epoch:
            self._epoch += 1
            self._stream = None
            if self._key is not None:
                self._key = ratchet(self._key)

    def _save(self, counter: int, now: int, offset: "int | None") -> None:
        """Write the state with `counter` as the first free counter, its key, and the offset of the counter before."""
        state = self._state
        state.key = self._key
        if self._key is not None and counter // EPOCH > self._epoch:
            state.key = ratchet(self._key)
        state.counter, state.clock, state.runs, state.offset = counter, now, self._slots.runs, offset
        state.save(self._store)

    def _move_on(self, counter: int, now: int) -> None:
        """Continue from `counter` after a whole window of silence."""
        start = max(counter, self._state.counter)
        offset = self._state.offset
        for skipped in range(self._state.counter, start) if self._slow else ():
            offset = self._next_offset(offset, skipped)
        self._use_epoch(start // EPOCH)
        self._state.blocked = now // self.period + self._slots.window + 1
        self._promised = -1
        self._next = start
        self._save(start, now, offset)

    def checkpoint(self, now: int) -> None:
        """Write the clock now and then, while no slot is used."""
        if now - self._state.clock >= self._checkpoint_after:
            self._state.clock = now
            self._state.save(self._store)

    def _steps(self, reading: "Measured") -> int:
        if reading is None:
            return int(self.config["fallback"])
        numerator, denominator = reading
        a, b = self.config["step"]
        steps = (2 * numerator * b + denominator * a) // (2 * denominator * a)
        values = self.config["values"]
        low, high = (0, values - 1) if values else (-MAX_STEPS, MAX_STEPS)
        return int(max(low, min(high, steps)))  # without a word: a status that depends on the value would tell it

    def _words(self, seq: int, count: int) -> list[int]:
        if self._key is None:
            return board_words(count)
        if self._stream is None:
            config = self.config
            self._stream = stream_key(self._key, config["site"], config["sensor"], config["generation"], self._epoch)
        return words(self._stream, seq, count)
