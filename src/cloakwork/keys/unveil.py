"""Unveiling: the trusted party removes the noise from a file of readings, with the keys."""

import secrets
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.errors import KeyFileError, ReadingError
from cloakwork.keys.evidence import KeyCheck, KeyVerdict
from cloakwork.keys.key_ring import DeviceKind, Generation, KeyRing, wire_site
from cloakwork.privacy import Keystream
from cloakwork.readings import ALARM, Problems, ReadingRow, ReadingsFile
from cloakwork.sensor import keystream, wire
from cloakwork.site import FrozenPlan, SensorNoise

BATCH = 1 << 16
_PAGE_BITS = 8
_NOTHING, _CONFLICT, _USED, _FIRST_PRINT = range(4)


@dataclass(frozen=True, eq=False)
class TrueRows:
    """Unveiled readings, in the order of the file: Unix milliseconds, sensor, sequence number, true steps."""

    time: IntArray = field(repr=False)
    sensor: list[str] = field(repr=False)
    seq: IntArray = field(repr=False)
    value: IntArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class _KeyStream:
    """All readings under one key."""

    number: int
    sensor: str
    site: str
    generation: Generation

    @property
    def name(self) -> str:
        return f"{self.sensor} (generation {self.generation.number})"

    @cached_property
    def noise(self) -> Keystream:
        """The noise by sequence number; kept, because deriving the keys of late epochs takes long."""
        return Keystream(self.generation.key, self.site, self.sensor, self.generation.number)

    def refusal(self, time: int, plan: str) -> str | None:
        """The reason why a reading of this time cannot be unveiled under a plan, None if it can."""
        if self.generation.plan != plan:
            return f"made under another plan, {self.generation.plan[:12]}: give that plan"
        if self.generation.revoked is not None and (time == 0 or time > 1000 * self.generation.revoked):
            return "from after the device was revoked"
        return None


