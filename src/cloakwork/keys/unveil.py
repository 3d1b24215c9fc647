"""Unveiling: the trusted party removes the noise from a file of readings, with the keys."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import KeyFileError, ReadingError
from cloakwork.keys.evidence import KeyCheck, KeyVerdict
from cloakwork.keys.key_ring import DeviceKind, Generation, KeyRing, wire_site
from cloakwork.privacy import Keystream
from cloakwork.readings import ALARM, Problems, ReadingRows, ReadingsFile
from cloakwork.sensor import keystream, wire
from cloakwork.site import FrozenPlan, SensorNoise

BATCH = 1 << 16
_PAGE = 256  # counters of one stream whose fingerprints are next to each other
_NOTHING, _CONFLICT, _USED, _FIRST_PRINT = range(4)
_SENSOR = 1 << 34  # above every generation of a sequence number


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

    sensor: str
    site: str
    generation: Generation
    made: SensorNoise

    @property
    def name(self) -> str:
        return f"{self.sensor} (generation {self.generation.number})"

    @cached_property
    def noise(self) -> Keystream:
        """The noise by sequence number; kept, because deriving the keys of late epochs takes long."""
        return Keystream(self.generation.key, self.site, self.sensor, self.generation.number)

    def true(self, sent: IntArray, seqs: IntArray, check: KeyCheck) -> IntArray:
        """Subtract the noise."""
        made, noise = self.made, self.noise.noise(self.made.table, seqs)
        if made.slow is not None and self.generation.kind is not DeviceKind.BENCH:
            sent = sent - self.noise.offsets(made.slow, seqs, after=len(made.table.levels))
        if made.values:
            return np.asarray((sent - noise) % made.values)
        check.add(self.name, sent, noise, made.table.ratio)
        return np.asarray(sent - noise)


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
    progress
        Called now and then with (bytes read, bytes to read), in both passes.

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
        progress: Callable[[int, int], None] = lambda _, __: None,
    ) -> None:
        if keys.site != plan.site:
            raise KeyFileError(
                f"these are keys of {keys.site}, and the plan is of {plan.site}. Give keys of {plan.site}.",
                site=keys.site,
                expected=plan.site,
            )
        self._ids = plan.ids
        self._survey, self._file = (ReadingsFile(source, plan.ids, plan=plan.id) for _ in range(2))
        file = self._file.path
        if file.exists() and not file.is_file() and not file.is_dir():
            raise ReadingError(f"{file}: not a plain file, and it is read twice. Copy it to one first.", path=str(file))
        self._progress = progress
        self._keyed = [sensor in keys.sensors for sensor in plan.ids]
        streams: dict[int, _KeyStream] = {}
        for k, sensor in enumerate(plan.ids):
            generations = sorted(keys.devices.get(sensor, ()), key=lambda known: known.number)
            if generations:
                noise = plan.noise(sensor)
                streams |= {
                    k * _SENSOR + known.number: _KeyStream(sensor, wire_site(keys.site, known.kind), known, noise)
                    for known in generations
                }
        self._streams = list(streams.values())
        self._codes = np.array(list(streams), dtype=np.int64)
        revoked = [known.generation.revoked for known in self._streams]
        self._until = np.array([2**62 if moment is None else 1000 * moment for moment in revoked])
        self._planned = np.array([known.generation.plan == plan.digest for known in self._streams], dtype=bool)
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

    def verdict(self) -> KeyVerdict:
        """Judge the keys by the readings unveiled so far."""
        return self.check.verdict()

    def __iter__(self) -> Iterator[TrueRows]:
        prints = _Fingerprints()
        for rows in self._counted(self._survey):
            streams, refused = self._stream_of(rows)
            prints.note(streams[~refused], rows.at(~refused))
        waiting = [np.zeros((4, 0), dtype=np.int64)]
        for rows in self._counted(self._file):
            waiting.append(self._good(rows, prints))
            while sum(part.shape[1] for part in waiting) >= BATCH:
                together = np.concatenate(waiting, axis=1)
                waiting = [together[:, BATCH:]]
                yield self._unveil(*together[:, :BATCH])
        if (together := np.concatenate(waiting, axis=1)).size:
            yield self._unveil(*together)
        if not self.unveiled:
            raise self._file.no_readings()

    def _counted(self, file: ReadingsFile) -> Iterator[ReadingRows]:
        for rows in file.readings():
            yield rows
            self._progress(self._survey.bytes_read + self._file.bytes_read, 2 * file.size)
        self._progress(self._survey.bytes_read + self._file.bytes_read, 2 * file.size)

    def _stream_of(self, rows: ReadingRows) -> tuple[IntArray, NDArray[np.bool_]]:
        """The number of the stream of each row, and whether the row cannot be unveiled."""
        if not self._streams:
            return np.zeros_like(rows.seq), np.ones(len(rows.seq), dtype=bool)
        codes = rows.sensor * _SENSOR + (rows.seq >> keystream.COUNTER_BITS)
        streams = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        refused = (self._codes[streams] != codes) | ~self._planned[streams] | (np.abs(rows.steps) > wire.LARGEST)
        return streams, refused | (rows.time > self._until[streams]) | (
            (rows.time == 0) & (self._until[streams] < 2**62)
        )

    def _good(self, rows: ReadingRows, prints: "_Fingerprints") -> IntArray:
        """Stream, time, sequence number and steps of the rows that can be unveiled; counts the others."""
        streams, refused = self._stream_of(rows)
        again, conflict, changed = prints.refusals(streams, rows, ~refused)
        for k in np.flatnonzero(refused | again | conflict | changed).tolist():
            if refused[k]:
                reason = self._refusal(streams[k], rows, k)
            else:
                reason = "the same reading again" if again[k] else ALARM
                reason = "new or changed while the file was read" if changed[k] else reason
            self.problems.add(int(rows.number[k]), reason)
            if reason == ALARM:
                self.alarms[self._ids[rows.sensor[k]]] += 1
        good = ~(refused | again | conflict | changed)
        return np.stack([streams[good], rows.time[good], rows.seq[good], rows.steps[good]])

    def _refusal(self, number: int, rows: ReadingRows, k: int) -> str:
        """The reason why a row cannot be unveiled."""
        if abs(rows.steps[k]) > wire.LARGEST:
            return "value is larger than any that a device sends"
        code = rows.sensor[k] * _SENSOR + (rows.seq[k] >> keystream.COUNTER_BITS)
        if not self._streams or self._codes[number] != code:
            return "unknown generation" if self._keyed[rows.sensor[k]] else "no key for this sensor"
        if not self._planned[number]:
            return f"made under another plan, {self._streams[number].generation.plan[:12]}: give that plan"
        return "from after the device was revoked"

    def _unveil(self, streams: IntArray, times: IntArray, seqs: IntArray, sent: IntArray) -> TrueRows:
        """Subtract the noise, stream by stream."""
        true = np.empty_like(sent)
        order = np.argsort(streams, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(streams[order])) + 1):
            stream = self._streams[streams[members[0]]]
            true[members] = stream.true(sent[members], seqs[members], self.check)
            self.unveiled[stream.sensor] += len(members)
        return TrueRows(times, [self._streams[number].sensor for number in streams], seqs, true)


class _Fingerprints:
    """A four-byte fingerprint of the value of each sequence number: noted in the first pass, compared in the second.

    The fingerprint is a random multiple of the value, so two values collide with probability 2^-31, even if an
    adversary chose them.
    """

    def __init__(self) -> None:
        self._factor = np.uint64(secrets.randbits(64) | 1)
        self._pages: dict[int, int] = {}
        self._prints = np.zeros(_PAGE, dtype=np.uint32)

    def note(self, streams: IntArray, rows: ReadingRows) -> None:
        """Remember values; two of one number are a conflict."""
        places, prints = self._places(streams, rows.seq), self._of(rows.steps)
        new = self._prints[places] == _NOTHING
        self._prints[places[new]] = prints[new]
        self._prints[places[self._prints[places] != prints]] = _CONFLICT

    def refusals(
        self, streams: IntArray, rows: ReadingRows, which: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Of some rows, those that were used before, those in conflict, and those that are not as they were noted."""
        again, conflict, changed = (np.zeros(len(which), dtype=bool) for _ in range(3))
        places, prints = self._places(streams[which], rows.seq[which]), self._of(rows.steps[which])
        noted = self._prints[places]
        same = np.flatnonzero(noted == prints)
        first = np.zeros(len(places), dtype=bool)
        first[same[np.unique(places[same], return_index=True)[1]]] = True
        self._prints[places[first]] = _USED
        conflict[which] = noted == _CONFLICT
        again[which] = (noted == _USED) | ((noted == prints) & ~first)
        changed[which] = ~(first | again[which] | conflict[which])
        return again, conflict, changed

    def _places(self, streams: IntArray, seqs: IntArray) -> IntArray:
        pages, which = np.unique(streams << 28 | (seqs & keystream.LARGEST_COUNTER) // _PAGE, return_inverse=True)
        numbers = np.array([self._pages.setdefault(page, len(self._pages)) for page in pages.tolist()], dtype=np.int64)
        if len(self._prints) < _PAGE * len(self._pages):
            self._prints = np.concatenate([self._prints, np.zeros(_PAGE * len(self._pages), dtype=np.uint32)])
        return np.asarray(numbers[which] * _PAGE + seqs % _PAGE)

    def _of(self, values: IntArray) -> NDArray[np.uint32]:
        with np.errstate(over="ignore"):
            prints = (values.astype(np.uint64) * self._factor >> np.uint64(32)).astype(np.uint32)
        return np.maximum(prints, np.uint32(_FIRST_PRINT))