class Unveiling:
    """The true readings of a file of noisy ones; iterate over it for batches of them.

    The file is read twice: first to find sequence numbers with two values, then to unveil the rest. `problems` and
    `rows` count the rows left out and the rows read, as far as the second pass has come.

    Parameters
    ----------
    source
        The file or table of readings, of any form that `ReadingsFile` reads.
    plan
        The plan that the devices were provisioned with. Readings of generations with another plan are left out.
    keys
        The keys of the site, or of one of its sensors.
    skip
        Rows to pass over, of those that can be unveiled: an earlier run has written them, and its `check` goes on.
    progress
        Called now and then with the amount done, of `size`.

    Notes
    -----
    Memory grows by about five bytes a reading, for the value of each sequence number.
    """

    def __init__(
        self,
        source: object,
        plan: FrozenPlan,
        keys: KeyRing,
        *,
        skip: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if keys.site != plan.site:
            raise KeyFileError(
                f"these are keys of {keys.site}, and the plan is of {plan.site}. Give keys of {plan.site}.",
                site=keys.site,
                expected=plan.site,
            )
        ids = plan.ids
        self._survey, self._file = (ReadingsFile(source, ids, plan=plan.id) for _ in range(2))
        file = self._file.path
        if file.exists() and not file.is_file() and not file.is_dir():
            raise ReadingError(f"{file}: not a plain file, and it is read twice. Copy it to one first.", path=str(file))
        self._plan = plan
        self.skipped = skip
        self._progress = progress or (lambda _: None)
        self._keyed = [sensor in keys.sensors for sensor in ids]
        self._streams: dict[tuple[int, int], _KeyStream] = {}
        for k, sensor in enumerate(ids):
            for generation in keys.devices.get(sensor, ()):
                site = wire_site(keys.site, generation.kind)
                self._streams[k, generation.number] = _KeyStream(len(self._streams), sensor, site, generation)
        self._noises: dict[str, SensorNoise] = {}
        self.check = KeyCheck()
        self.unveiled: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()

    @property
    def problems(self) -> Problems:
        """Rows left out so far."""
        return self._file.problems

    @property
    def rows(self) -> int:
        """Rows read so far, good or bad."""
        return self._file.rows

    @property
    def size(self) -> int:
        """Bytes to read, in both passes."""
        return 2 * self._file.size

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, in both passes."""
        return self._survey.bytes_read + self._file.bytes_read

    def verdict(self) -> KeyVerdict:
        """Judge the keys by the readings unveiled so far."""
        return self.check.verdict()

    def __iter__(self) -> Iterator[TrueRows]:
        values = _SeenValues()
        for row in self._counted(self._survey):
            stream = self._stream(row)
            if isinstance(stream, _KeyStream):
                values.note(stream.number, row)
        good = islice(self._good(values), self.skipped, None)
        while batch := list(islice(good, BATCH)):
            yield self._unveil(batch)
        if not self.unveiled and not self.skipped:
            raise self._file.no_readings()

    def _good(self, values: "_SeenValues") -> Iterator[tuple[_KeyStream, ReadingRow]]:
        """Rows that can be unveiled; counts the others."""
        for row in self._counted(self._file):
            stream = self._stream(row)
            if isinstance(stream, str):
                self.problems.add(row.number, stream)
            elif (reason := values.refusal(stream.number, row)) is None:
                yield stream, row
            else:
                self.problems.add(row.number, reason)
                if reason == ALARM:
                    self.alarms[stream.sensor] += 1

    def _counted(self, rows: ReadingsFile) -> Iterator[ReadingRow]:
        for count, row in enumerate(rows.readings()):
            yield row
            if count % BATCH == 0:
                self._progress(self.bytes_read)
        self._progress(self.bytes_read)

    def _stream(self, row: ReadingRow) -> _KeyStream | str:
        """Return the stream that a row belongs to, or why the row cannot be unveiled."""
        if abs(row.value) > wire.LARGEST:
            return "value is larger than any that a device sends"
        stream = self._streams.get((row.sensor, keystream.split(row.seq)[0]))
        if stream is None:
            return "unknown generation" if self._keyed[row.sensor] else "no key for this sensor"
        return stream.refusal(row.time, self._plan.digest) or stream

    def _unveil(self, batch: list[tuple[_KeyStream, ReadingRow]]) -> TrueRows:
        """Subtract the noise, stream by stream."""
        numbers = np.array([stream.number for stream, _ in batch])
        seqs = np.array([row.seq for _, row in batch], dtype=np.int64)
        sent = np.array([row.value for _, row in batch], dtype=np.int64)
        true = np.empty_like(sent)
        order = np.argsort(numbers, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            stream = batch[members[0]][0]
            made = self._noise(stream.sensor)
            noise = stream.noise.noise(made.table, seqs[members])
            if made.slow is not None and stream.generation.kind is not DeviceKind.BENCH:
                sent[members] -= stream.noise.offsets(made.slow, seqs[members], after=len(made.table.levels))
            if made.values:
                true[members] = (sent[members] - noise) % made.values
            else:
                true[members] = sent[members] - noise
                self.check.add(stream.name, sent[members], noise, made.table.ratio)
            self.unveiled[stream.sensor] += len(members)
        times = np.array([row.time for _, row in batch], dtype=np.int64)
        return TrueRows(times, [stream.sensor for stream, _ in batch], seqs, true)

    def _noise(self, sensor: str) -> SensorNoise:
        if sensor not in self._noises:
            self._noises[sensor] = self._plan.noise(sensor)
        return self._noises[sensor]


class _SeenValues:
    """A four-byte fingerprint of the value of each sequence number: noted in the first pass, compared in the second.

    The fingerprint is a random multiple of the value, so two values collide with probability 2^-31, even if an
    adversary chose them.
    """

    def __init__(self) -> None:
        self._factor = secrets.randbits(64) | 1
        self._pages: dict[tuple[int, int], array[int]] = {}

    def note(self, stream: int, row: ReadingRow) -> None:
        page, place = self._place(stream, row.seq)
        fingerprint = self._fingerprint(row.value)
        page[place] = fingerprint if page[place] in {_NOTHING, fingerprint} else _CONFLICT

    def refusal(self, stream: int, row: ReadingRow) -> str | None:
        """The reason why a row must not be used, None if it may; no row may be used twice."""
        page, place = self._place(stream, row.seq)
        noted = page[place]
        if noted == _CONFLICT:
            return ALARM
        if noted == _USED:
            return "the same reading again"
        if noted != self._fingerprint(row.value):
            return "new or changed while the file was read"
        page[place] = _USED
        return None

    def _place(self, stream: int, seq: int) -> tuple["array[int]", int]:
        counter = keystream.split(seq)[1]
        key = (stream, counter >> _PAGE_BITS)
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = array("I", bytes(4 << _PAGE_BITS))
        return page, counter & ((1 << _PAGE_BITS) - 1)

    def _fingerprint(self, value: int) -> int:
        return max(_FIRST_PRINT, (value * self._factor >> 32) & 0xFFFFFFFF)
